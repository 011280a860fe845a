# SPDX-License-Identifier: Apache-2.0
"""Stage `predict`: how long jobs will run. Start with `last_two.py`."""
