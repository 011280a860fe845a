# SPDX-License-Identifier: Apache-2.0
"""The private channel between the service and the process that answers operators.

It carries frames: request number, kind, number of parts, their lengths, the parts. The service's
process decodes only numbers and texts from it, no pickled objects, because the other process may
pass on what users sent.
"""

import asyncio
import contextlib
import itertools
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from enum import IntEnum

_HEAD = struct.Struct("<QBI")
_LENGTH = struct.Struct("<Q")
_MAX_PARTS = 100_000

Part = bytes | bytearray | memoryview
Frame = tuple[int, int, list[bytearray]]


class MessageKind(IntEnum):
    VIEW = 1
    METRICS = 2
    ACCURACY = 3
    POLICY = 4
    ORDER = 5
    RECORD = 6
    REFUSED = 7
    READY = 8
    ALIVE = 9
    ANSWER = 10
    ERROR = 11
    ELASTIC = 12
    WIDTH = 13
    EXTENSION = 14
    CHANGED = 15
    CHANGES = 16


class Channel:
    """One end; frames may be sent by any thread, and are received by one."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._sending = threading.Lock()

    def send(self, number: int, kind: MessageKind, parts: Sequence[Part] = ()) -> None:
        """Sends a frame; OSError: the other end is gone."""
        head = _HEAD.pack(number, kind, len(parts)) + b"".join(
            _LENGTH.pack(len(part)) for part in parts
        )
        with self._sending:
            self._socket.sendall(head)
            for part in parts:
                self._socket.sendall(part)

    def receive(self) -> Frame | None:
        """The next frame; None: the other end is gone."""
        head = self._exactly(_HEAD.size)
        if head is None:
            return None
        number, kind, count = _HEAD.unpack(head)
        if count > _MAX_PARTS:
            return None
        lengths = self._exactly(count * _LENGTH.size)
        if lengths is None:
            return None
        parts = []
        for (length,) in _LENGTH.iter_unpack(lengths):
            part = self._exactly(length)
            if part is None:
                return None
            parts.append(part)
        return number, kind, parts

    def close(self) -> None:
        """Closes it; receivers are notified."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _exactly(self, length: int) -> bytearray | None:
        found = bytearray(length)
        left = memoryview(found)
        while left:
            try:
                got = self._socket.recv_into(left)
            except OSError:
                return None
            if not got:
                return None
            left = left[got:]
        return found


class RemoteRefusal(Exception):
    """The other end refuses.

    Attributes:
        code: name of the gRPC status.
        text: for display.
    """

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


class Asker:
    """Sends requests at one end of a channel, and waits for answers."""

    def __init__(self, channel: Channel, gone: Callable[[], None]) -> None:
        """Begins to listen.

        Args:
            channel: to the service's process.
            gone: called when its other end is gone.
        """
        self._channel = channel
        self._gone = gone
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._open: dict[int, Future[list[bytearray]]] = {}
        threading.Thread(target=self._listen, name="answers", daemon=True).start()

    def ask(self, kind: MessageKind, parts: Sequence[Part] = ()) -> Future[list[bytearray]]:
        """Sends a request; the answer's parts, or `RemoteRefusal`, come later."""
        answer: Future[list[bytearray]] = Future()
        with self._lock:
            number = next(self._numbers)
            self._open[number] = answer
        try:
            self._channel.send(number, kind, parts)
        except OSError:
            self._gone()
        return answer

    async def answer(self, kind: MessageKind, parts: Sequence[Part] = ()) -> list[bytearray]:
        """Waits for the answer in an event loop; raises as the result of `ask` does."""
        return await asyncio.wrap_future(self.ask(kind, parts))

    def tell(self, kind: MessageKind, parts: Sequence[Part] = ()) -> None:
        """Sends a message that needs no answer."""
        try:
            self._channel.send(0, kind, parts)
        except OSError:
            self._gone()

    def _listen(self) -> None:
        while (frame := self._channel.receive()) is not None:
            number, kind, parts = frame
            with self._lock:
                answer = self._open.pop(number, None)
            if answer is None or not answer.set_running_or_notify_cancel():
                continue
            if kind == MessageKind.ANSWER:
                answer.set_result(parts)
            else:
                answer.set_exception(RemoteRefusal(parts[0].decode(), parts[1].decode()))
        self._gone()
