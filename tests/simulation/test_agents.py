# SPDX-License-Identifier: Apache-2.0
"""A real agent between a real service and launchers: processes, sockets, TLS."""

import json
import os
import pwd
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from bridge.agent.privileges import needed
from bridge.agent.processes import Processes
from bridge.extensions.elastic.resizing.launchers import GrowOrder, ShrinkOrder
from bridge.extensions.power.memory import state_types
from bridge.rpc.pb import agent_pb2 as pb
from tests.simulation.attackers import TAKING_NAMES, attack
from tests.simulation.services import ENVIRONMENT, PATIENCE_S, a_home, a_service, command, run
from tests.simulation.test_service_tls import a_certificate
from tests.unit.agent.made_up import make_folders
from tests.unit.rpc.placements import a_placement

JOB = str(10_000_000 + os.getpid())
"""Of this process alone: other tests run beside it, and processes are found by their job."""

LAUNCHER = """
import os, socket, sys, threading
channel = socket.socket(socket.AF_UNIX)
channel.connect(sys.argv[1])
def listen():
    try:
        while data := channel.recv(65536):
            os.write(1, data)
    finally:  # a connection that is reset ends it, too
        os._exit(0)
threading.Thread(target=listen, daemon=True).start()
while data := os.read(0, 65536):
    channel.sendall(data)
"""


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    directory = tmp_path_factory.mktemp("keys")
    for name, ca in (("ca", None), ("localhost", "ca"), ("schedbridge-agent", "ca"),
                     ("somebody", "ca"), ("n1", "ca"), ("stranger", None)):  # fmt: skip
        a_certificate(directory, name, ca)
    return directory


def a_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def settings_of(keys, port):
    return {
        "address": f"127.0.0.1:{port}", "ca": str(keys / "ca.crt"),
        "cert": str(keys / "localhost.crt"), "key": str(keys / "localhost.key"),
    }  # fmt: skip


@contextmanager
def an_agent(home, keys, port, name="schedbridge-agent", node="n1", *options):
    process = subprocess.Popen(
        command("agent", f"localhost:{port}", "--ca", keys / "ca.crt", "--cert",
                keys / f"{name}.crt", "--key", keys / f"{name}.key", "--node", node, "--socket",
                home / "a" / "s", "--job-folders", make_directory(home), *options),
        env=ENVIRONMENT, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        process.stderr.close()


def make_directory(home):
    """The directory of the jobs' folders."""
    (home / "jobs").mkdir(mode=0o711, exist_ok=True)
    return home / "jobs"


class Launcher:
    """A process of a job that is connected to the agent."""

    def __init__(self, home, job):
        if job:
            (make_directory(home) / job).mkdir(mode=0o700, exist_ok=True)
        environment = dict(os.environ, SLURM_JOB_ID=job) if job else dict(os.environ)
        self.process = subprocess.Popen(
            [sys.executable, "-c", LAUNCHER, str(home / "a" / "s")], env=environment,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        )  # fmt: skip

    def ask(self, line):
        """Sends a line; the next line that comes, empty at the end of the stream."""
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline()

    def end(self):
        self.process.kill()
        self.process.wait()
        with suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()


def attach(job=JOB, nodes=("n1", "n2")):
    return {"op": "attach", "version": 1, "job": job, "nodes": nodes, "engine": "join"}


def eventually(found):
    """What `found` returns once it is true."""
    for _ in range(PATIENCE_S * 20):
        if value := found():
            return value
        time.sleep(0.05)
    raise AssertionError("it never came true")


def attached(home, job=JOB):
    """A launcher that has attached; the agent may not have reached the service yet."""
    for _ in range(PATIENCE_S * 5):
        launcher = Launcher(home, job)
        try:
            answer = launcher.ask(attach(job))
        except OSError:
            answer = ""
        if answer and json.loads(answer) == {"op": "attached"}:
            return launcher
        launcher.end()
        time.sleep(0.2)
    raise AssertionError("it was never attached")


def user():
    return pwd.getpwuid(os.geteuid()).pw_name


def test_orders_reach_the_launcher_and_results_the_service(keys):
    with a_home() as home:
        port = a_port()
        with a_service(home, agents=settings_of(keys, port)) as service, an_agent(home, keys, port):
            hub = service.hub
            hub.placed(a_placement({JOB: "n1 n2"}, users={JOB: user()}))
            launcher = attached(home)
            try:
                assert hub.attached(JOB, user()).nodes == ("n1", "n2")
                hub.order(JOB, user(), ShrinkOrder("7-1", ("n1",), ("n2",), 60))
                order = json.loads(launcher.process.stdout.readline() or "{}")
                assert order["op"] == "shrink"
                done = {"op": "result", "id": "7-1", "outcome": "done", "reason": "",
                        "nodes": ["n1"]}  # fmt: skip
                launcher.process.stdin.write(json.dumps(done) + "\n")
                launcher.process.stdin.flush()
                result, *_ = eventually(hub.results)  # of the user by name, and by number
                assert result.done
                assert result.nodes == ("n1",)
                # This process has the job's number in its environment, and is on any node.
                assert not hub.vacant(JOB, user(), ("n1",))
                launcher.end()
                eventually(lambda: hub.vacant(JOB, user(), ("n1",)))
                eventually(lambda: hub.attached(JOB, user()) is None)
            finally:
                launcher.end()


def test_after_a_restart_of_service_or_agent_launchers_attach_again(keys):
    """Slow: starts three services, three agents and four launchers."""
    with a_home() as home:
        port = a_port()
        with an_agent(home, keys, port):
            for _ in range(2):
                with a_service(home, agents=settings_of(keys, port)) as service:
                    launcher = attached(home)
                    assert service.hub.attached(JOB, user())
                assert launcher.process.stdout.readline() == ""  # the agent has let it go
                launcher.end()
        with a_service(home, agents=settings_of(keys, port)) as service:
            for _ in range(2):
                with an_agent(home, keys, port):
                    launcher = attached(home)
                eventually(lambda: service.hub.attached(JOB, user()) is None)
                launcher.end()


@pytest.mark.parametrize("name", ["somebody", "stranger"])
def test_an_agent_whose_certificate_is_not_named_does_not_attend(keys, name):
    """Slow: starts a service and an agent."""
    with a_home() as home:
        port = a_port()
        with (
            a_service(home, agents=settings_of(keys, port)) as service,
            an_agent(home, keys, port, name) as agent,
        ):
            # Others have lines of their own before.
            assert any("no stream to the service" in agent.stderr.readline() for _ in range(8))
            assert service.hub.agent_count == 0


def test_a_process_of_no_job_cannot_attach(keys):
    """Slow: starts a service and an agent."""
    with a_home() as home:
        port = a_port()
        with a_service(home, agents=settings_of(keys, port)), an_agent(home, keys, port):
            attached(home).end()
            launcher = Launcher(home, "")
            answer = launcher.ask(attach())
            assert "belongs to no job" in json.loads(answer)["reason"]
            launcher.end()


@pytest.mark.skipif(os.geteuid() != 0, reason="makes the folder of another user's job: root only")
def test_a_process_that_claims_anothers_job_cannot_attach(keys):
    with a_home() as home:
        port = a_port()
        with a_service(home, agents=settings_of(keys, port)), an_agent(home, keys, port):
            attached(home).end()
            os.chown(make_directory(home) / JOB, 61001, 61001)
            launcher = Launcher(home, JOB)
            answer = launcher.ask(attach())
            assert "belongs to no job" in json.loads(answer)["reason"]
            launcher.end()


def test_nonsense_ends_one_connection_only(keys):
    with a_home() as home:
        port = a_port()
        with (
            a_service(home, agents=settings_of(keys, port)) as service,
            an_agent(home, keys, port),
        ):
            good = attached(home)
            bad = Launcher(home, f"{JOB}8")
            assert json.loads(bad.ask(["not", "a", "message"]))["op"] == "error"
            with suppress(BrokenPipeError):  # it ends while it is still being told
                bad.process.stdin.write("x" * 200_000 + "\n")
                bad.process.stdin.flush()
            assert bad.process.stdout.readline() == ""
            service.hub.order(JOB, user(), GrowOrder("7-1", ("n1", "n2", "n3"), ("n3",), 60))
            assert json.loads(good.process.stdout.readline() or "{}").get("op") == "grow"
            good.end()
            bad.end()


def test_own_processes_are_found_by_environment():
    process = subprocess.Popen(
        ["sleep", "1000"], env={"SLURM_JOB_ID": f"{JOB}9", "SLURMD_NODENAME": "n3"}
    )
    try:
        seen = Processes()
        eventually(lambda: seen.count(f"{JOB}9", "n3") == 1)
        assert seen.count(f"{JOB}9", "n4") == 0
        assert list(seen.of(f"{JOB}9", "n3")) == [process.pid]
    finally:
        process.kill()
        process.wait()
    assert Processes().count(f"{JOB}9", "n3") == 0


def test_a_child_with_an_environment_of_its_own_belongs_to_its_parents_job(tmp_path):
    code = "import subprocess; subprocess.run(['env', '-i', 'sleep', '1000'])"
    parent = subprocess.Popen(
        [sys.executable, "-c", code], env=dict(os.environ, SLURM_JOB_ID=f"{JOB}7")
    )
    try:
        seen = Processes(folders=make_folders(tmp_path, f"{JOB}7"))

        def child():
            task = f"/proc/{parent.pid}/task/{parent.pid}/children"
            found = [int(pid) for pid in open(task).read().split()]  # noqa: SIM115, PTH123
            return [pid for pid in found if seen.job_of(pid) is None]

        (pid,) = eventually(child)
        assert seen.job_of_family(pid, os.geteuid()) == (f"{JOB}7", "")
    finally:
        subprocess.run(["pkill", "-P", str(parent.pid)], check=True)
        parent.wait()


def test_what_a_node_draws_reaches_the_service_with_its_source(keys, tmp_path):
    """Slow: waits until an agent has measured and reported, twice."""
    counters = tmp_path / "cray" / "pm_counters"
    counters.mkdir(parents=True)
    (counters / "power").write_text("92 W 17 us")
    options = ("--power-sensors", "pm_counters,model", "--sysfs", str(tmp_path))
    with a_home() as home:
        port = a_port()
        served = a_service(home, agents=settings_of(keys, port))
        with served as service, an_agent(home, keys, port, "schedbridge-agent", "n1", *options):
            nodes = eventually(service.hub.extensions.get("power").nodes)
            assert (nodes["n1"].watts, nodes["n1"].source) == (92, "pm_counters")
            (counters / "power").unlink()
            state_types(service.hub, {"n1": (100, 100)})  # the model's whatever the load
            eventually(lambda: service.hub.extensions.get("power").nodes()["n1"].source == "model")
            assert service.hub.extensions.get("power").nodes()["n1"].watts == 100


def test_shares_reach_the_cgroups_of_jobs_and_fall_back_without_the_service(keys, tmp_path):
    """A guest has the least share while its host is on the node, and all when that has ended.

    Slow: starts two services and an agent, and waits for a lease to end.
    """
    root = tmp_path / "cgroup"
    host, job = (root / "n1_slurmstepd.scope" / f"job_{number}" for number in (7, 8))
    for each in (host, job):
        each.mkdir(parents=True)
        for name, text in (
            ("cpu.weight", "100"),
            ("cpu.max", "max 100000"),
            ("cgroup.procs", "1\n"),
        ):
            (each / name).write_text(text)
    (root / "cgroup.controllers").write_text("cpu memory")
    (job / "cpu.stat").write_text("usage_usec 5000000\n")
    share = pb.Share(job="8", node="n1", milli_cpus=500, weight=7, guest=True)

    def shown():
        return (job / "cpu.weight").read_text(), (job / "cpu.max").read_text()

    with a_home() as home:
        port, options = a_port(), ("--cgroups", root, "--power-cpus", "2")
        with an_agent(home, keys, port, "schedbridge-agent", "n1", *options):
            with a_service(home, agents=settings_of(keys, port)) as service:
                sharing = service.hub.extensions.get("sharing")
                eventually(lambda: sharing.orders.nodes == {"n1"})
                sharing.orders.planned({"n1": (share,)})
                eventually(lambda: shown() == ("7", "50000 100000"))
                readings = sharing.readings
                eventually(lambda: read.cpu_s == 5 if (read := readings.of("8", ["n1"])) else 0)
                eventually(lambda: readings.of("8", ["n1"]).method == "cgroup-v2")
            eventually(lambda: shown() == ("1", "10000 100000"))
            (host / "cgroup.procs").write_text("")
            eventually(lambda: shown() == ("1", "max 100000"))
            with a_service(home, agents=settings_of(keys, port)) as service:
                service.hub.extensions.get("sharing").orders.planned({})
                eventually(lambda: shown() == ("100", "max 100000"))


def test_an_agent_whose_key_others_can_read_does_not_start(keys, tmp_path):
    key = tmp_path / "key"
    key.write_bytes((keys / "schedbridge-agent.key").read_bytes())
    key.chmod(0o640)
    ended = run("agent", "localhost:1", "--ca", keys / "ca.crt", "--cert",
                keys / "schedbridge-agent.crt", "--key", key, "--socket",
                tmp_path / "s")  # fmt: skip
    assert ended.returncode != 0
    assert f"chmod 600 {key}" in ended.stderr


def test_a_certificate_of_a_node_speaks_for_this_node_only(keys):
    with a_home() as home:
        port = a_port()
        settings = {**settings_of(keys, port), "each_node": True}
        with a_service(home, agents=settings) as service:
            (home / "b").mkdir()
            with an_agent(home / "b", keys, port, "n1", "n2") as liar:
                line = eventually(lambda: next(one for one in liar.stderr if "WARNING" in one))
                assert "PERMISSION_DENIED: this certificate does not name node n2" in line
                assert service.hub.agent_count == 0
                with an_agent(home, keys, port, "n1", "n1"):
                    eventually(lambda: "n1" in service.hub._agents)
            assert "n2" not in service.hub._agents
            with an_agent(home, keys, port, "schedbridge-agent", "n3"):  # of all nodes
                eventually(lambda: "n3" in service.hub._agents)


def test_who_takes_the_names_that_are_listed_keeps_no_agent_out(keys):
    if os.geteuid() != 0:
        pytest.skip("needs root to act as another user")
    with a_home() as home:
        port = a_port()
        settings = {**settings_of(keys, port), "each_node": True}
        (home / "b").mkdir()
        with (
            a_service(home, agents=settings) as service,
            an_agent(home, keys, port, "schedbridge-agent", "n2"),
            ExitStack() as held,
        ):
            with an_agent(home / "b", keys, port, "n1", "n1"):
                eventually(lambda: service.hub.agent_count == 2)
                held.enter_context(attack(TAKING_NAMES, home / "o" / "s"))
            eventually(lambda: service.hub.agent_count == 1)
            with an_agent(home / "b", keys, port, "n1", "n1"):
                eventually(lambda: service.hub.agent_count == 2)


def test_a_certificate_without_a_name_that_counts_is_still_kept_out(keys):
    with a_home() as home:
        port = a_port()
        with a_service(home, agents=settings_of(keys, port)) as service:
            with an_agent(home, keys, port, "n1", "n1") as stranger:
                line = eventually(lambda: next(one for one in stranger.stderr if "WARNING" in one))
            assert "PERMISSION_DENIED" in line
            assert service.hub.agent_count == 0


def test_a_leaked_certificate_is_revoked_while_the_service_runs(keys):
    """Slow: starts a service and three agents."""
    serial = subprocess.run(
        ["openssl", "x509", "-in", keys / "n1.crt", "-noout", "-serial"],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    with a_home() as home:
        (home / "revoked").write_text("# none yet\n")
        port = a_port()
        settings = settings_of(keys, port)
        settings |= {"each_node": True, "revoked": str(home / "revoked")}
        (home / "b").mkdir()
        with (
            a_service(home, agents=settings) as service,
            an_agent(home, keys, port, "n1", "n1"),
            an_agent(home / "b", keys, port, "schedbridge-agent", "n2"),
        ):
            eventually(lambda: service.hub.agent_count == 2)
            stays = service.hub._agents["n2"]
            (home / "revoked").write_text(serial)
            eventually(lambda: "n1" not in service.hub._agents)
            (home / "d").mkdir()
            with an_agent(home / "d", keys, port, "n1", "n1") as again:
                eventually(lambda: next(one for one in again.stderr if "no stream" in one))
            assert service.hub._agents == {"n2": stays}
            (home / "revoked").write_text("")
            eventually(lambda: "n1" in service.hub._agents)


def test_an_agent_keeps_the_capabilities_that_it_needs_and_no_others(keys):
    if os.geteuid() != 0:
        pytest.skip("needs root, which has some to give up")
    with a_home() as home:
        port = a_port()
        text = Path("/proc/self/status").read_text()
        own = int(text.partition("CapPrm:")[2].split()[0], 16)
        with (
            a_service(home, agents=settings_of(keys, port)),
            an_agent(home, keys, port) as agent,
        ):
            attached(home).end()  # it does what it is for
            for thread in os.listdir(f"/proc/{agent.pid}/task"):  # noqa: PTH208
                text = Path(f"/proc/{agent.pid}/task/{thread}/status").read_text()
                found = dict(line.split(":\t") for line in text.splitlines() if ":\t" in line)
                kept = needed(own)
                assert kept
                for name in ("CapPrm", "CapEff", "CapBnd"):
                    assert int(found[name], 16) == kept, (thread, name)
                assert int(found["CapInh"], 16) == int(found["CapAmb"], 16) == 0
                assert found["NoNewPrivs"] == "1"


STRANGER = """
import encodings.idna, json, os, socket, ssl, sys  # while they can be read
port, launcher, key, pid = sys.argv[1:]
context = ssl.create_default_context()
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
os.setgroups([]), os.setgid(65534), os.setuid(65534)
def outcome(work):
    try:
        return repr(work())
    except ssl.SSLError:
        return "SSLError"
    except ConnectionError:
        return "ConnectionError"
    except OSError as error:
        return type(error).__name__
def service():
    with context.wrap_socket(socket.create_connection(("127.0.0.1", int(port)))) as channel:
        channel.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + bytes(9))
        return channel.recv(1)
def report():
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect(launcher)
        channel.sendall(b'{"op": "uses", "uses": [{"nodes": [{"node": "n1", "watts": 1}]}]}\\n')
        return channel.recv(65536)
print(json.dumps({
    "key": outcome(lambda: open(key).read()),
    "environ": outcome(lambda: open(f"/proc/{pid}/environ", "rb").read()),
    "kill": outcome(lambda: os.kill(int(pid), 9)),
    "service": outcome(service),
    "report": outcome(report),
}))
"""


def test_an_ordinary_user_of_the_node_does_not_get_at_the_agent(keys):
    """Not at its key, its process or its stream; nor does the launchers' socket take readings."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    with a_home() as home:
        port = a_port()
        key = home / "key"  # where the directory does not keep others out
        key.write_bytes((keys / "schedbridge-agent.key").read_bytes())
        key.chmod(0o600)
        options = ("--power-sensors", "none")
        with (
            a_service(home, agents=settings_of(keys, port)) as service,
            an_agent(home, keys, port, "schedbridge-agent", "n1", *options) as agent,
        ):
            eventually(lambda: service.hub.agent_count == 1)
            words = [str(port), str(home / "a" / "s"), str(key), str(agent.pid)]
            done = subprocess.run(
                [sys.executable, "-c", STRANGER, *words],
                check=True, capture_output=True, text=True, timeout=PATIENCE_S,
                env=dict(os.environ, SLURM_JOB_ID=JOB),
            )  # fmt: skip
            found = json.loads(done.stdout)
            for what in ("key", "environ", "kill"):
                assert found[what] == "PermissionError", what
            # No certificate: the handshake of TLS fails, or the connection is closed.
            assert found["service"] in {"SSLError", "ConnectionError", "b''"}
            assert "attached" not in found["report"]
            assert service.hub.extensions.get("power").nodes() == {}
            assert (agent.poll(), service.hub.agent_count) == (None, 1)
