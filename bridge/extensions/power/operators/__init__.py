# SPDX-License-Identifier: Apache-2.0
"""What operators and programs ask and change of power, on the wire.

Imports the corridor and rpc. Start with `methods.py`, which lists the methods; changes are carried
out in the service's process (`power_changes.py`), everything else in that of operators.
"""
