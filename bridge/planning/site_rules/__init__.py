# SPDX-License-Identifier: Apache-2.0
"""The rules of a site for every plan: limits, FreePools, licences, and when each is in force.

`rules_text.py` reads them from YAML, with `pools_text.py`, `validity_text.py`, `values_text.py`;
`lowered_rules.py` lowers them, and the bounds of extensions (`weighted_bounds.py`), to capacity
constraints for one snapshot. Imports queue and the packages below it. Start with
`lowered_rules.py`.
"""
