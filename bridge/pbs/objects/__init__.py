# SPDX-License-Identifier: Apache-2.0
"""Parses the texts of a PBS server: sizes, times, selects, vnodes, limits, formulas.

Pure functions, which raise `BadRequest` for a text that they cannot read. Imports `bridge.errors`
and the tables. Start with `parsed.py`: the tables, read.
"""
