# SPDX-License-Identifier: Apache-2.0
"""Stage `predict`: how long jobs will run.

One file per predictor; their common parts are in planning/prediction.
Imports planning/prediction and ports. Start with `last_two.py`.
"""
