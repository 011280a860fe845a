# SPDX-License-Identifier: Apache-2.0
"""What a server behind a gate is told of its callers, by addresses that only the gate can take."""

import contextlib
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from bridge.rpc.agents.speakers import Speakers
from bridge.rpc.transport.callers import KnownCaller
from bridge.rpc.transport.gate import Gate
from bridge.rpc.transport.introductions import Introductions
from bridge.rpc.transport.listening import UnixListener

NODE, EVERY = frozenset({"n1", "n1-ib"}), frozenset({"schedbridge-agent"})


@contextlib.contextmanager
def introduced(introductions, caller):
    """gRPC's name of the peer of a connection."""
    with socket.socket(socket.AF_UNIX) as connection:
        end = introductions.of(caller)(connection)
        yield f"unix:{connection.getsockname()}"
        end()


def test_each_connection_is_its_callers_until_it_ends(tmp_path):
    users = Introductions(tmp_path)
    with introduced(users, 0) as root, introduced(users, 1000) as one:
        with introduced(users, 1000) as another:
            assert [users.caller(peer) for peer in (root, one, another)] == [0, 1000, 1000]
        assert [users.caller(peer) for peer in (root, one, another)] == [0, 1000, None]
    assert users._callers == {}


def test_an_address_is_in_the_private_directory_and_leaves_no_file(tmp_path):
    users = Introductions(tmp_path)
    with introduced(users, 0) as root, introduced(users, 1000) as other:
        assert list(tmp_path.iterdir()) == []
        for peer in (root, other):
            assert Path(peer.removeprefix("unix:")).parent == tmp_path


@pytest.mark.parametrize("end", ["", "0", "1-1"])
def test_an_address_of_someone_else_introduces_nobody(tmp_path, end):
    users, others = Introductions(tmp_path), Introductions(tmp_path)
    with introduced(users, 0) as peer, introduced(others, 1000) as other:
        assert users.caller(other) is None
        assert others.caller(peer) is None
        for forged in ("unix:", f"unix:{end}", f"{peer}{end or '0'}", f"unix-abstract:{peer[5:]}",
                       peer.removeprefix("unix:"), "ipv4:127.0.0.1:5"):  # fmt: skip
            assert users.caller(forged) is None


def test_an_agent_speaks_for_the_nodes_that_its_certificate_names(tmp_path):
    names = Introductions(tmp_path)
    speakers = Speakers(names, EVERY)
    with introduced(names, NODE) as one, introduced(names, EVERY) as every:
        assert speakers.refused(one, ["n1", "n1-ib"]) == ""
        assert speakers.refused(one, ["n1", "n2"]) == "n2"
        for other in ("n", "n10", "n1-i", "N1"):
            assert speakers.refused(one, [other]) == other
        assert speakers.refused(every, ["n1", "n2"]) == ""
    for forged in ("unix:", "ipv4:127.0.0.1:5", one, every):
        assert speakers.refused(forged, ["n1"]) == "n1"


def test_where_all_share_a_certificate_everybody_speaks_for_all():
    assert Speakers().refused("unix:", ["n1"]) == ""


class ByTurns:
    """A policy that takes callers for different users, as they come."""

    def __init__(self, target, users, uids):
        self.target, self.users, self.uids = target, users, iter(uids)

    def banned(self):
        return None

    def introduce(self, _client):
        uid = next(self.uids)
        return KnownCaller(uid, self.target, introduction=self.users.of(uid))


class SayingWho(grpc.GenericRpcHandler):
    def __init__(self, users):
        self.users = users

    def service(self, _details):
        return grpc.unary_unary_rpc_method_handler(
            lambda _request, context: str(self.users.caller(context.peer())).encode()
        )


def test_a_grpc_server_knows_the_users_of_its_connections(tmp_path):
    """A directory whose name gRPC escapes, as TMPDIR may have any."""
    private = tmp_path / "a b%2f"
    private.mkdir()
    users = Introductions(private)
    server = grpc.server(ThreadPoolExecutor(1), handlers=[SayingWho(users)])
    server.add_insecure_port(f"unix:{tmp_path}/server")
    server.start()
    listener = UnixListener(tmp_path / "gate", "k")
    gate = Gate(listener.socket, "k", ByTurns(str(tmp_path / "server"), users, [0, 1000, 65534]))
    gate.start()
    said = []
    for _ in range(3):
        # gRPC shares connections between channels with equal options, unless told otherwise.
        own = [("grpc.use_local_subchannel_pool", 1)]
        with grpc.insecure_channel(f"unix:{tmp_path}/gate", options=own) as channel:
            said.append(channel.unary_unary("/any/thing")(b"", timeout=60, wait_for_ready=True))
    assert said == [b"0", b"1000", b"65534"]
    gate.close()
    server.stop(0)
    listener.close()
    assert users._callers == {}
    assert list(private.iterdir()) == []


def test_a_directory_that_is_gone_refuses_the_caller_and_no_other(tmp_path):
    gone = Introductions(tmp_path / "gone")
    with UnixListenerAt(tmp_path / "inner") as inner, UnixListenerAt(tmp_path / "gate") as listener:
        policy = ByTurns(str(tmp_path / "inner"), gone, [1, 2])
        gate = Gate(listener.socket, "k", policy)
        gate.start()
        first = connected(tmp_path / "gate")
        assert first.recv(1) == b""
        policy.users = Introductions(tmp_path)
        second = connected(tmp_path / "gate")
        second.sendall(b"x")
        server, _ = inner.socket.accept()
        assert server.recv(1) == b"x"
        gate.close()
        for each in (first, second, server):
            each.close()


def connected(path):
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(60)
    client.connect(str(path))
    return client


def UnixListenerAt(path):  # noqa: N802
    return contextlib.closing(UnixListener(path, "k"))
