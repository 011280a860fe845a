# SPDX-License-Identifier: Apache-2.0
"""Stage `plan`: when and where every job starts.

One file per algorithm; most stand on `QueuePlanner` of planning/scheduler.
Imports planning, ports and core. Start with `backfill.py`.
"""
