# SPDX-License-Identifier: Apache-2.0
"""A service that restarts on the same memory keeps its word: announced starts, and their nodes."""

import sqlite3
from contextlib import closing

import grpc
import pytest

from bridge.rpc.pb import operator_pb2, operator_pb2_grpc, scheduler_pb2_grpc
from tests.simulation.services import PATIENCE_S, a_home, a_service, controller_of, operator_of
from tests.unit.rpc.worlds import (
    NOW_S,
    a_full,
    a_hello,
    a_job,
    a_request,
    a_running_job,
    some_nodes,
)

FREE_S = NOW_S + 100


@pytest.fixture
def home():
    with a_home() as path:
        yield path


def announced(home, *, priorities, nodes=None):
    """Start and nodes by job, of jobs that want a whole node each; all nodes are busy."""
    request = a_request(min_nodes=1, max_nodes=1, exclusive=True)
    jobs = [
        a_job(job_id, request=request, priority=priority) for job_id, priority in priorities.items()
    ]
    nodes = some_nodes(4) if nodes is None else nodes
    names = ",".join(node.name for node in nodes)
    running = [a_running_job("99", names, end_s=FREE_S, exclusive=True)]
    with grpc.insecure_channel(controller_of(home)) as channel:
        stub = scheduler_pb2_grpc.SchedulerStub(channel)
        stub.Hello(a_hello(), timeout=PATIENCE_S)
        stub.Cycle(a_full([*jobs, *running], nodes), timeout=PATIENCE_S)
    with grpc.insecure_channel(operator_of(home)) as channel:
        plan = operator_pb2_grpc.OperatorStub(channel).Plan(
            operator_pb2.PlanRequest(), timeout=PATIENCE_S
        )
    return {job.job_id: (job.start_s, job.nodes) for job in plan.jobs}


def test_starts_and_nodes_are_kept(home):
    """Slow: starts three services."""
    with a_service(home, policy="openccs"):
        before = announced(home, priorities={"1": 10, "2": 20, "3": 30})
    assert {start_s for start_s, _ in before.values()} == {FREE_S}
    assert len({nodes for _, nodes in before.values()}) == 3
    with a_service(home, policy="openccs"):  # by priority alone each would lie elsewhere
        after = announced(home, priorities={"1": 30, "2": 20, "3": 10, "4": 99})
    assert {job: after[job] for job in before} == before
    with a_service(home, policy="openccs", memory={"path": None}):  # remembers nothing
        again = announced(home, priorities={"1": 30, "2": 20, "3": 10, "4": 99})
    assert {job: again[job] for job in before} != before


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("UPDATE memory SET value = substr(value, 1, length(value) - 2) WHERE key = 'plan'", "crc"),
        ("UPDATE memory SET value = 'x' WHERE key = 'plan'", ""),
        ("UPDATE memory SET value = x'0a7b7d0a' WHERE key = 'plan'", "it is not a plan"),
    ],
)
def test_a_saved_plan_that_is_damaged_is_refused_and_the_service_goes_on(
    home, caplog, damage, problem
):
    with a_service(home, policy="openccs"):
        before = announced(home, priorities={"1": 10, "2": 20, "3": 30})
    with closing(sqlite3.connect(home / "memory.sqlite")) as database, database:
        assert database.execute(damage).rowcount == 1
    with a_service(home, policy="openccs"):
        assert "the saved plan is not used" in caplog.text
        assert (problem or "it is not a plan") in caplog.text.replace(
            "its checksum is wrong", "crc"
        )
        after = announced(home, priorities={"1": 10, "2": 20, "3": 30})
    starts = [{job: start_s for job, (start_s, _) in plan.items()} for plan in (before, after)]
    assert starts[0] == starts[1]


def test_a_plan_of_other_nodes_is_refused_and_the_starts_are_kept(home, caplog):
    with a_service(home, policy="openccs"):
        before = announced(home, priorities={"1": 10, "2": 20})
    others = some_nodes(3)
    with a_service(home, policy="openccs"):
        after = announced(home, priorities={"1": 10, "2": 20}, nodes=others)
        announced(home, priorities={"1": 10, "2": 20}, nodes=others)
    assert caplog.text.count("it is for other nodes; announced starts are kept") == 1
    assert {job: start_s for job, (start_s, _) in after.items()} == {
        job: start_s for job, (start_s, _) in before.items()
    }


def test_another_policy_begins_without_it(home, caplog):
    with a_service(home, policy="openccs"):
        announced(home, priorities={"1": 10, "2": 20})
    with a_service(home, policy="easy"):
        assert set(announced(home, priorities={"1": 10, "2": 20})) == {"1", "2"}
    assert "not used" not in caplog.text
