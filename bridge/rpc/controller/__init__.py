# SPDX-License-Identifier: Apache-2.0
"""Answers controllers: takes a report, runs a cycle, returns decisions.

Imports reported and the decider. Start with `cycles.py`.
"""
