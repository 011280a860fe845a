# SPDX-License-Identifier: Apache-2.0
"""The places of a service's gates: those of newcomers, and those of admitted callers."""

import contextlib
import itertools
import resource
import socket

import pytest

from bridge.rpc.transport.descriptors import raise_descriptor_limit
from bridge.rpc.transport.listening import UnixListener
from bridge.service.gates import Gates
from tests.unit.rpc.test_newcomers import Saying, alive, closed

NEWCOMERS, ADMITTED = 256, 128
KEPT = 40
"""Descriptors that the service keeps for everything else."""


@pytest.fixture
def gate(tmp_path, monkeypatch):
    """Opens the gate of a service that has so many descriptors, and connects to it."""
    raise_descriptor_limit()
    with contextlib.ExitStack() as stack:
        inner = UnixListener(tmp_path / "inner", "k")
        stack.callback(inner.close)
        inner.socket.settimeout(60)

        def opened(kind, sources, descriptors=1 << 20):
            monkeypatch.setattr(resource, "getrlimit", lambda _: (descriptors, descriptors))
            gates = Gates(lambda *_: None)
            stack.callback(gates.close)
            listener = gates.listen(tmp_path / "gate", "k")
            policy = Saying(str(tmp_path / "inner"), sources=sources)
            if kind == "controllers":
                gates.to_controllers(listener, "k", policy, doors=1)
            else:
                gates.to_agents(listener, policy)
            gates.start()

        def connect(name=""):
            client = stack.enter_context(socket.socket(socket.AF_UNIX))
            client.settimeout(60)
            client.connect(str(tmp_path / "gate"))
            if not name:
                return client
            client.sendall(name.encode())
            server, _ = inner.socket.accept()
            return client, stack.enter_context(server)

        yield opened, connect


def is_open(client):
    client.setblocking(False)
    try:
        return client.recv(1) != b""
    except BlockingIOError:
        return True


@pytest.mark.parametrize("kind", ["controllers", "agents"])
def test_the_source_with_most_newcomers_gives_way_and_nobody_who_is_admitted(gate, kind):
    """Two sources fill all places; those who show who they are come in, and stay."""
    opened, connect = gate
    of_most, others = range(NEWCOMERS - 56), range(56)
    opened(kind, [*("ann" for _ in range(4)), *(1 for _ in of_most), *(2 for _ in others),
                  *itertools.repeat("bob", 4)])  # fmt: skip
    admitted = [connect("ann") for _ in range(4)]
    many, few = [connect() for _ in of_most], [connect() for _ in others]
    admitted += [connect("bob") for _ in range(4)]
    assert closed(many[0])
    gone = sum(not is_open(client) for client in many)
    assert 1 <= gone <= 4  # one at a time: the place of who is admitted is free again
    assert all(is_open(client) for client in few)
    assert all(alive(*pair) for pair in admitted)


def test_where_descriptors_are_short_both_have_fewer_places(gate):
    """Of 20 connections a quarter is for newcomers: they take none from the others."""
    opened, connect = gate
    opened("controllers", ["ann", "bob"], KEPT + 3 * 20)
    admitted = [connect(name) for name in ("ann", "bob") * 7] + [connect("ann")]
    client = connect()
    client.sendall(b"bob")
    assert closed(client)
    idle = [connect() for _ in range(10)]
    assert all(closed(client) for client in idle[:5])
    assert all(is_open(client) for client in idle[5:])
    assert all(alive(*pair) for pair in admitted)
