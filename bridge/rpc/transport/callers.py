# SPDX-License-Identifier: Apache-2.0
"""Who is at the other end of a connection, and where it is led."""

import secrets
import socket
import struct
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Protocol

from bridge.rpc.transport.relay import Allowance

_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid

Route = Callable[[int], str | None]
"""User id to the private socket that serves it; None: may not enter."""


@dataclass
class Known:
    """A caller, once it is known who it is.

    Attributes:
        owner: whom connections are counted for.
        target: the private socket; None: may not enter.
        allowance: of bytes; None: no bound.
        badge: address to connect from; None: any.
        unwelcome: may not enter; a server behind the target answers that.
        identity: who it is, for `Policy.banned`; None: it stays as long as it likes.
    """

    owner: Hashable
    target: str | None
    allowance: Allowance | None = None
    badge: str | None = None
    unwelcome: bool = False
    identity: Hashable = None


class Badges:
    """Addresses that tell a server behind a gate which user a connection is of.

    They are names in the kernel's abstract namespace that nobody can guess beforehand. Only the
    gate can connect to the private socket, so only it can show one.
    """

    def __init__(self) -> None:
        self._secret = secrets.token_hex(8)
        self._count = 0

    def of(self, uid: int) -> str:
        """A new address for a connection of a user."""
        self._count += 1
        return f"\0schedbridge-{self._secret}-{uid}-{self._count}"

    def read(self, peer: str) -> int | None:
        """The user, from what gRPC calls its peer; None: it was not connected by the gate."""
        head, _, rest = peer.partition(f"unix-abstract:schedbridge-{self._secret}-")
        uid, _, _ = rest.partition("-")
        return int(uid) if not head and uid.isdigit() else None


class Policy(Protocol):
    """How a gate finds out who calls."""

    def introduce(self, client: socket.socket) -> "Known | Handshake":
        """Looks at a new connection; may raise OSError."""

    def banned(self) -> Callable[[Hashable], bool] | None:
        """Says of an identity that was let in whether it must leave; None: nobody must."""


class Handshake(Protocol):
    """An introduction that takes several messages.

    Attributes:
        client: the socket, as it is to be used afterwards.
        owner: whom it is counted for meanwhile.
    """

    client: socket.socket
    owner: Hashable

    def step(self) -> "Known | int":
        """Goes on: who it is, or what is waited for. OSError: it has failed."""


class Peers:
    """Asks the kernel who is at the other end of a Unix socket."""

    def __init__(
        self,
        route: Route,
        *,
        badges: Badges | None = None,
        allowance: Callable[[int], Allowance | None] = lambda _uid: None,
    ) -> None:
        """Routes users.

        Args:
            route: to which private socket.
            badges: makes the addresses from which they are connected; None: any.
            allowance: of bytes for a user, made when the user's first connection comes.
        """
        self._route = route
        self._badges = badges
        self._allowance = allowance

    def introduce(self, client: socket.socket) -> Known:
        """Reads the credentials."""
        raw = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        _, uid, _ = _CREDENTIALS.unpack(raw)
        target = self._route(uid)
        badge = self._badges.of(uid) if self._badges is not None and target is not None else None
        return Known(uid, target, self._allowance(uid) if target is not None else None, badge)

    def banned(self) -> None:
        """Whoever is in may stay."""
