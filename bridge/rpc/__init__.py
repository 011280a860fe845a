# SPDX-License-Identifier: Apache-2.0
"""The wire: gRPC around the cycles. pb/ is generated.

transport -> reported -> controller -> operators; client.py and encode.py speak from the other side.
Each imports only rooms to its left. Start with `controller/server.py`.
"""
