# SPDX-License-Identifier: Apache-2.0
"""From the tables of a server to the messages of the wire. Start with `translation.py`."""
