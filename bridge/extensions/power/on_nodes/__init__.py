# SPDX-License-Identifier: Apache-2.0
"""The power of this node, for the agent: sensors behind one port (`sensor.py`), a file each.

Imports `bridge/agent` and the messages of the wire, but neither numpy nor the port of the
scheduler: agents are small. Start with `node_service.py`, the part of an agent, then `choice.py`,
which uses the first sensor that has a value.
"""
