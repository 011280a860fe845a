# SPDX-License-Identifier: Apache-2.0
"""The service's persistent state, in one SQLite file.

Imports planning, measures and the model. Start with `store.py`.
"""
