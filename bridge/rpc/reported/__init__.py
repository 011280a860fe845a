# SPDX-License-Identifier: Apache-2.0
"""The state that a controller has reported, as columns that deltas change in place.

Imports the model only. Start with `session.py`.
"""
