# SPDX-License-Identifier: Apache-2.0
"""Relays bytes between two non-blocking sockets, with limits in time and rate.

Rules
    1. Data read from one side is written to the other before more is read, so that a side that
       does not read costs at most one buffer of `CHUNK` bytes.
    2. When one side has closed, pending data is delivered to the other; then both are closed.
    3. Bytes from the client are charged to its owner's `ByteAllowance`. When that is used up,
       nothing is read until it has been refilled.
"""

import contextlib
import socket
import ssl
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

CHUNK = 1 << 18

READ, WRITE = 1, 2


@dataclass
class ByteAllowance:
    """Bytes that one owner's clients may send: a burst, and then a rate per second."""

    rate: float
    burst: float
    left: float = field(init=False)
    at: float = 0.0

    def __post_init__(self) -> None:
        self.left = self.burst

    def wait_s(self, now: float) -> float:
        """The time for which reading must pause; 0: no pause."""
        self.left = min(self.burst, self.left + (now - self.at) * self.rate)
        self.at = now
        return 0.0 if self.left > 0 else (1 - self.left) / self.rate

    def spend(self, size: int) -> None:
        """Counts bytes that were read."""
        self.left -= size


class _Side:
    """One socket of a link.

    Attributes:
        pending: bytes that it has not read yet.
        want: additional events that TLS waits for; 0: none.
        ended: no more data will come from it.
    """

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.socket = sock
        self.pending = memoryview(b"")
        self.want = 0
        self.ended = False

    def receive(self) -> bytes | None:
        """The available data; None: nothing yet; empty: it has ended."""
        try:
            return self.socket.recv(CHUNK)
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError):
            return None
        except ssl.SSLWantWriteError:
            self.want = WRITE
            return None
        except OSError:
            return b""

    def flush(self) -> bool:
        """Writes pending data; returns whether any was written."""
        moved = False
        while self.pending:
            try:
                sent = self.socket.send(self.pending)
            except (BlockingIOError, InterruptedError, ssl.SSLWantWriteError):
                break
            except ssl.SSLWantReadError:
                self.want = READ
                break
            except OSError:
                self.pending, self.ended = memoryview(b""), True
                break
            self.pending, moved = self.pending[sent:], True
        return moved


class RelayedConnection:
    """A client and the server behind it.

    Attributes:
        owner: key for counting connections.
        identity: the identity of the caller; None: irrelevant.
        on_close: called once it is closed; None: nothing.
        began, moved: when it was made, and when bytes moved last.
        stuck_since: since when one side does not read pending data; None: it does.
        resume_at: nothing is read from the client before that.
        over: nothing can be moved any more; must be closed.
        watched: events for which its sockets are watched.
    """

    def __init__(
        self,
        client: socket.socket,
        server: socket.socket,
        owner: object,
        allowance: ByteAllowance | None,
        now: float,
    ) -> None:
        self._client, self._server = _Side(client), _Side(server)
        self._allowance = allowance
        self.owner = owner
        self.identity: Hashable = None
        self.on_close: Callable[[], object] | None = None
        self.began = self.moved = now
        self.heard = False
        self.stuck_since: float | None = None
        self.resume_at = 0.0
        self.over = False
        self.watched: tuple[int, int] | None = None

    @property
    def sockets(self) -> tuple[socket.socket, socket.socket]:
        """The client's and the server's."""
        return self._client.socket, self._server.socket

    def step(self, now: float) -> None:
        """Moves available data."""
        client, server = self._client, self._server
        client.want = server.want = 0
        moved = self._pump(client, server, self._allowance, now)
        moved |= self._pump(server, client, None, now)
        if moved:
            self.moved = now
        if not client.pending and not server.pending:
            self.stuck_since = None
        elif moved or self.stuck_since is None:
            self.stuck_since = now
        # A side that has ended does not read any more either.
        self.over = (client.ended and not server.pending) or (server.ended and not client.pending)

    def _pump(
        self, source: _Side, sink: _Side, allowance: ByteAllowance | None, now: float
    ) -> bool:
        moved = sink.flush()
        while not sink.pending and not source.ended:
            if allowance is not None and (wait_s := allowance.wait_s(now)):
                self.resume_at = now + wait_s
                break
            data = source.receive()
            if data is None:
                break
            moved = True
            if not data:
                source.ended = True
                break
            if allowance is not None:
                allowance.spend(len(data))
            self.heard |= source is self._client
            sink.pending = memoryview(data)
            sink.flush()
            if not isinstance(source.socket, ssl.SSLSocket):
                break  # the selector reports remaining data again; data buffered by TLS it does not
        return moved

    def interest(self, now: float) -> tuple[int, int]:
        """The events for which client and server are watched: `READ`, `WRITE`, both or none."""
        client, server = self._client, self._server
        of_client = WRITE * bool(client.pending) | client.want
        of_server = WRITE * bool(server.pending) | server.want
        if not server.pending and not client.ended and self.resume_at <= now:
            of_client |= READ
        if not client.pending and not server.ended:
            of_server |= READ
        return of_client, of_server

    def close(self) -> None:
        """Closes both sockets."""
        for side in (self._client, self._server):
            with contextlib.suppress(OSError):
                side.socket.close()
        if self.on_close is not None:
            self.on_close()
