# SPDX-License-Identifier: Apache-2.0
"""The command `schedbridge`: one file per sub-command.

May import everything. Start with `main.py`.
"""
