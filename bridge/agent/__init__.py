# SPDX-License-Identifier: Apache-2.0
"""The agent of a node: connects launchers with the service, and watches the processes of jobs.

Imports the wire's messages and the lines of `bridge.extensions.elastic`, nothing of the service.
Start with `daemon.py`.
"""
