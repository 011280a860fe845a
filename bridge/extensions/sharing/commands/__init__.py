# SPDX-License-Identifier: Apache-2.0
"""The commands `schedbridge coschedule`.

Imports the extension and, as all commands that ask a running service,
`bridge.cli.operators.asking`. Start with `coschedule.py`.
"""
