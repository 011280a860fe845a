# SPDX-License-Identifier: Apache-2.0
"""Recorded cycles of a live service: planned again, their plans evaluated, people's names removed.

Imports `recording`, the decider and what is below them; no other part of the simulator.
Start with `rerun.py`.
"""
