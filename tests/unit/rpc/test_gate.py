# SPDX-License-Identifier: Apache-2.0
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from bridge.errors import ConfigError
from bridge.rpc.transport.callers import KnownCaller, Peers
from bridge.rpc.transport.complaints import Complaints
from bridge.rpc.transport.gate import ConnectionLimits, Gate
from bridge.rpc.transport.listening import UnixListener, answers
from bridge.rpc.transport.relay import ByteAllowance

OWN = os.geteuid()


@pytest.fixture
def echo(tmp_path):
    """A private server that says what it hears."""
    path = tmp_path / "private"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen()

    def serve(client):
        with client, contextlib.suppress(OSError):  # the gate may reset it
            while data := client.recv(65536):
                client.sendall(data)

    def accept():
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield str(path)
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@pytest.fixture
def gates(tmp_path):
    made = []

    def make(route, name="gate", *, refused=lambda *_: None, allowance=None, **bounds):
        listener = UnixListener(tmp_path / name, "controller.socket")
        peers = Peers(route, allowance=allowance or (lambda _uid: None))
        gate = Gate(
            listener.socket,
            "controller.socket",
            peers,
            bounds=ConnectionLimits(**bounds),
            refused=refused,
        )
        made.append((gate, listener))
        gate.start()
        return tmp_path / name

    yield make
    for gate, listener in made:
        gate.close()
        listener.close()


def connect(path):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(300)
    client.connect(str(path))
    return client


def exchange(client, data=b"hello"):
    client.sendall(data)
    heard = b""
    while len(heard) < len(data):
        part = client.recv(1 << 20)
        if not part:
            break
        heard += part
    return heard


def test_relays_for_those_it_knows(echo, gates):
    path = gates(lambda uid: echo if uid == OWN else None)
    with connect(path) as client:
        assert exchange(client) == b"hello"
        big = os.urandom(3_000_000)
        sender = threading.Thread(target=client.sendall, args=(big,))
        sender.start()
        heard = b""
        while len(heard) < len(big):
            heard += client.recv(1 << 20)
        sender.join()
        assert heard == big


def test_turns_others_away_and_counts_them(echo, gates):
    refused = []
    path = gates(lambda _uid: None, refused=lambda *what: refused.append(what))
    with connect(path) as client:
        assert client.recv(1) == b""
    assert refused == [("controller.socket", "user")]


def test_another_user_is_told_apart_by_the_kernel(echo, gates):
    if OWN != 0:
        pytest.skip("needs root to become somebody else")
    with tempfile.TemporaryDirectory() as name:  # one that others can enter
        Path(name).chmod(0o755)
        _knock_as_nobody(gates(lambda uid: echo if uid == 0 else None, Path(name) / "gate"))


def _knock_as_nobody(path):
    child = os.fork()
    if child == 0:
        try:
            os.setuid(65534)
            with connect(path) as client:
                os._exit(0 if client.recv(1) == b"" else 1)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.usefixtures("no_hang")
def test_one_user_cannot_lock_the_others_out(echo, gates):
    refused = []
    path = gates(lambda _uid: echo, per_owner=3, refused=lambda *what: refused.append(what))
    clients = [connect(path) for _ in range(3)]
    assert all(exchange(client) == b"hello" for client in clients)
    with connect(path) as fourth:
        assert fourth.recv(1) == b""
    assert refused == [("controller.socket", "connections")]
    clients[0].close()
    answered = b""
    while answered != b"hello":  # the place is free once both directions have ended
        with connect(path) as again, contextlib.suppress(OSError):
            answered = exchange(again)
    for client in clients:
        client.close()


def test_survives_a_server_that_is_not_there(gates, tmp_path):
    path = gates(lambda _uid: str(tmp_path / "nobody"))
    for _ in range(3):
        with connect(path) as client:
            assert client.recv(1) == b""


def test_replaces_a_socket_that_is_left_over(echo, gates, tmp_path):
    left = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    left.bind(str(tmp_path / "gate"))
    left.close()
    path = gates(lambda _uid: echo)
    with connect(path) as client:
        assert exchange(client) == b"hello"


def test_leaves_a_live_service_alone(echo, gates, tmp_path):
    path = gates(lambda _uid: echo)
    with pytest.raises(ConfigError, match="another service listens"):
        UnixListener(path, "controller.socket")
    assert answers(path)


def test_leaves_files_alone(tmp_path):
    (tmp_path / "gate").write_text("precious")
    with pytest.raises(ConfigError, match="not a socket: remove it"):
        UnixListener(tmp_path / "gate", "k")
    assert (tmp_path / "gate").read_text() == "precious"


def test_closing_ends_connections_and_removes_the_socket(echo, tmp_path):
    listener = UnixListener(tmp_path / "gate", "k")
    gate = Gate(listener.socket, "k", Peers(lambda _uid: echo))
    gate.start()
    with connect(tmp_path / "gate") as client:
        assert exchange(client) == b"hello"
        gate.close()
        assert client.recv(1) == b""
    listener.close()
    assert not (tmp_path / "gate").exists()


def test_closing_leaves_a_successors_socket(echo, gates, tmp_path):
    first = UnixListener(tmp_path / "gate", "k")
    (tmp_path / "gate").rename(tmp_path / "moved")
    path = gates(lambda _uid: echo)
    first.close()
    assert answers(path)


def closed(client):
    """Whether the other side ends a connection."""
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def send_for_ever(sock):
    while True:
        sock.sendall(b"y" * 65536)


def test_who_says_nothing_is_sent_away(echo, gates):
    refused = []
    path = gates(lambda _uid: echo, greeting_s=0.1, refused=lambda *what: refused.append(what))
    with connect(path) as silent, connect(path) as speaking:
        assert exchange(speaking) == b"hello"
        assert closed(silent)
        assert exchange(speaking) == b"hello"
    assert ("controller.socket", "greeting") in refused


def test_who_takes_nothing_is_sent_away(gates, tmp_path):
    refused = []
    path = gates(
        lambda _uid: str(tmp_path / "endless"), stall_s=0.1,
        refused=lambda *what: refused.append(what[1]),
    )  # fmt: skip
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(tmp_path / "endless"))
    listener.listen()
    with connect(path) as client:
        client.sendall(b"x")
        server, _ = listener.accept()
        with server:
            server.settimeout(30)
            with pytest.raises(OSError, match=r"Broken pipe|reset"):
                send_for_ever(server)
    listener.close()
    assert refused == ["stalled"]


def test_nobody_stays_for_ever(echo, gates):
    path = gates(lambda _uid: echo, age_s=0.2)
    with connect(path) as client, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        while exchange(client) == b"hello":
            pass
    with connect(path) as again:
        assert exchange(again) == b"hello"


def test_who_sends_much_is_read_slowly_and_loses_nothing(echo, gates):
    counted = ByteAllowance(rate=50_000, burst=1_000)
    path = gates(lambda _uid: echo, allowance=lambda _uid: counted)
    with connect(path) as client:
        data = os.urandom(30_000)
        assert exchange(client, data) == data
    with connect(path) as client:
        assert exchange(client) == b"hello"


def test_an_allowance_grows_up_to_its_burst():
    allowance = ByteAllowance(rate=100, burst=50)
    assert allowance.wait_s(1.0) == 0
    allowance.spend(150)
    assert allowance.wait_s(1.0) == pytest.approx(1.01)
    assert allowance.wait_s(2.5) == 0
    assert allowance.left == pytest.approx(50)


def alive(client):
    try:
        return exchange(client) == b"hello"
    except (BrokenPipeError, ConnectionResetError):
        return False


class ByTurns:
    """A policy that takes callers for different users, as they come."""

    def __init__(self, target, owners):
        self.target = target
        self.owners = iter(owners)

    def banned(self):
        return None

    def introduce(self, _client):
        return KnownCaller(next(self.owners), self.target)


def test_when_all_places_are_taken_who_has_most_gives_one_up(echo, tmp_path):
    listener = UnixListener(tmp_path / "gate", "k")
    policy = ByTurns(echo, [1, 1, 1, 1, 2, 3, 1])
    gate = Gate(listener.socket, "k", policy, bounds=ConnectionLimits(per_owner=4, total=4))
    gate.start()
    try:
        greedy = [connect(tmp_path / "gate") for _ in range(4)]
        assert all(alive(client) for client in greedy)
        second, third = (connect(tmp_path / "gate") for _ in range(2))
        assert exchange(second) == exchange(third) == b"hello"
        kept = [client for client in greedy if alive(client)]
        assert len(kept) == 2
        with connect(tmp_path / "gate") as more:
            assert closed(more)  # has as many as anybody
        assert all(alive(client) for client in (*kept, second, third))
        for client in (*greedy, second, third):
            client.close()
    finally:
        gate.close()
        listener.close()


def test_without_descriptors_callers_are_turned_away_and_come_in_later(tmp_path):
    """In a process of its own: this one needs its descriptors."""
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_DESCRIPTORS, str(tmp_path)],
        check=False, capture_output=True, text=True, timeout=120, cwd=Path(__file__).parents[3],
    )  # fmt: skip
    assert done.stdout.splitlines() == ["turned away", "let in"], done.stderr


_WITHOUT_DESCRIPTORS = """
import os, resource, socket, sys
from pathlib import Path
from bridge.rpc.transport.callers import Peers
from bridge.rpc.transport.gate import Gate
from bridge.rpc.transport.listening import UnixListener
home = Path(sys.argv[1])
inner = socket.socket(socket.AF_UNIX)
inner.bind(str(home / "inner"))
inner.listen()
refused = []
listener = UnixListener(home / "gate", "k")
gate = Gate(listener.socket, "k", Peers(lambda _uid: str(home / "inner")),
            refused=lambda *what: refused.append(what[1]))
clients = [socket.socket(socket.AF_UNIX) for _ in range(2)]
for client in clients:
    client.settimeout(60)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
taken = []
try:
    while True:
        taken.append(os.open("/dev/null", os.O_RDONLY))
except OSError:
    pass
gate.start()
clients[0].connect(str(home / "gate"))
assert clients[0].recv(1) == b""
assert refused == ["descriptors"], refused
print("turned away")
for one in taken:
    os.close(one)
clients[1].connect(str(home / "gate"))
clients[1].sendall(b"x")
server, _ = inner.accept()
assert server.recv(1) == b"x"
print("let in", flush=True)
os._exit(0)
"""


def test_who_is_turned_away_cannot_flood_the_log(gates, caplog):
    refused = []
    path = gates(lambda _uid: None, refused=lambda *what: refused.append(what))
    for _ in range(500):
        with connect(path) as client:
            assert closed(client)
    assert len(refused) == 500
    assert caplog.messages == [f"controller.socket: refused user {OWN} (user)"]


def test_what_was_not_told_is_summed_up(caplog):
    counted = []
    complaints = Complaints("k", lambda *what: counted.append(what))
    for user in range(100):
        complaints.complain("user", user, 1000.0)
        complaints.complain("user", user, 1000.0)
    told = len(caplog.messages)
    assert told <= 20
    complaints.sum_up(1030.0)
    assert len(caplog.messages) == told
    complaints.sum_up(1061.0)
    assert "k: refused user 0 1 more times within a minute (user)" in caplog.messages
    assert any("refused others" in line for line in caplog.messages)
    assert len(caplog.messages) <= 2 * told + 1
    assert len(counted) == 200


def test_a_thread_that_ends_before_it_is_woken_does_not_fail_the_close(echo, tmp_path):
    with contextlib.closing(UnixListener(tmp_path / "gate", "controller.socket")) as listener:
        gate = Gate(listener.socket, "controller.socket", Peers(lambda _uid: echo))
        gate.start()
        gate._closing = True  # what close does first; the end of a connection wakes the thread
        with connect(tmp_path / "gate"):
            gate._thread.join()
        gate.close()
        gate.close()  # a second time does nothing
