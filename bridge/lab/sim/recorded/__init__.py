# SPDX-License-Identifier: Apache-2.0
"""Recorded cycles of a live service: planning them again, judging plans, removing names.

Imports `recording`, the decider and the packages below them; no other part of the simulator.
Start with `rerun.py`.
"""
