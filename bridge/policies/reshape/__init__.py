# SPDX-License-Identifier: Apache-2.0
"""Stage `reshape`: which running jobs grow or shrink.

One file per algorithm; the base of all is `Reshaper` of planning/malleable.
Imports planning/malleable and ports. Start with `malleable.py`.
"""
