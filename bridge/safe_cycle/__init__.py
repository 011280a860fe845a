# SPDX-License-Identifier: Apache-2.0
"""Runs the cycle so that every snapshot gets a legal plan, whatever a job or a policy does.

Imports the cycle and what is below it. Start with `decider.py`; `culprit_search.py` finds the rows
with which a cycle fails, `exclusion.py` takes them out of a snapshot.
"""
