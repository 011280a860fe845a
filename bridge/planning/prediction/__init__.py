# SPDX-License-Identifier: Apache-2.0
"""Run times: the common base of predictors, and where a prediction may replace a limit.

Imports site_rules and the packages below it. Start with `apply_predictions.py`.
"""
