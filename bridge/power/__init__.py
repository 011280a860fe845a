# SPDX-License-Identifier: Apache-2.0
"""The corridor of power as state: a calendar, operators' entries, and the resulting bounds.

Pure functions and values; imports planning and model. Start with `resolve.py`; `entry_log.py` holds
the entries; `signal_text.py` and `open_adr.py` read the messages of other programs.
"""
