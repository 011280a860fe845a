# SPDX-License-Identifier: Apache-2.0
"""TCP: only with mutual TLS, and only for the certificates that are named."""

import contextlib
import os
import shutil
import socket
import ssl
import subprocess

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bridge.rpc.pb import scheduler_pb2_grpc
from bridge.rpc.transport.gate import ConnectionLimits, Gate
from bridge.rpc.transport.listening import UnixListener, listen_tcp
from bridge.rpc.transport.tls import Certificates
from bridge.service.config import TlsSection
from tests.simulation.attackers import attack
from tests.simulation.services import PATIENCE_S, a_home, a_service, controller_of
from tests.unit.rpc.worlds import a_full, a_hello, a_job


def openssl(directory, *arguments):
    assert shutil.which("openssl"), "openssl is missing: apt-get install openssl"
    subprocess.run(["openssl", *arguments], cwd=directory, check=True, capture_output=True)


def a_certificate(directory, name, ca=None):
    """A key and a certificate for a name, signed by an authority or by itself."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    subject = ["-subj", f"/CN={name}", "-keyout", f"{name}.key"]
    if ca is None:
        openssl(directory, "req", "-x509", *key, *subject, "-out", f"{name}.crt", "-days", "2")
        return
    openssl(directory, "req", *key, *subject, "-out", f"{name}.csr")
    (directory / "ext").write_text(f"subjectAltName=DNS:{name}\n")
    openssl(
        directory, "x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.crt", "-CAkey", f"{ca}.key",
        "-CAcreateserial", "-out", f"{name}.crt", "-days", "2", "-extfile", "ext",
    )  # fmt: skip


def tls_settings(keys):
    """A free port, and the settings of a service on it that only slurmctld may call."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return port, {
        "address": f"127.0.0.1:{port}", "ca": str(keys / "ca.crt"),
        "cert": str(keys / "localhost.crt"), "key": str(keys / "localhost.key"),
        "subjects": ["slurmctld"],
    }  # fmt: skip


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    directory = tmp_path_factory.mktemp("keys")
    a_certificate(directory, "ca")
    a_certificate(directory, "localhost", "ca")
    a_certificate(directory, "slurmctld", "ca")
    a_certificate(directory, "somebody", "ca")
    a_certificate(directory, "stranger")
    return directory


@pytest.fixture
def served(keys):
    port, tls = tls_settings(keys)
    with a_home() as home, a_service(home, controller={"tls": tls}):
        yield home, port


def channel(keys, port, name=None, options=()):
    own = {}
    if name is not None:
        own = {
            "private_key": (keys / f"{name}.key").read_bytes(),
            "certificate_chain": (keys / f"{name}.crt").read_bytes(),
        }
    credentials = grpc.ssl_channel_credentials((keys / "ca.crt").read_bytes(), **own)
    return grpc.secure_channel(f"localhost:{port}", credentials, options)


def test_the_named_certificate_schedules(keys, served):
    _, port = served
    with channel(keys, port, "slurmctld") as there:
        stub = scheduler_pb2_grpc.SchedulerStub(there)
        stub.Hello(a_hello(), timeout=PATIENCE_S)
        assert len(stub.Cycle(a_full([a_job("1")]), timeout=PATIENCE_S).decisions) == 1
        health = health_pb2_grpc.HealthStub(there)
        answer = health.Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE_S)
        assert answer.status == health_pb2.HealthCheckResponse.SERVING


def test_another_certificate_of_the_same_authority_may_not_call(keys, served):
    _, port = served
    with channel(keys, port, "somebody") as there, pytest.raises(grpc.RpcError) as caught:
        scheduler_pb2_grpc.SchedulerStub(there).Hello(a_hello(), timeout=PATIENCE_S)
    assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.parametrize("name", [None, "stranger"])
def test_without_a_certificate_of_the_authority_nobody_connects(keys, served, name):
    _, port = served
    with channel(keys, port, name) as there, pytest.raises(grpc.RpcError) as caught:
        scheduler_pb2_grpc.SchedulerStub(there).Hello(a_hello(), timeout=PATIENCE_S)
    assert caught.value.code() in (
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
    )


def test_without_tls_nobody_connects(served):
    _, port = served
    with grpc.insecure_channel(f"localhost:{port}") as there, pytest.raises(grpc.RpcError):
        scheduler_pb2_grpc.SchedulerStub(there).Hello(a_hello(), timeout=PATIENCE_S)


def test_another_list_of_revoked_certificates_is_a_logged_change(keys, tmp_path):
    """Written twice, the second time with a line that names none."""
    port, tls = tls_settings(keys)
    revoked = tmp_path / "revoked"
    revoked.write_text("")
    with (
        a_home() as home,
        a_service(home, controller={"tls": {**tls, "revoked": str(revoked)}}) as service,
    ):
        for text in ("0a\n07\n", "n1.example\n"):
            revoked.write_text(text)
            with channel(keys, port, "slurmctld") as there:
                scheduler_pb2_grpc.SchedulerStub(there).Hello(a_hello(), timeout=PATIENCE_S)
        changed, refused = service._changes.last(9)
    assert {each.method for each in (changed, refused)} == {"Revoked"}
    assert changed.before == "certificates: 0"
    assert changed.after == "certificates: 2, of these alone 7, a"
    assert changed.done
    assert not refused.done
    assert "line 1" in refused.result


def test_socket_and_tcp_reach_the_same_session(keys, served):
    home, port = served
    with (
        grpc.insecure_channel(controller_of(home)) as here,
        channel(keys, port, "slurmctld") as there,
    ):
        scheduler_pb2_grpc.SchedulerStub(here).Hello(a_hello(epoch=2), timeout=PATIENCE_S)
        with pytest.raises(grpc.RpcError) as caught:
            scheduler_pb2_grpc.SchedulerStub(there).Hello(a_hello(epoch=1), timeout=PATIENCE_S)
    assert caught.value.code() is grpc.StatusCode.ABORTED


HALF_OPEN = """
# From as many addresses as it likes, again whenever it is sent away.
def begin(number):
    one = socket.socket()
    one.bind((f"127.0.{1 + number // 200}.{1 + number % 200}", 0))
    one.connect(("127.0.0.1", int(sys.argv[1])))
    one.setblocking(False)
    return one
held = [begin(number) for number in range(240)]
time.sleep(1)
print("begun", flush=True)
while True:
    for number, one in enumerate(held):
        try:
            if one.recv(1):
                continue
        except BlockingIOError:
            continue
        except OSError:
            pass
        one.close()
        try:
            held[number] = begin(number)
        except OSError:
            pass
    time.sleep(0.05)
"""


def hello(keys, port):
    """A new connection of the controller, and a call."""
    own = [("grpc.use_local_subchannel_pool", 1)]
    there = channel(keys, port, "slurmctld", own)
    scheduler_pb2_grpc.SchedulerStub(there).Hello(a_hello(), timeout=PATIENCE_S)
    return there


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to act as another user")
def test_half_open_connections_neither_close_nor_refuse_the_controllers(keys, served):
    _, port = served
    before = hello(keys, port)
    with attack(HALF_OPEN, port):
        for _ in range(3):
            hello(keys, port).close()
        health = health_pb2_grpc.HealthStub(before)
        health.Check(health_pb2.HealthCheckRequest(), timeout=PATIENCE_S, wait_for_ready=False)
    before.close()


def test_certificates_that_may_not_call_do_not_refuse_the_controllers(keys, served):
    _, port = served
    context = ssl.create_default_context(cafile=keys / "ca.crt")
    context.load_cert_chain(keys / "somebody.crt", keys / "somebody.key")
    with contextlib.ExitStack() as held:
        for number in range(150):
            one = socket.create_connection(
                ("127.0.0.1", port), PATIENCE_S, source_address=(f"127.0.1.{number + 1}", 0)
            )
            held.enter_context(context.wrap_socket(one, server_hostname="localhost"))
        for _ in range(3):
            hello(keys, port).close()


def test_half_open_connections_close_no_agent(keys, tmp_path):
    """As many agents as there is room for; they share a certificate, and so a count."""
    inner = UnixListener(tmp_path / "inner", "k")
    listener = listen_tcp("127.0.0.1:0", "agents.address")
    port = listener.getsockname()[1]
    _, settings = tls_settings(keys)
    policy = Certificates(
        TlsSection(**{**settings, "subjects": ["slurmctld"]}), str(inner.path), str(inner.path)
    )
    gate = Gate(listener, "agents", policy, bounds=ConnectionLimits(60, 60))
    gate.start()
    context = ssl.create_default_context(cafile=keys / "ca.crt")
    context.load_cert_chain(keys / "slurmctld.crt", keys / "slurmctld.key")
    with contextlib.ExitStack() as held:
        held.callback(inner.close)
        held.callback(listener.close)
        held.callback(gate.close)
        inner.socket.settimeout(PATIENCE_S)

        def connected(number):
            one = socket.create_connection(
                ("127.0.0.1", port), PATIENCE_S, source_address=(f"127.0.1.{number + 1}", 0)
            )
            return held.enter_context(one)

        agents = []
        for _ in range(60):
            agent = context.wrap_socket(connected(0), server_hostname="localhost")
            held.enter_context(agent)
            server, _ = inner.socket.accept()
            agents.append((agent, held.enter_context(server)))
            agent.sendall(b"hello")
            assert server.recv(5) == b"hello"
        idle = [connected(number) for number in range(100)]
        assert idle[0].recv(1) == b""  # 64 have places: the oldest has made room
        for agent, server in agents:
            agent.sendall(b"still")
            assert server.recv(5) == b"still"
