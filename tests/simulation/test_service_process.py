# SPDX-License-Identifier: Apache-2.0
"""`schedbridge serve` as a process: how it starts, refuses to start, ends and comes back."""

import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import urllib.request

import grpc
import pytest
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from bridge.rpc.pb import operator_pb2, operator_pb2_grpc, scheduler_pb2_grpc
from tests.simulation import services
from tests.simulation.services import (
    PATIENCE_S,
    a_config,
    a_home,
    a_process,
    controller_of,
    health,
    operator_of,
    run,
)
from tests.unit.rpc.worlds import a_full, a_hello, a_job, a_request

OWN_PORT = 20_000 + os.getpid() % 20_000


@pytest.fixture
def home():
    with a_home() as path:
        yield path


def one_cycle(home, jobs=3):
    request = a_request(min_nodes=4, max_nodes=4, exclusive=True)
    with grpc.insecure_channel(controller_of(home)) as channel:
        stub = scheduler_pb2_grpc.SchedulerStub(channel)
        stub.Hello(a_hello(), timeout=PATIENCE_S)
        many = [a_job(str(index + 1), request=request, name="work") for index in range(jobs)]
        return stub.Cycle(a_full(many), timeout=PATIENCE_S)


def test_serves_answers_and_ends_cleanly(home):
    """Slow: starts a service, and a command for each question."""
    with a_process(home, metrics={"address": f"127.0.0.1:{OWN_PORT}"}) as process:
        assert len(one_cycle(home).decisions) == 3
        assert health(operator_of(home)) == 1

        found = json.loads(run("status", "--socket", home / "o" / "s", "--json").stdout)
        assert (found["jobs_pending"], found["jobs_planned"], found["nodes"]) == (3, 3, 4)
        assert found["decisions"] == {"start": 1, "planned_start": 2, "pending": 0}

        page = urllib.request.urlopen(f"http://127.0.0.1:{OWN_PORT}/metrics").read().decode()
        assert "schedbridge_cycle_seconds_count 1.0" in page
        assert 'schedbridge_decisions_total{kind="planned_start"} 2.0' in page
        assert "schedbridge_jobs_pending 3.0" in page
        assert "schedbridge_controller_up 1.0" in page
        assert "schedbridge_memory_up 1.0" in page

        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    assert not list((home / "c").iterdir())
    assert not list((home / "o").iterdir())
    with sqlite3.connect(home / "memory.sqlite") as database:
        promised = dict(database.execute("SELECT job_id, last_start_s FROM promise"))
    assert set(promised) == {"2", "3"}


def test_reflection_names_the_services(home):
    """Slow: starts a service in a process of its own."""
    with a_process(home), grpc.insecure_channel(controller_of(home)) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        ask = reflection_pb2.ServerReflectionRequest(list_services="")
        answer = next(stub.ServerReflectionInfo(iter([ask]), timeout=PATIENCE_S))
        names = {service.name for service in answer.list_services_response.service}
        assert "schedbridge.v1.Scheduler" in names
        assert "schedbridge.v1.Operator" not in names


def test_comes_back_after_being_killed(home):
    """Slow: two services are started, one after the other."""
    with a_process(home) as process:
        one_cycle(home)
        process.kill()
        process.wait()
    assert (home / "c" / "s").exists()  # left over
    with a_process(home):
        assert len(one_cycle(home).decisions) == 3


def test_tells_systemd_when_it_is_ready_and_when_it_ends(home, monkeypatch):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(str(home / "notify"))
        channel.settimeout(PATIENCE_S)
        monkeypatch.setitem(services.ENVIRONMENT, "NOTIFY_SOCKET", str(home / "notify"))
        with a_process(home):
            assert channel.recv(100) == b"READY=1"
        assert channel.recv(100) == b"STOPPING=1"


def test_two_services_cannot_share_a_socket(home):
    """Slow: starts two services."""
    with a_process(home):
        other = home / "other.yaml"
        other.write_text(
            a_config(home, memory={"path": None}, operator={"socket": str(home / "p" / "s")})
        )
        second = run("serve", "--config", other)
        assert second.returncode == 1
        assert second.stderr.splitlines()[-1] == (
            f"schedbridge: controller.socket: another service listens at {home}/c/s: stop it first"
        )
        assert len(one_cycle(home).decisions) == 3  # the first one is unharmed


REFUSALS = {
    "missing user": (
        {"controller": {"users": ["nobody-here"]}},
        "controller.users: there is no user 'nobody-here' on this machine",
    ),
    "missing admin": (
        {"operator": {"admins": ["nobody-here"]}},
        "operator.admins: there is no user 'nobody-here' on this machine",
    ),
    "directory that cannot be": (
        {"controller": {"socket": "/proc/nowhere/s"}},
        "controller.socket: cannot make directory /proc/nowhere",
    ),
    "missing certificate": (
        {
            "controller": {
                "tls": {"address": "127.0.0.1:1", "ca": "/n", "cert": "/n", "key": "/n",
                        "subjects": ["x"]}
            }
        },
        "controller.tls.ca: cannot read /n",
    ),
    "unknown policy": ({"policy": "magic"}, "policy: no preset 'magic'"),
}  # fmt: skip


@pytest.mark.parametrize(("settings", "problem"), REFUSALS.values(), ids=REFUSALS)
def test_refuses_to_start_with_one_clear_line(home, settings, problem):
    (home / "bridge.yaml").write_text(a_config(home, **settings))
    done = run("serve", "--config", home / "bridge.yaml")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert problem in done.stderr.splitlines()[-1]
    assert not list(home.glob("?/s"))  # nothing is left behind


def test_serves_without_a_memory_that_cannot_be_used_and_says_so_once(home):
    """Slow: starts a service in a process of its own."""
    at = f"127.0.0.1:{OWN_PORT}"
    with a_process(home, memory={"path": "/proc/nowhere/m"}, metrics={"address": at}) as process:
        assert len(one_cycle(home).decisions) == 3
        page = urllib.request.urlopen(f"http://{at}/metrics").read().decode()
        assert "schedbridge_memory_up 0.0" in page
        assert json.loads(run("accuracy", "--socket", home / "o" / "s", "--json").stdout)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    log = (home / "log").read_text()
    assert log.count("cannot use /proc/nowhere") == 1
    assert "Traceback" not in log


def test_refuses_an_open_directory(home):
    (home / "c").mkdir(mode=0o755)
    (home / "c").chmod(0o755)
    (home / "bridge.yaml").write_text(a_config(home))
    done = run("serve", "--config", home / "bridge.yaml")
    assert done.returncode == 1
    assert f"others can enter directory {home}/c (mode 0755): run 'chmod 700" in done.stderr


def test_a_taken_metrics_address_is_said(home):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        (home / "bridge.yaml").write_text(a_config(home, metrics={"address": f"127.0.0.1:{port}"}))
        done = run("serve", "--config", home / "bridge.yaml")
    assert done.returncode == 1
    assert "metrics.address: cannot listen at" in done.stderr.splitlines()[-1]


def test_commands_for_people(home):
    """Slow: each command is a process of its own."""
    with a_process(home) as process:
        one_cycle(home)
        socket_at = ("--socket", home / "o" / "s")
        assert "3 waiting, 3 of them planned" in run("status", *socket_at).stdout
        shown = run("plan", "--limit", 2, *socket_at).stdout
        assert "n[0-3]" in shown
        assert "The first 2 jobs" in shown
        plan = json.loads(run("plan", "--json", *socket_at).stdout)
        assert [job["job_id"] for job in plan["jobs"]] == ["1", "2", "3"]
        why = run("explain", 3, *socket_at)
        assert why.returncode == 0
        assert "Job 3 (work) of ann:" in why.stdout
        assert "In its way" in why.stdout
        told = json.loads(run("explain", 3, "--json", *socket_at).stdout)
        assert told["blockers"]
        assert [link["job"]["job_id"] for link in told["chain"]] == ["2", "1"]
        assert told["changes_known"]
        unknown = run("explain", 99, *socket_at)
        assert (unknown.returncode, unknown.stdout) == (1, "")
        assert "no job '99' is waiting or running" in unknown.stderr
        assert "order: slurm" in run("policy", "show", *socket_at).stdout
        assert "name: easy" in run("policy", "set", "easy", *socket_at).stdout
        assert json.loads(run("status", "--json", *socket_at).stdout)["policy"] == "easy"
        wrong = run("policy", "set", "magic", *socket_at)
        assert wrong.returncode == 1
        assert "no preset 'magic'" in wrong.stderr
        (home / "p.yaml").write_text("policy: {plan: {name: easy, depth: 7}}")
        assert "depth: 7" in run("policy", "set", home / "p.yaml", *socket_at).stdout
        process.send_signal(signal.SIGSTOP)
        try:
            silent = run("status", *socket_at)
        finally:
            process.send_signal(signal.SIGCONT)
        assert silent.returncode == 1
        assert "answer" in silent.stderr
        assert len(silent.stderr.splitlines()) == 1
    gone = run("status", *socket_at)
    assert gone.returncode == 1
    assert "start it with 'schedbridge serve'" in gone.stderr
    assert len(gone.stderr.splitlines()) == 1


def test_before_the_first_call_nothing_is_known(home):
    """Slow: starts a service and two commands."""
    with a_process(home):
        assert "has not called yet" in run("status", "--socket", home / "o" / "s").stdout
        done = run("plan", "--socket", home / "o" / "s")
        assert done.returncode == 1
        assert "the controller has not called yet" in done.stderr


def as_nobody(*arguments):
    """Runs a command as an ordinary user, who need not be able to read this checkout.

    Python and its libraries import much when it is needed first. So the same commands, and an
    error of the service, come first, by who can read all that.
    """
    arguments = [str(word) for word in arguments]
    there = ["--socket", arguments[arguments.index("--socket") + 1]]
    before = [["status", *there], ["policy", "show", *there], [*arguments, "--help"]]
    if arguments[:2] == ["lab", "record"]:
        before.append(["lab", "record", "--out", "/proc/nowhere", "--patience", "1", *there])
    else:
        before.append(["policy", "set", "no-such-preset", *there])
    return subprocess.run(
        [sys.executable, "-c", AS_NOBODY, json.dumps(before), *arguments],
        check=False, capture_output=True, text=True, timeout=PATIENCE_S, env=services.ENVIRONMENT,
    )  # fmt: skip


AS_NOBODY = """
import contextlib, encodings.idna, importlib, io, json, os, sys, bridge.cli.simulation.record_live
from bridge.cli.main import commands, main, module_of
for name, (module, _, _) in commands().items():
    if module not in ("benchmarks.commands", "simulation.demo", "train"):
        importlib.import_module(module_of(name))
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        with contextlib.suppress(SystemExit):
            main(words)
os.setgroups([]); os.setgid(65534); os.setuid(65534)
main(sys.argv[2:])
"""


def test_a_user_may_read_but_not_change(home):
    """Slow: each command is a process of its own."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    with a_process(home):
        one_cycle(home)
        where = ("--socket", home / "o" / "s")
        assert as_nobody("status", *where).returncode == 0
        refused = as_nobody("policy", "set", "easy", *where)
        assert refused.returncode == 1
        assert "not allowed: only administrators" in refused.stderr
        with grpc.insecure_channel(operator_of(home)) as channel:
            stub = operator_pb2_grpc.OperatorStub(channel)
            reply = stub.Policy(operator_pb2.PolicyRequest(), timeout=PATIENCE_S)
        assert "name: slurm-like" in reply.yaml


def test_json_logs(home):
    with a_process(home, log={"format": "json", "level": "info"}):
        one_cycle(home)
    entries = [json.loads(line) for line in (home / "log").read_text().splitlines()]
    assert {entry["level"] for entry in entries} <= {"info", "warning"}
    assert any("hello from test" in entry["message"] for entry in entries)


def test_only_the_controllers_user_reaches_the_scheduler(home):
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    with a_process(home):
        (home / "c").chmod(0o755)  # as if an administrator had opened the directory by mistake
        script = (
            "import encodings.idna, os, sys, grpc\n"
            "from bridge.rpc.pb import scheduler_pb2 as pb, scheduler_pb2_grpc\n"
            "def greet(address):\n"
            "    with grpc.insecure_channel(address) as channel:\n"
            "        stub = scheduler_pb2_grpc.SchedulerStub(channel)\n"
            "        try:\n"
            "            hello = pb.HelloRequest(wire_version=1, epoch=99)\n"
            f"            stub.Hello(hello, timeout={PATIENCE_S})\n"
            "        except grpc.RpcError as error:\n"
            "            return error.code().name\n"
            "greet('unix:/nowhere/s')\n"  # by who can read all that is imported for it
            "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
            "print(greet(sys.argv[1]))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, controller_of(home)], check=False,
            capture_output=True, text=True, timeout=2 * PATIENCE_S, env=services.ENVIRONMENT,
        )  # fmt: skip
        assert done.stdout.strip() == "UNAVAILABLE"
        assert len(one_cycle(home).decisions) == 3  # epoch 1: the stranger's 99 was never heard
    assert "controller.socket: refused user 65534 (user)" in (home / "log").read_text()


def test_sighup_reads_limits_again(home):
    with a_process(home, policy="openccs") as process:
        assert len(one_cycle(home, jobs=1).decisions) == 1
        limit = {"limits": [{"user": "*", "resource": "cpus", "items": 1}]}
        (home / "bridge.yaml").write_text(a_config(home, policy="openccs", planning=limit))
        process.send_signal(signal.SIGHUP)
        wait_for_log(home, "1 planned starts no longer valid")
        (home / "bridge.yaml").write_text(a_config(home, planning={"limits": 3}))
        process.send_signal(signal.SIGHUP)
        wait_for_log(home, "was not reloaded")
        decided = one_cycle(home, jobs=1).decisions
        assert decided
        assert not any(one.HasField("start") for one in decided)  # the limit is still in force
        assert health(operator_of(home)) == 1
        listed = json.loads(run("changes", "--socket", home / "o" / "s", "--json").stdout)
    taken, refused = listed["changes"]
    assert (taken["method"], taken["before"]) == ("Reload", "planning.limits: []")
    assert taken["after"].startswith("planning.limits: [{")
    assert (taken["result"], taken["done"]) == ("done", True)
    assert refused["result"].startswith("refused: ")
    assert "planning.limits" in refused["result"]
    assert {each["uid"] for each in (taken, refused)} == {-1}


def test_resources_that_the_cluster_does_not_have_are_told_once_per_change(home):
    """Slow: starts a service for each change."""

    def rules(*resources):
        limits = [{"user": "*", "resource": name, "items": 9} for name in resources]
        return a_config(home, policy="openccs", planning={"limits": limits})

    named = {"limits": [{"user": "*", "resource": "gpuu", "items": 1}]}
    words = "name resources the cluster does not have: "
    with a_process(home, policy="openccs", planning=named) as process:
        one_cycle(home, jobs=1)
        one_cycle(home, jobs=1)
        wait_for_log(home, words + "gpuu")
        found = json.loads(run("status", "--socket", home / "o" / "s", "--json").stdout)
        assert found["unknown_resources"] == ["gpuu"]
        assert "does not have: gpuu" in run("status", "--socket", home / "o" / "s").stdout
        assert "no resource gpuu" in run("policy", "show", "--socket", home / "o" / "s").stdout
        requested = run("policy", "show", "--socket", home / "o" / "s", "--json").stdout
        assert json.loads(requested)["unknown_resources"] == ["gpuu"]
        for resources, told in (
            (("gpuu", "fpgaa"), words + "fpgaa, gpuu"),
            (("cpus",), "name only resources the cluster has"),
        ):
            (home / "bridge.yaml").write_text(rules(*resources))
            process.send_signal(signal.SIGHUP)
            wait_for_log(home, told)
        one_cycle(home, jobs=1)
        log = (home / "log").read_text()
        assert log.count(words) == 2
        found = json.loads(run("status", "--socket", home / "o" / "s", "--json").stdout)
        assert found["unknown_resources"] == []


def wait_for_log(home, words, patience_s=PATIENCE_S):
    deadline = time.monotonic() + patience_s
    while words not in (log := (home / "log").read_text()):
        assert time.monotonic() < deadline, log
        time.sleep(0.05)
