# SPDX-License-Identifier: Apache-2.0
"""Is a plan legal? Judged with no code of the planners.

Imports the model, and what defines the meaning of rules. Start with `legality.py`; `site_rules.py`
sums up limits and FreePools independently, `power.py` what is drawn.
"""
