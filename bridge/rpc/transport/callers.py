# SPDX-License-Identifier: Apache-2.0
"""The identity of callers, and the routes of their connections."""

import socket
import struct
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Protocol

from bridge.rpc.transport.introductions import Introduction, Introductions
from bridge.rpc.transport.relay import ByteAllowance

_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid

Route = Callable[[int], str | None]
"""From user id to the private socket that serves it; None: refused."""


@dataclass
class KnownCaller:
    """An identified caller.

    Attributes:
        owner: key for counting connections.
        target: the private socket; None: refused.
        allowance: the allowance of bytes; None: no bound.
        introduction: tells the server behind the gate who calls; None: it need not know.
        unwelcome: refused; a server behind the target answers that.
        identity: for `CallerPolicy.banned`; None: it is never banned.
    """

    owner: Hashable
    target: str | None
    allowance: ByteAllowance | None = None
    introduction: Introduction | None = None
    unwelcome: bool = False
    identity: Hashable = None


class CallerPolicy(Protocol):
    """Identifies the callers of a gate."""

    def introduce(self, client: socket.socket) -> "KnownCaller | Handshake":
        """Examines a new connection; may raise OSError."""

    def banned(self) -> Callable[[Hashable], bool] | None:
        """Whether an admitted identity has been banned; None: no identity can be."""


class Handshake(Protocol):
    """An introduction that takes several messages.

    Attributes:
        client: the socket to be used afterwards.
    """

    client: socket.socket
    source: Hashable

    def step(self) -> "KnownCaller | int":
        """Continues: the caller, or what is waited for. OSError: it failed."""


class Peers:
    """Identifies the peer of a Unix socket by the kernel's credentials."""

    def __init__(
        self,
        route: Route,
        *,
        introductions: Introductions[int] | None = None,
        allowance: Callable[[int], ByteAllowance | None] = lambda _uid: None,
    ) -> None:
        """Routes users.

        Args:
            route: to which private socket.
            introductions: tell the server the user; None: it need not know.
            allowance: the allowance of bytes for a user, made with the user's first connection.
        """
        self._route = route
        self._introductions = introductions
        self._allowance = allowance

    def introduce(self, client: socket.socket) -> KnownCaller:
        """Reads the credentials."""
        raw = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        _, uid, _ = _CREDENTIALS.unpack(raw)
        target = self._route(uid)
        if target is None:
            return KnownCaller(uid, None)
        known = self._introductions
        introduction = known.of(uid) if known is not None else None
        return KnownCaller(uid, target, self._allowance(uid), introduction)

    def banned(self) -> None:
        """No admitted user is banned."""
