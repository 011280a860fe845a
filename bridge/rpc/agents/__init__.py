# SPDX-License-Identifier: Apache-2.0
"""The service's side of the agents on the nodes: their streams, and the launchers behind them.

Imports the wire's messages, transport, `bridge.resizing` (whose port it implements) and the lines
of `bridge.extensions.elastic`. Start with `hub.py`.
"""
