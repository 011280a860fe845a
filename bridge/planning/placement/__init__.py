# SPDX-License-Identifier: Apache-2.0
"""Which nodes the jobs of a finished plan get, on a tree of switches; no start changes.

Imports scheduler and what is below it. Start with `improvement.py`.
"""
