# SPDX-License-Identifier: Apache-2.0
"""SIGTERM ends the service in seconds, whatever it is at; SIGHUP with poison changes nothing.

No clock is asked: what the service is held up with takes longer than a test waits.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import grpc
import pytest

from bridge.rpc.pb import scheduler_pb2_grpc
from tests.simulation import services
from tests.simulation.services import (
    PATIENCE_S,
    a_config,
    a_home,
    controller_of,
    health,
    operator_of,
)
from tests.unit.rpc.worlds import a_full, a_hello, a_job, a_request

HELD_S = 100 * PATIENCE_S

SERVE = """
import sys, time
from pathlib import Path
from bridge.service import scheduling, serve as module, signals
from bridge.service.config import load
from bridge.service.logs import start_logging
start_logging("info", "text")
signals.END_S = 1e6  # a slow machine is no reason to be ended
{held}
file = Path(sys.argv[1])
module.Service(load(file), file).run()
"""
CYCLE = """
def decide(self, snapshot):
    print("held", flush=True)
    time.sleep({seconds})
scheduling.Decider.decide = decide
"""
BUSY = """
def decide(self, snapshot):
    print("held", flush=True)
    while True:
        pass
scheduling.Decider.decide = decide
"""
START = """
def schedule(self):
    print("held", flush=True)
    {what}
module.Service._schedule = schedule
"""
LOCKED = f"import threading; threading.Event().wait({HELD_S})"
STUBBORN = """
signals.END_S = 0.5
def schedule(self):
    told = False
    while True:
        try:
            if not told:
                told = True
                print("held", flush=True)
            time.sleep(1)
        except BaseException:
            pass
module.Service._schedule = schedule
"""


@pytest.fixture
def home():
    with a_home() as path:
        yield path


@contextmanager
def a_held_service(home, held):
    (home / "bridge.yaml").write_text(a_config(home))
    with (home / "log").open("ab") as log, subprocess.Popen(
        [sys.executable, "-c", SERVE.format(held=held), str(home / "bridge.yaml")],
        stdout=subprocess.PIPE, stderr=log, env=services.ENVIRONMENT, text=True,
    ) as process:  # fmt: skip
        try:
            yield process
        finally:
            process.kill()


def call(home):
    """One cycle that nobody answers, in a thread of its own."""

    def run():
        with grpc.insecure_channel(controller_of(home)) as channel:
            stub = scheduler_pb2_grpc.SchedulerStub(channel)
            try:
                stub.Hello(a_hello(), timeout=PATIENCE_S, wait_for_ready=True)
                stub.Cycle(a_full([a_job("1")]), timeout=PATIENCE_S)
            except grpc.RpcError:
                pass

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize("held", [CYCLE.format(seconds=HELD_S), BUSY], ids=["asleep", "busy"])
def test_in_the_middle_of_a_cycle_that_never_ends(home, held):
    """Slow: starts a service, and waits until it gives up."""
    with a_held_service(home, held) as process:
        thread = call(home)
        assert process.stdout.readline() == "held\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
        thread.join(PATIENCE_S)
    assert "abandoned" in (home / "log").read_text()
    assert not (home / "c" / "s").exists()


@pytest.mark.parametrize(
    "what", ["while True: pass", f"time.sleep({HELD_S})", LOCKED], ids=["busy", "asleep", "locked"]
)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_in_the_middle_of_a_start_that_never_ends(home, what, number):
    with a_held_service(home, START.format(what=what)) as process:
        assert process.stdout.readline() == "held\n"
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == 0
    assert "before it had started" in (home / "log").read_text()
    assert not (home / "c" / "s").exists()


def test_what_cannot_be_interrupted_is_left_behind(home):
    with a_held_service(home, STUBBORN) as process:
        assert process.stdout.readline() == "held\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 1
    assert "has not ended within" in (home / "log").read_text()


def make_pipe(file):
    file.unlink()
    os.mkfifo(file)


def make_device(file):
    file.unlink()
    file.symlink_to("/dev/zero")


def make_directory(file):
    file.unlink()
    file.mkdir()


def planning(home, **section):
    return lambda file: file.write_text(a_config(home, planning=section))


POISON = {
    "pipe": lambda home: make_pipe,
    "device": lambda home: make_device,
    "directory": lambda home: make_directory,
    "gone": lambda home: lambda file: file.unlink(),
    "binary": lambda home: lambda file: file.write_bytes(b"\xff\x00" * 1000),
    "bomb": lambda home: (
        lambda file: file.write_text(
            "a0: &a0 [1]\n" + "".join(f"a{i}: &a{i} [{f'*a{i - 1},' * 9}]\n" for i in range(1, 30))
        )
    ),
    "limits": lambda home: planning(
        home, limits=[{"user": f"u{i}", "items": "5%"} for i in range(20_000)]
    ),
    "deep": lambda home: lambda file: file.write_text("[" * 100_000),
    "unknown": lambda home: planning(home, nonsense=1),
    "empty user": lambda home: planning(home, limits=[{"user": "", "items": 1}]),
}


def test_sighup_with_poison_changes_nothing(home):
    """Slow: starts a service and a command for each poison."""
    file = home / "bridge.yaml"
    limit = [{"user": "*", "resource": "cpus", "items": 8}]
    with services.a_process(home, planning={"limits": limit}) as process:
        log = home / "log"
        for make in POISON.values():
            refused = log.read_text().count("was not reloaded")
            make(home)(file)
            process.send_signal(signal.SIGHUP)
            wait_for(lambda refused=refused: log.read_text().count("was not reloaded") > refused)
            if file.is_dir():
                file.rmdir()
            else:
                file.unlink(missing_ok=True)
            file.write_text("")
        assert health(operator_of(home)) == 1
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0
    assert "Traceback" not in log.read_text()


def test_a_budget_that_the_controller_does_not_wait_for_is_shortened(home):
    policy = {"preset": "search", "plan": {"budget_ms": 600_000, "effort": 0}}
    request = a_request(min_nodes=1, max_nodes=1, exclusive=True)
    with services.a_process(home, policy=policy):
        with grpc.insecure_channel(controller_of(home)) as channel:
            stub = scheduler_pb2_grpc.SchedulerStub(channel)
            stub.Hello(a_hello(), timeout=PATIENCE_S)
            jobs = [a_job(str(job), request=request, name="work") for job in range(40)]
            assert stub.Cycle(a_full(jobs), timeout=40).decisions
        found = services.run("status", "--socket", home / "o" / "s", "--json")
        assert json.loads(found.stdout)["jobs_pending"] == 40
    log = (home / "log").read_text()
    assert "plan.budget_ms is 600000, but the controller waits for" in log


def wait_for(condition):
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
