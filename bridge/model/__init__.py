# SPDX-License-Identifier: Apache-2.0
"""Immutable tables: nodes, jobs, snapshot, plan, reasons. Nothing here decides anything.

Imports units, errors and core. Start with `snapshot.py`, then `job.py` and `plan.py`.
"""
