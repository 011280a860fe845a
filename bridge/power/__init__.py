# SPDX-License-Identifier: Apache-2.0
"""The corridor of power as state: a calendar, operators' entries, and what they come to.

Pure functions and values; imports planning and model. Start with `resolve.py`; `entry_log.py` holds
what was entered; `signal_text.py` and `open_adr.py` read what other programs send.
"""
