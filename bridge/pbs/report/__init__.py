# SPDX-License-Identifier: Apache-2.0
"""From the tables of a server to the messages of the wire.

Pure. Imports `objects` and the wire's messages. Start with `translation.py`.
"""
