# SPDX-License-Identifier: Apache-2.0
"""Is a plan legal? Judged with no code of the planners.

Imports the model only. Start with `legality.py`; `site_rules.py` sums up limits and FreePools
independently.
"""
