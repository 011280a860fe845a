# SPDX-License-Identifier: Apache-2.0
"""What a site lays down: limits, FreePools, bounds of power, resizes and shared nodes.

Imports the model's tables; no plan and no decision.
Start with `site.py`, which holds all of it.
"""
