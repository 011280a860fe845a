# SPDX-License-Identifier: Apache-2.0
"""Immutable tables: nodes, jobs, snapshot, plan, reasons. Nothing here decides anything.

`rules/` has what a site lays down, and `decisions/` what a plan holds beside starts and reasons.

Imports units, errors and core. Start with `snapshot.py`, then `job.py` and `plan.py`.
"""
