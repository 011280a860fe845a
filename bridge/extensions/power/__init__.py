# SPDX-License-Identifier: Apache-2.0
"""Electric power: measured, and within bounds; nodes that are powered down and up.

Entry points name `extension.py`, and the part of agents in `on_nodes/`, for which nothing is
imported here. Imports the port, planning and the model; only what serves the wire, operators,
agents and the memory imports rpc. Start with `README.md`, then `stages.py`.
"""
