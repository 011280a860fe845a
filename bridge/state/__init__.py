# SPDX-License-Identifier: Apache-2.0
"""The service's persistent state, in one SQLite file.

Imports the model and measures. Start with `store.py`.
"""
