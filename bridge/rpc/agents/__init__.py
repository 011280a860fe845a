# SPDX-License-Identifier: Apache-2.0
"""The service's side of the agents on the nodes: their streams, and the launchers behind them.

Imports the wire's messages, transport, and of `bridge.extensions.elastic` the lines, and the port
of `resizing` that it implements. Start with `hub.py`.
"""
