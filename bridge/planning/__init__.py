# SPDX-License-Identifier: Apache-2.0
"""From a snapshot to what the kernels plan with: rooms that stand on each other.

requests -> eligibility -> queue -> site_rules -> scheduler -> placement, prediction -> explain,
dispatch. Each imports only rooms to its left. Start with `scheduler/list_scheduler.py`.
"""
