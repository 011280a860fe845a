# SPDX-License-Identifier: Apache-2.0
"""Windows of the queue as instances and models of constraint programming.

Imports scheduler and what is below it. Start with `window.py`.
"""
