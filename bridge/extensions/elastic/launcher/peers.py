# SPDX-License-Identifier: Apache-2.0
"""The launcher's connection to the agent, and the identity of peers on Unix sockets."""

import contextlib
import os
import socket
import struct
import sys
import time
from collections.abc import Iterator
from typing import Final

from bridge.errors import LineError, UnknownOp
from bridge.extensions.elastic.lines import (
    Attach,
    Attached,
    Error,
    Lines,
    Message,
    encode,
    from_agent,
)

RETRY_S: Final = (1.0, 2.0, 5.0, 10.0, 30.0)
"""Pauses between attempts to reach the agent; the last one is repeated."""


def peer_is_us(stream: socket.socket) -> bool:
    """Whether the process at the other end belongs to our user or to root."""
    credentials = stream.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, uid, _ = struct.unpack("3i", credentials)
    return uid in (0, os.getuid())


class AgentLink:
    """The connection to the node's agent, which may be lost and come back."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._stream: socket.socket | None = None
        self._lines = Lines()
        self._tries, self._next_s = 0, 0.0
        self._warned = False

    def fds(self) -> list[int]:
        """The descriptor that becomes readable when the agent sends something."""
        return [] if self._stream is None else [self._stream.fileno()]

    def events(self, first: Attach | None) -> Iterator[Message]:
        """The messages of the agent; connects if it is time to, with `first` as first line."""
        if first is None:
            return
        if self._stream is None and time.monotonic() >= self._next_s:
            self._connect(first)
        while self._stream is not None:
            try:
                data = self._stream.recv(65536)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                self.close()
                return
            try:
                for line in self._lines.feed(data):
                    yield from self._heard(line)
            except LineError as error:
                self._warn(f"the agent's line cannot be read: {error}")
                self.close()

    def _heard(self, line: bytes) -> Iterator[Message]:
        try:
            message = from_agent(line)
        except UnknownOp as error:
            self.tell(Error(str(error)))
            return
        if isinstance(message, Attached):
            self._tries, self._warned = 0, False
        elif isinstance(message, Error):
            self._warn(f"the agent answers: {message.reason}")
        else:
            yield message

    def _connect(self, first: Attach) -> None:
        self._next_s = time.monotonic() + RETRY_S[min(self._tries, len(RETRY_S) - 1)]
        self._tries += 1
        stream = socket.socket(socket.AF_UNIX)
        try:
            stream.settimeout(2.0)
            stream.connect(self._path)
            stream.sendall(encode(first))
        except OSError as error:
            stream.close()
            self._warn(f"no agent answers at {self._path} ({error.strerror}): the job is rigid")
            return
        except LineError as error:
            stream.close()
            self._warn(f"the job is rigid: {error}")
            return
        stream.setblocking(False)
        self._stream, self._lines = stream, Lines()

    def tell(self, message: Message) -> None:
        """Sends a message; the agent asks again for a lost one after a reconnection."""
        if self._stream is None:
            return
        try:
            self._stream.settimeout(2.0)
            self._stream.sendall(encode(message))
            self._stream.setblocking(False)
        except (OSError, LineError):
            self.close()

    def close(self) -> None:
        """Ends the connection."""
        if self._stream is not None:
            with contextlib.suppress(OSError):
                self._stream.close()
        self._stream = None

    def _warn(self, text: str) -> None:
        """Once until the agent has attached the job again."""
        if not self._warned:
            with contextlib.suppress(OSError):
                print(f"schedbridge run: {text}", file=sys.stderr, flush=True)
        self._warned = True
