# SPDX-License-Identifier: Apache-2.0
"""Runs the cycle so that every snapshot gets a legal plan, whatever a job or a policy does.

Imports the cycle and the packages below it. Start with `decider.py`; `culprit_search.py` finds the
rows that make a cycle fail, `exclusion.py` removes them from a snapshot.
"""
