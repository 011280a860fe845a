# SPDX-License-Identifier: Apache-2.0
"""The algorithms: one folder per stage, one file per algorithm; `catalogue.py` names them.

Imports planning and core. Start with `order/shortest.py`, then `plan/backfill.py`.
"""
