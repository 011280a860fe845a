# SPDX-License-Identifier: Apache-2.0
"""Electric power: what nodes and jobs are assumed to draw.

Imports queue and what is below it. Start with `estimates.py`.
"""
