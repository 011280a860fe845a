# SPDX-License-Identifier: Apache-2.0
"""Options of the connections to a service."""

OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 50),  # a restarting service is back soon
    ("grpc.max_reconnect_backoff_ms", 1000),
    # Bandwidth probing costs two pings per call and is useless on one machine.
    ("grpc.http2.bdp_probe", 0),
]
