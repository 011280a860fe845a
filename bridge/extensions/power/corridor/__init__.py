# SPDX-License-Identifier: Apache-2.0
"""The corridor of power as state: a calendar, operators' entries, and the resulting bounds.

Imports planning and model; `corridor_switch.py` and `signal_file.py`, which the service runs, use
rpc. Start with `resolve.py`; `entry_log.py` holds the entries; `signal_text.py` and
`open_adr.py` read the messages of other programs.
"""
