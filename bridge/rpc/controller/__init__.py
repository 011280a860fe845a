# SPDX-License-Identifier: Apache-2.0
"""Answers controllers: a report in, a cycle, decisions out.

Imports reported and the decider. Start with `cycles.py`.
"""
