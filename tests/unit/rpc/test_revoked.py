# SPDX-License-Identifier: Apache-2.0
"""The list of revoked certificates, whose connections end."""

import socket

import pytest

from bridge.errors import ConfigError
from bridge.rpc.transport.callers import KnownCaller
from bridge.rpc.transport.gate import ConnectionLimits, Gate
from bridge.rpc.transport.listening import UnixListener
from bridge.rpc.transport.revoked import Certificate, Revoked
from bridge.service.config_changes import revoked_change

PRINT = "ab" * 32
ONE = Certificate(frozenset({"n1"}), 0x0A1B2C, PRINT)
OTHER = Certificate(frozenset({"n2"}), 7, "cd" * 32)


@pytest.mark.parametrize(
    "line",
    ["0A1B2C", "a1b2c", "serial=0A1B2C", "0a:1b:2c  # the node was stolen", PRINT, PRINT.upper(),
     "sha256 Fingerprint=" + ":".join(["AB"] * 32)],
)  # fmt: skip
def test_a_certificate_is_named_as_openssl_does(tmp_path, line):
    file = tmp_path / "revoked"
    file.write_text(f"# stolen\n\n{line}\n")
    revoked = Revoked(file, "k")
    assert ONE in revoked
    assert OTHER not in revoked


def test_nothing_is_revoked_without_a_file_or_with_an_empty_one(tmp_path):
    (tmp_path / "revoked").write_text("")
    for revoked in (Revoked(None, "k"), Revoked(tmp_path / "revoked", "k")):
        revoked.refresh()
        assert not revoked
        assert ONE not in revoked
        assert "0a1b2c" not in revoked


@pytest.mark.parametrize("text", ["n1.example", "ab" * 31, "serial=0x12", "\xff"])
def test_a_line_that_names_no_certificate_is_an_error(tmp_path, text):
    (tmp_path / "revoked").write_text(f"07\n{text}\n")
    with pytest.raises(ConfigError, match="line 2"):
        Revoked(tmp_path / "revoked", "agents.revoked")
    with pytest.raises(ConfigError, match="No such file"):
        Revoked(tmp_path / "none", "agents.revoked")


def test_it_follows_the_file_and_stays_as_it_was_when_that_is_bad(tmp_path, caplog):
    file = tmp_path / "revoked"
    file.write_text("07\n")
    found = []
    revoked = Revoked(file, "k", found.append)
    file.write_text("07\na1b2c\n")
    revoked.refresh()
    assert ONE in revoked
    file.write_text("oops\n")
    revoked.refresh()
    revoked.refresh()
    assert ONE in revoked
    assert "line 1" in caplog.text
    changed, refused = found
    assert changed.before == "certificates: 1"
    assert changed.after == "certificates: 2, of these alone a1b2c"
    assert (changed.uid, changed.problem) == (file.stat().st_uid, "")
    assert "line 1" in refused.problem
    assert [revoked_change(each, 5).done for each in found] == [True, False]
    file.unlink()
    revoked.refresh()
    assert ONE in revoked
    file.write_text("7 # only\n")
    revoked.refresh()
    assert ONE not in revoked
    assert OTHER in revoked


class Policy:
    """Everybody is let in under the names that come next."""

    def __init__(self, target, *identities):
        self.target, self.identities = target, iter(identities)
        self.out = set()

    def introduce(self, _client):
        return KnownCaller("all", self.target, identity=next(self.identities))

    def banned(self):
        return self.out.__contains__ if self.out else None


def test_who_is_banned_meanwhile_is_out_and_nobody_else(tmp_path):
    inner = UnixListener(tmp_path / "inner", "k")
    listener = UnixListener(tmp_path / "gate", "k")
    policy, told = Policy(str(tmp_path / "inner"), ONE, OTHER, None), []
    gate = Gate(
        listener.socket, "k", policy, bounds=ConnectionLimits(), refused=lambda *a: told.append(a)
    )
    gate.start()
    clients, servers = [], []
    for _ in range(3):
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(60)
        client.connect(str(tmp_path / "gate"))
        client.sendall(b"hello")
        inner.socket.settimeout(60)
        server, _ = inner.socket.accept()
        assert server.recv(5) == b"hello"
        clients.append(client)
        servers.append(server)
    policy.out = {ONE}
    assert clients[0].recv(1) == b""
    assert servers[0].recv(1) == b""
    for client, server in zip(clients[1:], servers[1:], strict=True):
        client.sendall(b"still")
        assert server.recv(5) == b"still"
    gate.close()
    for each in (*clients, *servers, listener, inner):
        each.close()
    assert ("k", "revoked") in [words[:2] for words in told]
