# SPDX-License-Identifier: Apache-2.0
"""The operators' process of a real service: it is replaced, ends with it, and loses nothing."""

import json
import os
import signal
import time
from pathlib import Path

import grpc
import pytest

from bridge.rpc.clients.operator_client import OperatorClient
from bridge.rpc.pb import operator_pb2, operator_pb2_grpc
from tests.simulation.attackers import an_asker
from tests.simulation.services import SLOW, a_controller, a_home, a_process, operator_of, run
from tests.simulation.test_service_process import wait_for_log

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to act as other users")


@pytest.fixture
def home():
    with a_home() as path:
        yield path


def operators_pid(process):
    """The operators' process of a service."""
    for task in Path(f"/proc/{process.pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            if b"operators.program" in Path(f"/proc/{child}/cmdline").read_bytes():
                return int(child)
    return None


def test_a_dead_operators_process_is_replaced_and_the_controller_never_notices(home):
    """Slow: starts a service and its operators' process twice."""
    with (
        a_process(home) as process,
        an_asker(operator_of(home)) as asker,
        a_controller(home) as call,
    ):
        asker.is_served()
        before = operators_pid(process)
        for _ in range(2):
            os.kill(operators_pid(process), signal.SIGKILL)
            call()
            wait_for_log(home, "is started again")
            call()
            answer = ""
            deadline = time.monotonic() + SLOW
            while not answer.startswith("answered"):
                assert time.monotonic() < deadline, (home / "log").read_text()
                answer = asker.ask("plan")
        assert operators_pid(process) not in (None, before)
        call()


def test_the_operators_process_ends_with_a_service_that_is_killed(home):
    """Slow: starts a service and its operators' process."""
    with a_process(home) as process:
        child = operators_pid(process)
        process.kill()
        process.wait()
        deadline = time.monotonic() + SLOW
        while alive(child):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    with a_process(home), a_controller(home):
        pass


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_a_stopped_operators_process_does_not_keep_the_service_from_ending(home):
    """Slow: waits until the service gives up on what does not answer."""
    with a_process(home) as process, a_controller(home) as call:
        os.kill(operators_pid(process), signal.SIGSTOP)
        call()
        process.send_signal(signal.SIGTERM)
        assert process.wait(SLOW) == 0


def test_what_one_changes_one_sees_at_once(home):
    with (
        a_process(home),
        a_controller(home) as call,
        OperatorClient(operator_of(home), timeout_s=SLOW) as client,
    ):
        for name in ("easy", "conservative", "slurm-like", "easy"):
            assert client.policy(name).yaml.startswith(f"name: {name}\n")
            assert client.policy().yaml.startswith(f"name: {name}\n")
            assert client.status().policy == name
            call()
        deadline = time.monotonic() + SLOW
        while client.plan().policy != "easy":
            assert time.monotonic() < deadline


def test_a_cycle_is_seen_within_moments(home):
    with (
        a_process(home),
        a_controller(home) as call,
        OperatorClient(operator_of(home), timeout_s=SLOW) as client,
    ):
        for jobs in (5, 7, 2):
            call(jobs)
            deadline = time.monotonic() + SLOW
            while client.status().jobs_pending != jobs:
                assert time.monotonic() < deadline


def test_json_answers_are_whole(home):
    """What users get through the gate is what the service has: nothing is lost between.

    Slow: starts a service, and a command that prints 2,000 jobs.
    """
    with a_process(home), a_controller(home) as call:
        call(jobs=2000)
        found = run("plan", "--limit", 0, "--socket", home / "o" / "s", "--json")
        assert len(json.loads(found.stdout)["jobs"]) == 2000
        with grpc.insecure_channel(
            operator_of(home), options=[("grpc.max_receive_message_length", -1)]
        ) as channel:
            stub = operator_pb2_grpc.OperatorStub(channel)
            reply = stub.Plan(operator_pb2.PlanRequest(), timeout=SLOW)
        assert len(reply.jobs) == 2000
