# SPDX-License-Identifier: Apache-2.0
"""Admits connections to a gRPC server: known users only, and a limited share for each.

gRPC does not identify the peer of a Unix socket. So the gate listens at the public
socket, determines the peer's user, closes connections of users who are not allowed, and relays the
others to the server's private socket. If the server needs to know the user, the gate introduces the
connection (`introductions.py`).

Rules
    1. One thread serves all connections of a gate, and never blocks.
    2. An owner (a user; over TCP a certificate) has at most `per_owner` connections. If there are
       `total` in all, one of the owner with most connections is closed. Callers that have not shown
       who they are, or may not call, have `newcomers` places of their own (`newcomers.py`).
    3. Connections are closed that send no greeting within `greeting_s`, whose client reads nothing
       for `stall_s`, or that are older than `age_s`.
    4. If descriptors run out, a spare one is used to accept and refuse connections.
    5. A connection whose identity is banned meanwhile is closed within `_SWEEP_S`.
    6. Refused connections are counted and logged: the first of an owner at once, the others as a
       sum once a minute.
"""

import logging
import math
import selectors
import socket
import threading
import time
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

from bridge.rpc.transport.accepting import Accepting
from bridge.rpc.transport.callers import CallerPolicy, Handshake, KnownCaller
from bridge.rpc.transport.complaints import Complaints, OnRefused, nobody
from bridge.rpc.transport.newcomers import Newcomers
from bridge.rpc.transport.relay import READ, ByteAllowance, RelayedConnection

_log = logging.getLogger(__name__)
_SWEEP_S = 1.0


@dataclass(frozen=True)
class ConnectionLimits:
    """The limits of one gate.

    Attributes:
        per_owner, total: connections of admitted callers.
        greeting_s: until the first byte, or the end of the TLS handshake.
        stall_s: time for which a side may not read pending data.
    """

    per_owner: int = 16
    total: int = 128
    newcomers: int = 64
    greeting_s: float = 10.0
    stall_s: float = 60.0
    age_s: float = math.inf


class Gate:
    """Listens at a socket and admits callers that its policy accepts."""

    def __init__(
        self,
        listener: socket.socket,
        key: str,
        policy: CallerPolicy,
        *,
        bounds: ConnectionLimits | None = None,
        refused: OnRefused = nobody,
    ) -> None:
        """Prepares a gate.

        Args:
            listener: a socket that listens; closed by the caller.
            key: names the gate in log and metrics.
            refused: called for every rejection.
        """
        self._key = key
        self._policy = policy
        self._bounds = bounds or ConnectionLimits()
        self._tell = Complaints(key, refused)
        self._links: set[RelayedConnection] = set()
        self._newcomers = Newcomers[Handshake | RelayedConnection](self._bounds.newcomers)
        self._count: Counter[Hashable] = Counter()
        self._allowances: dict[Hashable, ByteAllowance] = {}
        self._accepting = Accepting(listener, self._out_of_descriptors)
        self._selector = selectors.DefaultSelector()
        self._heard, self._woken = socket.socketpair()
        self._closing = False
        self._swept = time.monotonic()
        self._thread = threading.Thread(target=self._run, name=f"gate {key}", daemon=True)

    def start(self) -> None:
        """Begins to admit callers."""
        self._thread.start()

    def close(self) -> None:
        """Closes all connections; the listener is its owner's to close."""
        self._closing = True
        # The thread may end before it is woken, so the wake-up descriptors are closed here.
        if self._thread.is_alive():
            self._woken.send(b"x")
            self._thread.join(timeout=5)
        else:
            self._end()
        self._heard.close()
        self._woken.close()

    # ------------------------------------------------------------------ the loop

    def _run(self) -> None:
        self._selector.register(self._accepting.socket, READ, None)
        self._selector.register(self._heard, READ, None)
        try:
            while not self._closing:
                try:
                    self._turn()
                except Exception:
                    # Whichever connection it was: none may keep the gate from serving others.
                    _log.exception("gate %s failed: all its connections are closed", self._key)
                    for link in list(self._links):
                        self._leave(link)
                    for newcomer in self._newcomers:
                        self._send_away(newcomer)
        finally:
            self._end()

    def _turn(self) -> None:
        """Waits for events, and handles them and the deadlines."""
        ready = self._selector.select(self._timeout_s(time.monotonic()))
        now = time.monotonic()
        found = {key.data for key, _ in ready if key.data is not None}
        for one in sorted(found, key=self._newcomers.__contains__):  # who is admitted comes first
            self._go_on(one, now)
        if any(key.fileobj is self._accepting.socket for key, _ in ready):
            self._accept(now)
        room = self._newcomers.room_at(now) <= now
        self._watch(self._accepting.socket, READ * room, None)
        for link in [link for link in self._links if 0 < link.resume_at <= now]:
            link.resume_at = 0
            self._go_on(link, now)
        if now - self._swept >= _SWEEP_S:
            self._swept = now
            self._sweep(now)

    def _timeout_s(self, now: float) -> float | None:
        if not self._links and not self._newcomers and not self._tell.owes:
            return None
        paused = [link.resume_at - now for link in self._links if link.resume_at > now]
        if (room_at := self._newcomers.room_at(now)) > now:
            paused.append(room_at - now)
        return max(min([_SWEEP_S, *paused]), 0.001)

    def _end(self) -> None:
        for link in list(self._links):
            link.close()
        for newcomer in self._newcomers:
            self._send_away(newcomer)
        self._links.clear()
        self._selector.close()
        self._accepting.close()

    def _watch(self, sock: socket.socket, events: int, data: object) -> None:
        known = self._selector.get_map().get(sock)
        if known is None:
            if events:
                self._selector.register(sock, events, data)
        elif not events:
            self._selector.unregister(sock)
        elif known.events != events or known.data is not data:
            self._selector.modify(sock, events, data)

    def _forget(self, sock: socket.socket) -> None:
        if sock.fileno() >= 0 and sock in self._selector.get_map():
            self._selector.unregister(sock)

    # ------------------------------------------------------------------ coming

    def _accept(self, now: float) -> None:
        for client in self._accepting.waiting(lambda: self._newcomers.room_at(now) <= now):
            try:
                self._admit(client, now)
            except OSError as error:
                client.close()
                self._tell.complain("server", None, now, error.strerror or str(error))

    def _out_of_descriptors(self) -> None:
        self._tell.complain("descriptors", None, time.monotonic())

    def _admit(self, client: socket.socket, now: float) -> None:
        found = self._policy.introduce(client)
        if isinstance(found, KnownCaller):
            if found.target is None:
                self._tell.complain("user", found.owner, now)
                client.close()
            else:
                self._enter(client, found, now)
            return
        self._come(found, found.source, now)
        self._greet(found, now)

    def _come(self, newcomer: Handshake | RelayedConnection, source: Hashable, now: float) -> None:
        """Gives a place to a newcomer, if necessary that of another one."""
        other = self._newcomers.in_the_way(now)
        if other is not None:
            self._tell.complain("connections", self._newcomers.source(other), now)
            self._send_away(other)
        self._newcomers.add(newcomer, source, now)

    def _greet(self, handshake: Handshake, now: float) -> None:
        try:
            found = handshake.step()
        except OSError:
            self._send_away(handshake)
            return
        if isinstance(found, int):
            self._watch(handshake.client, found, handshake)
            return
        self._forget(handshake.client)
        self._newcomers.remove(handshake)
        if found.target is None:
            self._tell.complain("user", found.owner, now)
            handshake.client.close()
            return
        try:
            self._enter(handshake.client, found, now, handshake.source)
        except OSError as error:
            handshake.client.close()
            self._tell.complain("server", None, now, error.strerror or str(error))

    def _enter(
        self, client: socket.socket, caller: KnownCaller, now: float, source: Hashable = None
    ) -> None:
        assert caller.target is not None
        if caller.unwelcome:
            self._tell.complain("user", caller.owner, now)
        elif not self._make_room(caller.owner, now):
            client.close()
            return
        server, forget = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), None
        try:
            if caller.introduction is not None:
                forget = caller.introduction(server)
            server.settimeout(2)
            server.connect(caller.target)
        except OSError:
            server.close()
            if forget is not None:
                forget()
            raise
        allowance = self._allowances.setdefault(caller.owner, caller.allowance) \
            if caller.allowance is not None else None  # fmt: skip
        link = RelayedConnection(client, server, caller.owner, allowance, now)
        link.identity, link.on_close = caller.identity, forget
        if caller.unwelcome:
            self._come(link, source, now)
        else:
            self._count[caller.owner] += 1
        self._links.add(link)
        self._go_on(link, now)

    def _make_room(self, owner: Hashable, now: float) -> bool:
        """Whether an owner may have another connection; may close one of another's."""
        held = self._count[owner]
        if held >= self._bounds.per_owner:
            self._tell.complain("connections", owner, now)
            return False
        if self._count.total() < self._bounds.total:
            return True
        maximum, count = self._count.most_common(1)[0]
        self._tell.complain("connections", maximum if count > held + 1 else owner, now)
        if count <= held + 1:
            return False
        theirs = [link for link in self._links if link.owner == maximum]
        self._leave(min(theirs, key=lambda link: link.moved))
        return True

    # ------------------------------------------------------------------ staying and going

    def _go_on(self, found: Handshake | RelayedConnection, now: float) -> None:
        if isinstance(found, RelayedConnection):
            if found in self._links:
                found.step(now)
                self._settle(found, now)
        elif found in self._newcomers:
            self._greet(found, now)

    def _settle(self, link: RelayedConnection, now: float) -> None:
        if link.over:
            self._leave(link)
            return
        interest = link.interest(now)
        if interest != link.watched:  # else it is registered so already, as in most turns
            link.watched = interest
            for sock, events in zip(link.sockets, interest, strict=True):
                self._watch(sock, events, link)

    def _leave(self, link: RelayedConnection) -> None:
        for sock in link.sockets:
            self._forget(sock)
        link.close()
        if link not in self._links:
            return
        self._links.discard(link)
        if link in self._newcomers:
            self._newcomers.remove(link)
        else:
            self._less(link.owner)

    def _send_away(self, newcomer: Handshake | RelayedConnection) -> None:
        if isinstance(newcomer, RelayedConnection):
            self._leave(newcomer)
            return
        self._forget(newcomer.client)
        newcomer.client.close()
        self._newcomers.remove(newcomer)

    def _less(self, owner: Hashable) -> None:
        self._count[owner] -= 1
        if self._count[owner] <= 0:
            del self._count[owner]

    def _sweep(self, now: float) -> None:
        bounds, banned = self._bounds, self._policy.banned()
        for link in list(self._links):
            if banned is not None and link.identity is not None and banned(link.identity):
                reason = "revoked"
            elif not link.heard and now - link.began > bounds.greeting_s:
                reason = "greeting"
            elif link.stuck_since is not None and now - link.stuck_since > bounds.stall_s:
                reason = "stalled"
            elif now - link.began > bounds.age_s:
                reason = "age"
            else:
                continue
            self._tell.complain(reason, link.owner, now)
            self._leave(link)
        for newcomer in self._newcomers:
            late = now - self._newcomers.came(newcomer) > bounds.greeting_s
            if late and not isinstance(newcomer, RelayedConnection):
                self._tell.complain("greeting", newcomer.source, now)
                self._send_away(newcomer)
        for owner in [owner for owner in self._allowances if owner not in self._count]:
            if not self._allowances[owner].wait_s(now):
                allowance = self._allowances[owner]
                if allowance.left >= allowance.burst:  # no debt: its record may be dropped
                    del self._allowances[owner]
        self._tell.sum_up(now)
