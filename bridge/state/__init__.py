# SPDX-License-Identifier: Apache-2.0
"""What the service remembers over a restart, in one SQLite file.

Imports the model and measures. Start with `store.py`.
"""
