# SPDX-License-Identifier: Apache-2.0
"""Run times: what predictors have in common, and where a prediction may replace a limit.

Imports site_rules and what is below it. Start with `apply_predictions.py`.
"""
