# SPDX-License-Identifier: Apache-2.0
"""Placement on fat trees as published, with windows of starts in the order of waiting periods.

`annealing` is DCAS, `contiguous` its exact form, and `neural` NSA; `training/` trains the networks
whose results are in `weights/`.

Imports the model, policies, ports and core. Start with `annealing.py`.
"""
