# SPDX-License-Identifier: Apache-2.0
"""What texts of a PBS server mean: sizes, times, selects, vnodes, limits, formulas.

Everything here is pure, and raises `BadRequest` for a text that it cannot read.
"""
