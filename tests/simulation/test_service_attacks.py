# SPDX-License-Identifier: Apache-2.0
"""Nobody locks anybody out: other users of the machine attack a service on its real sockets.

While an attack stands, the controller's calls and the questions of another ordinary user are
answered.
"""

import contextlib
import os
import socket
import subprocess
import threading
import time
import urllib.request

import grpc
import pytest

from bridge.rpc.clients.operator_client import OperatorClient
from bridge.rpc.pb import scheduler_pb2_grpc
from tests.simulation import services
from tests.simulation.attackers import ATTACKER, TAKING_NAMES, an_asker, attack
from tests.simulation.services import (
    SLOW,
    a_config,
    a_controller,
    a_home,
    a_process,
    command,
    controller_of,
    operator_of,
    run,
    wait_until_serving,
)
from tests.simulation.test_service_tls import a_certificate, tls_settings
from tests.unit.rpc.worlds import a_full, a_hello, a_job

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to act as other users")


@pytest.fixture
def home():
    with a_home() as path:
        yield path


def answers_while(home, *attacks, calls=3, job="2"):
    """Begins attacks one upon the other, and sees the controller and another user served."""
    with an_asker(operator_of(home)) as asker, a_controller(home) as call:
        asker.is_served(job)
        held = [attack(*one) for one in attacks]
        for one in held:
            one.__enter__()
        try:
            for _ in range(calls):
                call()
                asker.is_served(job)
            assert all(one.gen.gi_frame is not None for one in held)
        finally:
            for one in held:
                one.__exit__(None, None, None)
        call()
        asker.is_served(job)


HALF_OPEN = """
calls = PREFACE + frame(4, 0, 0) + b"".join(headers(2 * n + 1) for n in range(16))
def begin():
    one = connect(sys.argv[1])
    one.sendall(calls)
    one.setblocking(False)
    return one
held = []
while len(held) < 12:
    held.append(begin())
time.sleep(1)
print("begun", flush=True)
while True:
    for n, one in enumerate(held):   # those that were ended are begun again
        try:
            if one.recv(65536):
                continue
        except BlockingIOError:
            continue
        except OSError:
            pass
        one.close()
        try:
            held[n] = begin()
        except OSError:
            pass
    time.sleep(0.05)
"""

BYTE_BY_BYTE = """
held = [connect(sys.argv[1]) for _ in range(60)]
words = PREFACE + frame(4, 0, 0) + headers(1) + question(1)
print("begun", flush=True)
at = 0
while True:
    for one in held:
        try:
            one.sendall(words[at % len(words):][:1])
        except OSError:
            pass
    at += 1
    time.sleep(0.05)
"""

NEVER_READING = """
held = []
for _ in range(20):
    one = connect(sys.argv[1])
    one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    asked = b"".join(headers(2 * n + 1) + question(2 * n + 1) for n in range(16))
    one.sendall(PREFACE + wide_open() + asked)
    held.append(one)
print("begun", flush=True)
time.sleep(1000)
"""

FLOOD = """
what = {
    "settings": frame(4, 0, 0) * 500,
    "pings": frame(6, 0, 0, bytes(8)) * 500,
    "empty data": frame(0, 0, 1) * 500,
}.get(sys.argv[2])
def flood():
    while True:
        try:
            with connect(sys.argv[1]) as one:
                one.sendall(PREFACE + frame(4, 0, 0) + headers(1))
                stream = 3
                while True:
                    if what is None:   # calls that are taken back at once
                        reset = b"".join(headers(n) + frame(3, 0, n, bytes(4))
                                         for n in range(stream, stream + 200, 2))
                        stream += 200
                        one.sendall(reset)
                    else:
                        one.sendall(what)
        except OSError:
            time.sleep(0.01)
threads = [threading.Thread(target=flood, daemon=True) for _ in range(4)]
for thread in threads:
    thread.start()
print("begun", flush=True)
time.sleep(1000)
"""

IDLE = """
held = []
for _ in range(int(sys.argv[2])):
    try:
        held.append(connect(sys.argv[1]))
    except OSError:
        break
print("begun", flush=True)
time.sleep(1000)
"""

ASKING = """
# As many plans as fit: calls on few connections, whose answers are read and thrown away.
def ask():
    while True:
        try:
            with connect(sys.argv[1]) as one:
                one.sendall(PREFACE + wide_open())
                for stream in range(1, 100_001, 2):
                    one.sendall(headers(stream) + question(stream))
                    one.recv(1 << 20)
        except OSError:
            time.sleep(0.01)
threads = [threading.Thread(target=ask, daemon=True) for _ in range(16)]
for thread in threads:
    thread.start()
print("begun", flush=True)
time.sleep(1000)
"""


def test_half_open_calls(home):
    """Slow: starts a service and an attacker."""
    with a_process(home):
        answers_while(home, (HALF_OPEN, home / "o" / "s"))


def test_senders_that_send_byte_by_byte(home):
    with a_process(home):
        answers_while(home, (BYTE_BY_BYTE, home / "o" / "s"))


def test_receivers_that_never_read(home):
    with a_process(home):
        with a_controller(home) as call:
            call(jobs=3000)
        answers_while(home, (NEVER_READING, home / "o" / "s"))


@pytest.mark.parametrize("what", ["settings", "pings", "empty data", "resets"])
def test_floods_of_frames(home, what):
    with a_process(home):
        answers_while(home, (FLOOD, home / "o" / "s", what), calls=2)


def test_who_asks_without_end(home):
    """Slow: starts a service and an attacker."""
    with a_process(home):
        answers_while(home, (ASKING, home / "o" / "s"))


def test_idle_connections_when_there_are_few_descriptors(home):
    """`ulimit -n 64`; the service cannot have more."""
    (home / "bridge.yaml").write_text(a_config(home))
    with (home / "log").open("ab") as log:
        process = subprocess.Popen(
            ["sh", "-c", 'ulimit -n 64 && exec "$@"', "sh",
             *command("serve", "--config", home / "bridge.yaml")],
            stdout=log, stderr=log, env=services.ENVIRONMENT,
        )  # fmt: skip
        try:
            wait_until_serving(process, controller_of(home), home / "log")
            wait_until_serving(process, operator_of(home), home / "log")
            answers_while(home, (IDLE, home / "o" / "s", 16), (IDLE, home / "o" / "s", 200))
            assert process.poll() is None
        finally:
            process.terminate()
            process.wait(30)


def test_who_is_refused_cannot_flood_the_log_and_is_counted(home):
    port = 20_000 + os.getpid() % 20_000
    knocking = """
for number in range(3000):
    with connect(sys.argv[1]) as one:
        try:
            one.recv(1)
        except OSError:
            pass
print("begun", flush=True)
"""
    with a_process(home, metrics={"address": f"127.0.0.1:{port}"}):
        (home / "c").chmod(0o755)  # as if an administrator had opened the directory by mistake
        with attack(knocking, home / "c" / "s"):
            pass
        (home / "c").chmod(0o700)
        with a_controller(home):
            pass
        page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=SLOW).read()
        lines = (home / "log").read_text().splitlines()
    counted = 'gate_refusals_total{reason="user",socket="controller.socket"} 3000.0'
    assert counted in page.decode()
    assert sum(f"refused user {ATTACKER}" in line for line in lines) >= 1
    assert len(lines) < 30


def test_names_cannot_forge_lines_in_the_log(home):
    forged = "x\n2026-01-01 00:00:00,000 INFO bridge.serve: all is well"
    with a_process(home), grpc.insecure_channel(controller_of(home)) as channel:
        stub = scheduler_pb2_grpc.SchedulerStub(channel)
        hello = a_hello()
        hello.controller = hello.cluster = forged
        stub.Hello(hello, timeout=SLOW)
        many = [a_job(f"1{forged}", name=forged)]
        stub.Cycle(a_full(many), timeout=SLOW)
        with OperatorClient(operator_of(home), timeout_s=SLOW) as client:
            assert client.status().controller
    lines = (home / "log").read_text().splitlines()
    assert not [line for line in lines if line.startswith("2026-01-01 00:00:00,000")]
    assert any("hello from" in line for line in lines)


def test_idle_connections_do_not_keep_the_metrics_from_being_read(home):
    port = 20_000 + os.getpid() % 20_000
    idle = """
held = []
for _ in range(300):
    one = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 60)
    one.sendall(b"GET /metrics HTTP/1.1\\r\\n")
    held.append(one)
print("begun", flush=True)
time.sleep(1000)
"""
    with (
        a_process(home, metrics={"address": f"127.0.0.1:{port}"}),
        attack(idle, port),
        a_controller(home) as call,
    ):
        call()
        page = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=SLOW).read()
        assert b"schedbridge_cycle_seconds_count" in page
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/other", timeout=SLOW)


@pytest.mark.parametrize("which", ["controller", "operator"])
def test_another_users_link_is_refused_at_the_start(home, which):
    (home / "real").mkdir(mode=0o700)
    (home / which[0]).symlink_to(home / "real")
    os.chown(home / which[0], ATTACKER, -1, follow_symlinks=False)
    (home / "bridge.yaml").write_text(a_config(home))
    done = run("serve", "--config", home / "bridge.yaml")
    assert done.returncode == 1
    assert f"{which}.socket: link {home}/{which[0]} belongs to user" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_operators_directory_that_everybody_may_write_to_is_refused_at_the_start(home):
    (home / "o").mkdir()
    (home / "o").chmod(0o777)
    (home / "bridge.yaml").write_text(a_config(home))
    done = run("serve", "--config", home / "bridge.yaml")
    assert done.returncode == 1
    assert f"directory {home}/o (mode 0777): run 'chmod go-w" in done.stderr


# ------------------------------------------------------------------ over TLS


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    directory = tmp_path_factory.mktemp("keys")
    a_certificate(directory, "ca")
    for name in ("localhost", "slurmctld", "somebody"):
        a_certificate(directory, name, "ca")
    return directory


@pytest.fixture
def over_tls(home, keys):
    """A service, and its TCP port."""
    port, tls = tls_settings(keys)
    with a_process(home, controller={"tls": tls}):
        yield port


def named(keys, port, name, **options):
    credentials = grpc.ssl_channel_credentials(
        (keys / "ca.crt").read_bytes(),
        (keys / f"{name}.key").read_bytes(),
        (keys / f"{name}.crt").read_bytes(),
    )
    return grpc.secure_channel(f"localhost:{port}", credentials, options=list(options.items()))


def calls_over_tls(keys, port):
    """The controller calls on a connection of its own."""
    with named(keys, port, "slurmctld") as channel:
        stub = scheduler_pb2_grpc.SchedulerStub(channel)
        stub.Hello(a_hello(), timeout=SLOW, wait_for_ready=True)
        assert len(stub.Cycle(a_full([a_job("1")]), timeout=SLOW).decisions) == 1


class CountingRelay:
    """Passes bytes on to a port, and counts those that went there."""

    def __init__(self, port):
        self.taken = 0
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._to))
            for one in (client, server):  # little is under way: what is taken was read
                one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            for source, sink in ((client, server), (server, client)):
                threading.Thread(
                    target=self._pass, args=(source, sink, sink is server), daemon=True
                ).start()

    def _pass(self, source, sink, counted):
        try:
            while data := source.recv(1 << 16):
                sink.sendall(data)
                if counted:
                    self.taken += len(data)
        except OSError:
            pass
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self):
        self._listener.close()


def test_a_certificate_that_is_not_named_has_no_message_read(keys, over_tls):
    relay = CountingRelay(over_tls)
    with named(keys, relay.port, "somebody") as channel:
        for method in ("Hello", "Cycle"):
            call = channel.unary_unary(f"/schedbridge.v1.Scheduler/{method}")
            with pytest.raises(grpc.RpcError) as caught:
                call(bytes(100 << 20), timeout=SLOW)
            assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
            assert "controller.tls.subjects" in caught.value.details()
    relay.close()
    assert relay.taken < 8 << 20
    calls_over_tls(keys, over_tls)


def test_half_open_calls_of_a_certificate_that_is_not_named(keys, over_tls):
    with named(keys, over_tls, "somebody") as channel:
        call = channel.stream_unary("/schedbridge.v1.Scheduler/Cycle")

        def nothing():
            time.sleep(1000)
            yield b""

        held = [call.future(nothing(), timeout=SLOW) for _ in range(20)]
        calls_over_tls(keys, over_tls)
        for one in held:
            assert one.exception(timeout=SLOW).code() in (
                grpc.StatusCode.PERMISSION_DENIED,
                grpc.StatusCode.UNAVAILABLE,  # more at once than the server takes
            )
        calls_over_tls(keys, over_tls)


def test_handshakes_that_never_end(keys, over_tls):
    handshakes = """
held = []
def go_on():
    while True:
        try:
            held.append(socket.create_connection(("127.0.0.1", int(sys.argv[1])), 60))
            held[-1].sendall(b"\\x16\\x03\\x01")
            if len(held) > 200:
                held.pop(0).close()
        except OSError:
            pass
        if len(held) > 150:
            time.sleep(0.05)
threading.Thread(target=go_on, daemon=True).start()
while len(held) < 150:
    time.sleep(0.01)
print("begun", flush=True)
time.sleep(1000)
"""
    with attack(handshakes, over_tls):
        for _ in range(3):
            calls_over_tls(keys, over_tls)


def test_who_takes_the_names_that_are_listed_keeps_nobody_out(home):
    """Slow: starts a service, an attacker and a command for each try."""
    with (
        a_process(home),
        a_controller(home) as call,
        an_asker(operator_of(home)) as before,
        attack(TAKING_NAMES, home / "o" / "s"),
    ):
        call()
        before.is_served()
        for _ in range(3):
            done = run("status", "--socket", home / "o" / "s")
            assert done.returncode == 0, done.stderr
            with an_asker(operator_of(home)) as after:
                after.is_served()
