# SPDX-License-Identifier: Apache-2.0
"""The service: its configuration, its logs and metrics, and how its parts are connected.

`serve.py` assembles the processes, sockets and gates, `scheduling.py` what plans. Configuration,
telemetry and signals import next to nothing. Start with `serve.py`.
"""
