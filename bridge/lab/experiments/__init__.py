# SPDX-License-Identifier: Apache-2.0
"""Experiments: many simulations of one plan, each a cell whose result is kept.

Import the simulator, the report and everything below; the commands are in `bridge/cli/experiments`.
Start with `cell.py` (what a cell is) and `results.py` (what is kept of it).
"""
