# SPDX-License-Identifier: Apache-2.0
"""The public sockets of a service and the gates behind them, opened and closed together."""

import socket
from dataclasses import replace
from pathlib import Path

from bridge.rpc.transport.callers import CallerPolicy
from bridge.rpc.transport.complaints import OnRefused
from bridge.rpc.transport.descriptors import affordable
from bridge.rpc.transport.gate import ConnectionLimits, Gate
from bridge.rpc.transport.listening import UnixListener, listen_tcp
from bridge.rpc.transport.tls import RefusingServer

_MAX_CONTROLLERS = 128
"""Connections to each of the controller's gates; far below the descriptors `select` can take."""
_MAX_AGENTS = 8192
"""Connections of agents; they may all have one certificate."""
_MAX_NEWCOMERS = 256
"""Connections to a gate whose callers have not shown who they are."""
_KEPT_DESCRIPTORS = 40
"""Descriptors reserved for the store, the solver, the log, the private channel etc."""


class Gates:
    """Sockets that listen, gates, and the servers that answer refused callers."""

    def __init__(self, refused: OnRefused) -> None:
        """Starts without sockets.

        Args:
            refused: told of every connection that a gate turns away.
        """
        self._refused = refused
        self._listening: list[UnixListener | socket.socket] = []
        self._gates: list[Gate] = []
        self._strangers: list[RefusingServer] = []

    def listen(self, path: Path, key: str, patience_s: float = 0.0) -> socket.socket:
        """A Unix socket that listens; see `UnixListener`."""
        listener = UnixListener(path, key, patience_s=patience_s)
        self._listening.append(listener)
        return listener.socket

    def listen_tcp(self, address: str, key: str) -> socket.socket:
        """A TCP socket that listens; see `bridge.rpc.transport.listening.listen_tcp`."""
        listener = listen_tcp(address, key)
        self._listening.append(listener)
        return listener

    def refuse(self, server: RefusingServer) -> None:
        """Stops this server when the gates are closed."""
        self._strangers.append(server)

    def to_controllers(
        self, listener: socket.socket, key: str, policy: CallerPolicy, doors: int
    ) -> None:
        """A gate for controllers: each of `doors` has its own share of the descriptors."""
        bounds = _limits(_MAX_CONTROLLERS, _KEPT_DESCRIPTORS, doors)
        self._gates.append(Gate(listener, key, policy, bounds=bounds, refused=self._refused))

    def to_agents(self, listener: socket.socket, policy: CallerPolicy) -> None:
        kept = _KEPT_DESCRIPTORS + 3 * (_MAX_CONTROLLERS + _MAX_NEWCOMERS)
        bounds = _limits(_MAX_AGENTS, kept)
        bounds = replace(bounds, per_owner=bounds.total)
        self._gates.append(Gate(listener, "agents", policy, bounds=bounds, refused=self._refused))

    def start(self) -> None:
        """Admits callers."""
        for gate in self._gates:
            gate.start()

    def close(self) -> None:
        """Closes all connections and sockets."""
        for strangers in self._strangers:
            strangers.stop()
        for gate in self._gates:
            gate.close()
        for listener in self._listening:
            listener.close()


def _limits(admitted: int, kept: int, gates: int = 1) -> ConnectionLimits:
    """At most so many admitted callers, and newcomers; where descriptors are short, fewer."""
    total = affordable(admitted + _MAX_NEWCOMERS, kept, gates)
    newcomers = max(1, min(_MAX_NEWCOMERS, max(total // 4, total - admitted)))
    return ConnectionLimits(total=total - newcomers, newcomers=newcomers)
