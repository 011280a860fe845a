# SPDX-License-Identifier: Apache-2.0
"""Stage `reshape`: which running jobs grow or shrink. Start with `malleable.py`."""
