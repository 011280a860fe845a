# SPDX-License-Identifier: Apache-2.0
"""Stage `plan`: when and where every job starts. Start with `backfill.py`."""
