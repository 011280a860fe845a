# SPDX-License-Identifier: Apache-2.0
"""The waiting jobs of one cycle: rows, layouts on nodes, time windows, readable reasons.

Imports requests and eligibility. Start with `rows.py`.
"""
