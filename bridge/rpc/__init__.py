# SPDX-License-Identifier: Apache-2.0
"""The wire: gRPC around the cycles. pb/ is generated.

transport -> reported -> encode -> controller -> agents -> operators -> clients: each imports only
those to its left. Start with `controller/server.py`.
"""
