# SPDX-License-Identifier: Apache-2.0
"""The service: its configuration, its logs and metrics, and how its parts are connected.

`serve.py` imports everything below the command line; the others import next to nothing.
Start with `serve.py`.
"""
