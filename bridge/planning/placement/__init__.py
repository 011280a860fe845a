# SPDX-License-Identifier: Apache-2.0
"""Moves jobs of a finished plan to better nodes on a tree of switches; no start changes.

Imports scheduler and the packages below it. Start with `improvement.py`.
"""
