# SPDX-License-Identifier: Apache-2.0
"""The rules of a site: limits, FreePools, bounds of power, resizes and shared nodes.

Imports the model's tables; no plan and no decision.
Start with `site.py`, which holds all of it.
"""
