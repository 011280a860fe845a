# SPDX-License-Identifier: Apache-2.0
"""The commands `schedbridge power`.

Imports the port and, as all commands that ask a running service, `bridge.cli.operators.asking`.
Start with `power.py`.
"""
