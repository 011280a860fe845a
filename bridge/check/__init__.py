# SPDX-License-Identifier: Apache-2.0
"""Checks whether a plan is legal, without code of the planners.

Imports the model, and the definitions of rules. Start with `legality.py`; `site_rules.py` adds up
limits and FreePools independently, and asks extensions about their parts.
"""
