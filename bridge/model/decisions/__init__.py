# SPDX-License-Identifier: Apache-2.0
"""Decisions of a plan other than starts: widths of jobs. Those of extensions are theirs.

Imports the model's tables; no rule of a site.
Start with `resizes.py`, and `bridge/model/plan.py`, which holds all of it.
"""
