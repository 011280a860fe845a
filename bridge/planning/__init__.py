# SPDX-License-Identifier: Apache-2.0
"""From a snapshot to the kernels' input: sub-packages that build on each other.

requests -> eligibility -> queue -> power -> site_rules -> scheduler -> placement, prediction,
malleable, sharing -> explain, dispatch. Each imports only those to its left. Start with
`scheduler/list_scheduler.py`.
"""
