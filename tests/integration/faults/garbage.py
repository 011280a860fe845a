# SPDX-License-Identifier: Apache-2.0
"""No service at all: answers the controller's socket with what means nothing.

Usage: garbage.py bytes | frames | messages | errors | absurd | stranger  SOCKET

    bytes     random bytes, at once, to whoever connects; every third time without end
    frames    HTTP/2 that breaks off: lengths that lie, headers that are cut, resets
    messages  perfect gRPC, whose messages are random bytes
    errors    perfect gRPC, whose every answer is status 13
    absurd    perfect gRPC, whose answers to cycles are 4,000,000 decisions of two bytes each
    stranger  another user than root and SlurmUser (run it as root), who takes down what he is told:
              one line for each connection, with the number of bytes, on standard output
"""

import os
import pwd
import random
import signal
import socket
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc

from bridge.rpc.pb import scheduler_pb2 as pb

METHODS = ("/schedbridge.v1.Scheduler/Hello", "/schedbridge.v1.Scheduler/Cycle")
ABSURD = b"\x1a\0" * 4_000_000
rng = random.Random(7)


def frame(kind: int, flags: int, stream: int, payload: bytes, length: int | None = None) -> bytes:
    size = len(payload) if length is None else length
    return size.to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


SETTINGS, OK_HEADERS = frame(4, 0, 0, b""), b"\x88"


def nonsense() -> list[bytes]:
    """HTTP/2 conversations that begin well."""
    opening = SETTINGS + frame(4, 1, 0, b"")
    liar = b"\0" + (1 << 30).to_bytes(4, "big") + rng.randbytes(64)  # says 1 GiB, brings 64 bytes
    return [
        opening + frame(1, 4, 1, OK_HEADERS) + frame(0, 1, 1, liar),
        opening + frame(1, 4, 1, OK_HEADERS) + frame(0, 0, 1, rng.randbytes(10), length=16_000),
        opening + frame(1, 4, 1, rng.randbytes(40)),
        opening + frame(1, 5, 1, OK_HEADERS),
        opening + frame(3, 0, 1, (2).to_bytes(4, "big")),
        opening + frame(7, 0, 0, (0).to_bytes(4, "big") + (11).to_bytes(4, "big")),
        opening + frame(0, 0, 99, rng.randbytes(1000)) * 50,
        opening + rng.randbytes(2000),
    ]


def converse(client: socket.socket, number: int, mode: str) -> None:
    try:
        with client:
            if mode == "bytes":
                client.sendall(rng.randbytes(rng.choice((1, 9, 24, 4096, 100_000))))
                while number % 3 == 0:
                    client.sendall(rng.randbytes(65_536))
                return
            client.recv(65_536)
            choices = nonsense()
            client.sendall(choices[number % len(choices)])
            client.settimeout(3)
            while client.recv(65_536):
                pass
    except OSError:
        return


def raw(mode: str, path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen(64)
    number = 0
    while True:
        client, _ = listener.accept()
        number += 1
        threading.Thread(target=converse, args=(client, number, mode), daemon=True).start()


def stranger(path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    path.chmod(0o777)
    os.setuid(pwd.getpwnam("nobody").pw_uid)
    listener.listen(64)  # from here on the kernel names nobody as the one who listens
    while True:
        client, _ = listener.accept()
        client.settimeout(2)
        try:
            told = len(client.recv(65_536))
        except OSError:
            told = 0
        client.close()
        print(told, flush=True)


def absurd(method: str) -> bytes:
    if method == METHODS[0]:
        return pb.HelloReply(
            wire_version=1, service="absurd", service_epoch=7, policy="none"
        ).SerializeToString()
    return ABSURD


def polite(mode: str, path: Path) -> None:
    def answer(method: str, context: grpc.ServicerContext) -> bytes:
        if mode == "errors":
            context.abort(grpc.StatusCode.INTERNAL, "no")
        if mode == "absurd":
            return absurd(method)
        return rng.randbytes(rng.choice((0, 1, 7, 300, 100_000)))

    class Handler(grpc.GenericRpcHandler):
        def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler | None:
            method = details.method
            if method not in METHODS:
                return None
            return grpc.unary_unary_rpc_method_handler(lambda _, context: answer(method, context))

    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers((Handler(),))
    server.add_insecure_port(f"unix:{path}")
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    mode, where = sys.argv[1], Path(sys.argv[2])
    where.unlink(missing_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: (where.unlink(missing_ok=True), os._exit(0)))
    if mode == "stranger":
        stranger(where)
    (raw if mode in ("bytes", "frames") else polite)(mode, where)
