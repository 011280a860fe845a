# SPDX-License-Identifier: Apache-2.0
"""Stage `share`: which jobs share nodes, and under which CPU quotas.

One file per policy. Imports planning/sharing, the model and ports. Start with `none.py`, then
`pairs.py`.
"""
