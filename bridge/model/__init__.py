# SPDX-License-Identifier: Apache-2.0
"""Immutable tables: nodes, jobs, snapshot, plan, reasons. Nothing here decides anything.

`rules/` has the rules of a site, and `decisions/` those of a plan other than starts.

Imports units, errors and core. Start with `snapshot.py`, then `job.py` and `plan.py`.
"""
