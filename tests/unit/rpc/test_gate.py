# SPDX-License-Identifier: Apache-2.0
import os
import socket
import tempfile
import threading
from pathlib import Path

import pytest

from bridge.errors import ConfigError
from bridge.rpc.gate import Gate, answers, default_controllers, prepare_directory, user_ids

OWN = os.geteuid()


@pytest.fixture
def echo(tmp_path):
    """A private server that says what it hears."""
    path = tmp_path / "private"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen()

    def serve(client):
        with client:
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

    def make(route, name="gate", **settings):
        gate = Gate(tmp_path / name, "controller.socket", route, **settings)
        made.append(gate)
        gate.start()
        return tmp_path / name

    yield make
    for gate in made:
        gate.close()


def connect(path):
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.settimeout(10)
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


def test_one_user_cannot_lock_the_others_out(echo, gates):
    refused = []
    path = gates(lambda _uid: echo, per_user=3, refused=lambda *what: refused.append(what))
    clients = [connect(path) for _ in range(3)]
    assert all(exchange(client) == b"hello" for client in clients)
    with connect(path) as fourth:
        assert fourth.recv(1) == b""
    assert refused == [("controller.socket", "connections")]
    clients[0].close()
    deadline = threading.Event()
    for _ in range(100):  # the place is free once both directions have ended
        with connect(path) as again:
            try:
                if exchange(again) == b"hello":
                    break
            except OSError:
                pass
        deadline.wait(0.05)
    else:
        pytest.fail("the place of a closed connection was not given away")
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
        Gate(path, "controller.socket", lambda _uid: echo)
    assert answers(path)


def test_leaves_files_alone(tmp_path):
    (tmp_path / "gate").write_text("precious")
    with pytest.raises(ConfigError, match="no socket: remove it"):
        Gate(tmp_path / "gate", "k", lambda _uid: None)
    assert (tmp_path / "gate").read_text() == "precious"


def test_closing_ends_connections_and_removes_the_socket(echo, tmp_path):
    gate = Gate(tmp_path / "gate", "k", lambda _uid: echo)
    gate.start()
    with connect(tmp_path / "gate") as client:
        assert exchange(client) == b"hello"
        gate.close()
        assert client.recv(1) == b""
    assert not (tmp_path / "gate").exists()


def test_closing_leaves_a_successors_socket(echo, gates, tmp_path):
    first = Gate(tmp_path / "gate", "k", lambda _uid: echo)
    (tmp_path / "gate").rename(tmp_path / "moved")
    path = gates(lambda _uid: echo)
    first.close()
    assert answers(path)


# ------------------------------------------------------------------ directories and users


def test_makes_a_closed_directory(tmp_path):
    old = os.umask(0)
    try:
        prepare_directory(tmp_path / "a" / "b", "k", owners=[OWN], private=True)
        prepare_directory(tmp_path / "c", "k", owners=[OWN], private=False)
    finally:
        os.umask(old)
    assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "c").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("mode", [0o750, 0o701, 0o777])
def test_refuses_a_directory_others_can_enter(tmp_path, mode):
    (tmp_path / "d").mkdir()
    (tmp_path / "d").chmod(mode)
    with pytest.raises(ConfigError, match=rf"mode {mode:04o}\): run 'chmod 700"):
        prepare_directory(tmp_path / "d", "controller.socket", owners=[OWN], private=True)
    assert (tmp_path / "d").stat().st_mode & 0o777 == mode


def test_refuses_a_file_in_its_place(tmp_path):
    (tmp_path / "d").write_text("")
    with pytest.raises(ConfigError, match="cannot make directory"):
        prepare_directory(tmp_path / "d", "k", owners=[OWN], private=True)


def test_refuses_somebody_elses_directory(tmp_path):
    if OWN != 0:
        pytest.skip("needs root to give a directory away")
    (tmp_path / "d").mkdir(mode=0o700)
    os.chown(tmp_path / "d", 12345, -1)
    with pytest.raises(ConfigError, match="belongs to user 12345"):
        prepare_directory(tmp_path / "d", "k", owners=[OWN], private=True)
    prepare_directory(tmp_path / "d", "k", owners=[12345], private=True)


def test_a_new_directory_belongs_to_the_controllers_user(tmp_path):
    if OWN != 0:
        pytest.skip("needs root to give a directory away")
    prepare_directory(tmp_path / "d", "k", owners=[12345], private=True)
    assert (tmp_path / "d").stat().st_uid == 12345


def test_users_by_name_and_number():
    assert user_ids(["root", 7, "8"], "k") == {0, 7, 8}
    with pytest.raises(ConfigError, match=r"controller.users: there is no user 'nobody-here'"):
        user_ids(["nobody-here"], "controller.users")
    assert {0, OWN} <= default_controllers()
