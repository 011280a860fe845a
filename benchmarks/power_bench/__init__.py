# SPDX-License-Identifier: Apache-2.0
"""Parts of the benchmark of power corridors on a real cluster."""
