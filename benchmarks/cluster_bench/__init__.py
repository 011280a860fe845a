# SPDX-License-Identifier: Apache-2.0
"""The parts of the cluster benchmark: one file per figure, one for the cluster, one for meters."""
