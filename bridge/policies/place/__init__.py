# SPDX-License-Identifier: Apache-2.0
"""Stage `place`: which nodes are taken first."""
