# SPDX-License-Identifier: Apache-2.0
"""The application's side of malleable jobs: what runs inside a job, on its own nodes.

    lines.py     the messages between launcher and agent; the agent reads the same from its side

Imports the standard library and `bridge.errors` alone, for it runs where users' programs do. Start
with docs/design/0009-elastic-jobs.md.
"""
