# SPDX-License-Identifier: Apache-2.0
"""Plans rows in a given order under all rules: the common core of plan policies.

Imports site_rules and the packages below it. Start with `list_scheduler.py`, then `booking.py`.
"""
