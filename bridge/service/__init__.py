# SPDX-License-Identifier: Apache-2.0
"""The service: its configuration, its logs and metrics, and how its parts are connected.

`serve.py` assembles the processes, sockets and gates, `scheduling.py` the planning part.
Configuration, telemetry and signals have few imports. Start with `serve.py`.
"""
