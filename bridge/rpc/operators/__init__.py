# SPDX-License-Identifier: Apache-2.0
"""Answers operators and users, in a separate process, from a copy of the last cycle.

Imports controller and the packages below it. Start with `queries.py`.
"""
