# SPDX-License-Identifier: Apache-2.0
"""Stage `plan`: when and where every job starts.

One file per algorithm; the base of most is `QueuePlanner` of planning/scheduler.
Imports planning, ports and core. Start with `backfill.py`.
"""
