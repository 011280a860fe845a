# SPDX-License-Identifier: Apache-2.0
"""Plans rows in a given order under all rules: the core that plan policies stand on.

Imports site_rules and what is below it. Start with `list_scheduler.py`, then `booking.py`.
"""
