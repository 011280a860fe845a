# SPDX-License-Identifier: Apache-2.0
"""Stage `share`: which jobs share nodes, and under which CPU quotas; so far none."""
