# SPDX-License-Identifier: Apache-2.0
"""Tells a server behind a gate who is at the other end of a connection.

gRPC shows a server nothing of its peer but the address. So the gate gives its end of a connection
an address in the private directory of the service, and notes whose connection it is.

Rules
    1. No other user can enter the directory (mode 0700). So nobody else can take an address before
       the gate does, or connect to the server from one. The abstract namespace has no owners: what
       is bound there is listed in /proc/net/unix, and every user can bind what comes next.
    2. An address says nothing by itself: what it stands for is only in this process.
    3. An address is valid for as long as its connection.
"""

import itertools
import os
import socket
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, Generic, TypeVar
from urllib.parse import unquote

Introduction = Callable[[socket.socket], Callable[[], None]]
"""Gives the gate's end of a connection its address, before it is connected; returns what ends the
address. May raise OSError."""

_NUMBERS: Final = itertools.count(1)


Caller = TypeVar("Caller")


class Introductions(Generic[Caller]):
    """The callers of a gate's connections; the gate's thread writes, the server reads."""

    def __init__(self, directory: Path) -> None:
        """Begins without any.

        Args:
            directory: a private one, with a short path: addresses of sockets are.
        """
        self._directory = directory
        self._callers: dict[str, Caller] = {}

    def of(self, caller: Caller) -> Introduction:
        """Introduces a caller by the connection that it is called with."""
        return partial(self._introduce, caller)

    def _introduce(self, caller: Caller, connection: socket.socket) -> Callable[[], None]:
        path = self._directory / f"{os.getpid()}-{next(_NUMBERS)}"
        connection.bind(str(path))
        path.unlink()  # the address remains the connection's, and no file is left behind
        self._callers[str(path)] = caller
        return lambda: self._forget(str(path))

    def _forget(self, address: str) -> None:
        self._callers.pop(address, None)

    def caller(self, peer: str) -> Caller | None:
        """Who calls, by gRPC's name of the peer; None: it was not connected by the gate."""
        scheme, _, address = peer.partition(":")
        return self._callers.get(unquote(address)) if scheme == "unix" else None
