# SPDX-License-Identifier: Apache-2.0
"""Windows of the queue as constraint programming instances and models.

Imports scheduler and the packages below it. Start with `window.py`.
"""
