# SPDX-License-Identifier: Apache-2.0
"""Stage `place`: which nodes are preferred.

One file per algorithm: weights of nodes, or a placer that improves finished plans.
Imports the model, ports and core. Start with `best_fit.py`.
"""
