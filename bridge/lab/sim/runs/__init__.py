# SPDX-License-Identifier: Apache-2.0
"""Runs a simulation: events, the progress of jobs, faults, and the outcome.

Imports `corridor`, `cluster`, `workloads` and the decider. Start with `engine.py`. For
interchangeable nodes `replay.py` gives its results in one call of the C++ kernel, and `ordered.py`
by planning counts.
"""
