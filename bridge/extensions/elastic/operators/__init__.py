# SPDX-License-Identifier: Apache-2.0
"""What operators and users ask and change of malleable jobs, on the wire.

Imports `resizing`, planning and rpc; the process of operators imports it until it has its hooks.
Start with `answers.py`; `widths.py` has the sentences on widths.
"""
