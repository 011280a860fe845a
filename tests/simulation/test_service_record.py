# SPDX-License-Identifier: Apache-2.0
"""Cycles of a living service, recorded by administrators and planned again elsewhere."""

import contextlib
import os
import threading
from pathlib import Path

import pytest

from bridge.errors import ControllerError
from bridge.lab.sim.recorded.rerun import moved, rerun
from bridge.recording.recordings import decode, read_recording
from bridge.rpc.clients.operator_client import OperatorClient
from tests.simulation.services import a_home, a_process, a_service, operator_of, run
from tests.simulation.test_service_process import as_nobody
from tests.simulation.test_service_reservations import World

JOBS = [(0, 100, 100, 3), (1, 50, 60, 2), (2, 50, 60, 4), (3, 10, 20, 1)]


@pytest.fixture
def home():
    with a_home() as made:
        yield made


@pytest.mark.parametrize("policy", ["slurm-like", "easy", "openccs"])
def test_a_recorded_cycle_of_the_service_gives_the_same_plan_elsewhere(home, policy):
    with a_service(home, policy=policy), OperatorClient(operator_of(home)) as client:
        world = World(home, JOBS)
        world.cycle()
        world.cycle(after_s=5)
        reply = world.asking(lambda: client.record(min_queue=1, wait_s=20))
    recording = decode(reply.recording)
    assert recording.snapshot.generation == reply.generation
    assert len(recording.snapshot.jobs) >= 1
    assert recording.policy.name == policy
    assert set(recording.state.promises.start_s) <= {str(job) for job in range(1, 5)}
    again = rerun(recording)
    assert not again.failed
    assert moved(recording.snapshot, recording.plan, again.plan) == []


def test_the_command_writes_files_that_only_their_owner_reads(home):
    with a_service(home, policy="easy"):
        world = World(home, JOBS)
        world.cycle()
        done = []
        thread = threading.Thread(
            target=lambda: done.append(
                run("lab", "record", "--socket", home / "o" / "s", "--out", home / "r",
                    "--cycles", 2, "--anonymise")
            )
        )  # fmt: skip
        thread.start()
        while thread.is_alive():
            world.cycle()
            thread.join(0.05)
    assert done[0].returncode == 0, done[0].stderr
    paths = [Path(line) for line in done[0].stdout.splitlines()]
    assert len(paths) == 2
    for path in paths:
        assert path.stat().st_mode & 0o777 == 0o600
        assert set(read_recording(path).snapshot.jobs.user.tolist()) <= {"user1", ""}


def test_a_queue_too_short_is_no_recording(home):
    with a_service(home, policy="easy"), OperatorClient(operator_of(home)) as client:
        world = World(home, JOBS)
        assert world.asking(lambda: client.record(min_queue=99, wait_s=1)).recording == b""


def test_of_two_who_record_one_is_sent_away(home):
    said = []

    def ask():
        with OperatorClient(operator_of(home)) as client:
            try:
                said.append(client.record(min_queue=99, wait_s=2).recording)
            except ControllerError as error:
                said.append(str(error))

    with a_service(home, policy="easy"):
        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert said == ["another client is recording: try again later", b""]


def test_ordinary_users_record_nothing(home):
    """Slow: each command is a process of its own."""
    if os.geteuid() != 0:
        pytest.skip("needs root to become somebody else")
    with a_process(home):
        done = as_nobody(
            "lab", "record", "--socket", home / "o" / "s", "--out", "/tmp/none-of-these"
        )
    assert done.returncode == 1
    assert "only administrators may record" in done.stderr
    assert not Path("/tmp/none-of-these").exists()


def test_a_service_that_ends_sends_the_recorder_away(home):
    done = threading.Event()

    def ask(client):
        with contextlib.suppress(ControllerError):
            client.record(wait_s=60)
        done.set()

    with a_service(home, policy="easy"):
        client = OperatorClient(operator_of(home))
        thread = threading.Thread(target=ask, args=(client,))
        thread.start()
        thread.join(0.3)
        assert thread.is_alive()
    assert done.wait(300)
    thread.join()
