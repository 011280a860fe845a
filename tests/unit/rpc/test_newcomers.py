# SPDX-License-Identifier: Apache-2.0
"""Who has shown nothing does not compete with who has: places of newcomers, and of the admitted."""

import contextlib
import socket
from itertools import cycle

import pytest

from bridge.rpc.transport.callers import KnownCaller
from bridge.rpc.transport.gate import ConnectionLimits, Gate
from bridge.rpc.transport.listening import UnixListener
from bridge.rpc.transport.newcomers import FAIR_S, Newcomers, source_of
from bridge.rpc.transport.relay import READ

# ------------------------------------------------------------------ places


def test_there_is_room_up_to_the_bound():
    places = Newcomers(2)
    for name in "ab":
        assert places.in_the_way(10.0) is None
        assert places.room_at(10.0) == 10.0
        places.add(name, name, 10.0)
    assert list(places) == ["a", "b"]
    assert "a" in places
    assert places.room_at(10.0) == 10.0 + FAIR_S
    assert places.room_at(20.0) == 20.0
    places.remove("a")
    places.remove("a")
    assert "a" not in places
    assert len(places) == 1
    assert places.room_at(10.0) == 10.0


def test_the_oldest_of_the_source_with_most_makes_room():
    places = Newcomers(5)
    for at, (name, source) in enumerate(["ax", "by", "cy", "dx", "ey"]):
        places.add(name, source, float(at))
    gone = []
    while len(gone) < 9 and (one := places.in_the_way(100.0)) is not None:
        gone.append(one)
        places.remove(one)
        places.add(f"{one}'", "z", 100.0)
    # y has three, then both have two and the oldest goes, ...; then z has most, all of them young.
    assert gone == ["b", "a", "c"]
    assert places.room_at(100.0) == 100.0 + FAIR_S


def test_a_young_one_is_not_sent_away():
    places = Newcomers(2)
    places.add("old", "x", 0.0)
    places.add("young", "y", 1.0)
    assert places.in_the_way(FAIR_S / 2) is None
    assert places.in_the_way(1.0) == "old"
    places.remove("old")
    places.add("younger", "y", 1.0)
    assert places.in_the_way(1.0) is None
    assert places.room_at(1.0) == 1.0 + FAIR_S


def test_a_source_that_never_pauses_displaces_no_slow_newcomer_of_another():
    """Its own are replaced before they are much older than `FAIR_S`; the others' become older."""
    places, now = Newcomers(256), 0.0

    def come(name, source):
        nonlocal now
        now = places.room_at(now)
        other = places.in_the_way(now)
        if other is not None:
            places.remove(other)
        places.add(name, source, now)

    for turn in range(20):
        agents = [(turn, "ann"), (turn, "bob")]
        requested = now
        for agent in agents:
            come(agent, agent[1])
        assert now - requested <= 2 * FAIR_S
        for attempt in range(2000):
            come((turn, attempt), "eve")
            now += 1e-4
        assert now - requested > 4 * FAIR_S
        assert len(places) == 256
        assert set(agents) <= set(places)
        for agent in agents:
            places.remove(agent)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("127.0.0.1", "127.255.3.4", True),
        ("127.0.0.1", "::1", True),
        ("127.0.0.1", "::ffff:127.0.0.9", True),
        ("10.0.0.1", "10.0.0.10", False),
        ("10.0.0.1", "::ffff:10.0.0.1", True),
        ("10.0.0.1", "127.0.0.1", False),
        ("fd00:1::1", "fd00:1::ffff:1", True),
        ("fd00:1::1", "fd00:1:0:1::1", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
    ],
)
def test_sources(one, other, same):
    assert (source_of(one) == source_of(other)) is same


# ------------------------------------------------------------------ a gate


class Saying:
    """Its callers say their name in a first line; they come from different places in turn."""

    def __init__(self, target, known=("ann", "bob"), sources=range(1000)):
        self.target, self.known, self.sources = target, known, cycle(sources)

    def banned(self):
        return None

    def introduce(self, client):
        client.setblocking(False)
        return Introducing(client, next(self.sources), self)


class Introducing:
    def __init__(self, client, source, policy):
        self.client, self.source, self.policy = client, source, policy

    def step(self):
        try:
            name = self.client.recv(100).decode()
        except BlockingIOError:
            return READ
        if not name:
            raise ConnectionError
        stranger = name not in self.policy.known
        owner = f"{name} from {self.source}" if stranger else name
        return KnownCaller(owner, self.policy.target, unwelcome=stranger)


@pytest.fixture
def gate(tmp_path):
    """Makes a gate, and connects to it; the server behind it answers."""
    with contextlib.ExitStack() as stack:
        inner = UnixListener(tmp_path / "inner", "k")
        stack.callback(inner.close)

        def make(refused=lambda *_: None, sources=range(1000), **bounds):
            listener = UnixListener(tmp_path / "gate", "k")
            stack.callback(listener.close)
            policy = Saying(str(tmp_path / "inner"), sources=sources)
            limits = ConnectionLimits(**bounds)
            made = Gate(listener.socket, "k", policy, bounds=limits, refused=refused)
            made.start()
            stack.callback(made.close)

        def connect(name=""):
            client = stack.enter_context(socket.socket(socket.AF_UNIX))
            client.settimeout(60)
            client.connect(str(tmp_path / "gate"))
            if not name:
                return client
            client.sendall(name.encode())
            inner.socket.settimeout(60)
            server, _ = inner.socket.accept()
            stack.enter_context(server)
            server.sendall(b"welcome")
            assert client.recv(7) == b"welcome"
            return client, server

        yield make, connect


def alive(client, server):
    client.sendall(b"still")
    return server.recv(5) == b"still"


def closed(client):
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def test_half_open_connections_close_nobody_who_is_admitted(gate):
    make, connect = gate
    make(per_owner=6, total=12, newcomers=4)
    admitted = [connect("ann") for _ in range(6)] + [connect("bob") for _ in range(6)]
    idle = [connect() for _ in range(16)]  # as many places, from as many sources
    assert all(closed(client) for client in idle[:12])
    assert all(alive(*pair) for pair in admitted)


def test_half_open_connections_keep_nobody_out_who_is_known(gate):
    make, connect = gate
    make(per_owner=6, total=12, newcomers=4)
    idle = []
    for name in ("ann", "bob") * 6:
        idle += [connect() for _ in range(4)]
        assert alive(*connect(name))
    assert closed(idle[0])


def test_refused_callers_close_nobody_who_is_admitted(gate):
    make, connect = gate
    make(per_owner=6, total=12, newcomers=4)
    admitted = [connect("ann") for _ in range(6)] + [connect("bob") for _ in range(5)]
    strangers = [connect(f"eve{number}") for number in range(12)]
    assert all(closed(client) for client, _ in strangers[:8])
    admitted.append(connect("bob"))
    assert all(alive(*pair) for pair in admitted)


def test_an_address_with_many_newcomers_loses_them_first(gate):
    make, connect = gate
    told = []
    make(lambda *what: told.append(what[1]), sources=[1, 1, 1, 2], newcomers=4)
    idle = [connect() for _ in range(4)]
    assert alive(*connect("ann"))
    assert closed(idle[0])
    idle[3].setblocking(False)
    with pytest.raises(BlockingIOError):
        idle[3].recv(1)
    assert told == ["connections"]


def test_who_says_nothing_leaves_in_time(gate):
    make, connect = gate
    told = []
    make(lambda *what: told.append(what[1]), greeting_s=0.1)
    assert all(closed(client) for client in [connect(), connect()])
    assert told == ["greeting", "greeting"]
