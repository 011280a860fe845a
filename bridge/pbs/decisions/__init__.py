# SPDX-License-Identifier: Apache-2.0
"""From decisions of the service to requests to a server.

Pure. Imports `objects`, `orders` and the wire's messages. Start with
`last_check.py`.
"""
