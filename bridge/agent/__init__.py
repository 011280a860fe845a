# SPDX-License-Identifier: Apache-2.0
"""The agent of a node: brings launchers and service together, and sees which processes live here.

Imports the wire's messages and the lines of `bridge.elastic`, nothing of the service. Start with
`daemon.py`.
"""
