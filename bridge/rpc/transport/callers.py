# SPDX-License-Identifier: Apache-2.0
"""The identity of callers, and the routes of their connections."""

import secrets
import socket
import struct
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Protocol

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
        allowance: of bytes; None: no bound.
        badge: address to connect from; None: any.
        unwelcome: refused; a server behind the target answers that.
        identity: for `CallerPolicy.banned`; None: it is never banned.
    """

    owner: Hashable
    target: str | None
    allowance: ByteAllowance | None = None
    badge: str | None = None
    unwelcome: bool = False
    identity: Hashable = None


class Badges:
    """Addresses that give a server behind a gate the user of a connection.

    They are unguessable names in the kernel's abstract namespace. Only the gate can connect to the
    private socket, so only it can use them.
    """

    def __init__(self) -> None:
        self._secret = secrets.token_hex(8)
        self._count = 0

    def of(self, uid: int) -> str:
        """A new address for a connection of a user."""
        self._count += 1
        return f"\0schedbridge-{self._secret}-{uid}-{self._count}"

    def read(self, peer: str) -> int | None:
        """The user, from gRPC's name of the peer; None: it was not connected by the gate."""
        head, _, rest = peer.partition(f"unix-abstract:schedbridge-{self._secret}-")
        uid, _, _ = rest.partition("-")
        return int(uid) if not head and uid.isdigit() else None


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
        owner: key for counting it meanwhile.
    """

    client: socket.socket
    owner: Hashable

    def step(self) -> "KnownCaller | int":
        """Continues: the caller, or what is waited for. OSError: it failed."""


class Peers:
    """Identifies the peer of a Unix socket by the kernel's credentials."""

    def __init__(
        self,
        route: Route,
        *,
        badges: Badges | None = None,
        allowance: Callable[[int], ByteAllowance | None] = lambda _uid: None,
    ) -> None:
        """Routes users.

        Args:
            route: to which private socket.
            badges: makes the addresses from which they are connected; None: any.
            allowance: of bytes for a user, made with the user's first connection.
        """
        self._route = route
        self._badges = badges
        self._allowance = allowance

    def introduce(self, client: socket.socket) -> KnownCaller:
        """Reads the credentials."""
        raw = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        _, uid, _ = _CREDENTIALS.unpack(raw)
        target = self._route(uid)
        badge = self._badges.of(uid) if self._badges is not None and target is not None else None
        return KnownCaller(uid, target, self._allowance(uid) if target is not None else None, badge)

    def banned(self) -> None:
        """No admitted user is banned."""
