# SPDX-License-Identifier: Apache-2.0
"""Stage `reshape`: which running jobs grow or shrink.

One file per algorithm; all stand on `Reshaper` of planning/malleable.
Imports planning/malleable and ports. Start with `malleable.py`.
"""
