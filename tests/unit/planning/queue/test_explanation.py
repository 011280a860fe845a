# SPDX-License-Identifier: Apache-2.0
"""The sentences of jobs that wait: what they name, by the kernel without rules and by the book."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.model.reasons import ReasonCode
from bridge.registry import build, parse_policy
from bridge.units import format_clock
from schedbridge_contracts.builders import (
    a_job,
    a_node,
    a_partition,
    a_reservation,
    a_running_job,
    a_snapshot,
)
from schedbridge_contracts.cycles import Memory, run

RESOURCES, DOWN, NEVER = ReasonCode.RESOURCES, ReasonCode.NODES_DOWN, ReasonCode.NEVER
MAIN = (a_partition("main", range(8)),)
FAST = [a_node(features=("fast",) if index < 2 else ()) for index in range(4)]


@pytest.fixture(params=["conservative", "openccs"])
def told(request):
    """Plans a world; code and text of its last job."""

    def of(jobs, *, states=(), maintenance=False, **world):
        snapshot = a_snapshot(jobs=[jobs] if isinstance(jobs, a_job) else jobs, **world)()
        if states:
            snapshot = replace(snapshot, nodes=replace(snapshot.nodes, state=tuple(states)))
        if maintenance:
            (one,) = snapshot.reservations
            snapshot = replace(snapshot, reservations=(replace(one, maintenance=True),))
        plan = run(snapshot, Memory(), build(parse_policy(request.param)))
        (row,) = np.flatnonzero(plan.job == len(snapshot.jobs) - 1)
        assert plan.start_s[row] != snapshot.now_s
        reason = plan.reasons[row]
        return reason.code, reason.text

    return of


def test_named_nodes_that_are_in_use_are_named(told):
    busy = {"nodes": 8, "partitions": MAIN, "running": [a_running_job((7,), 100)]}
    one = a_job(required=(7,))
    assert told(one, **busy) == (RESOURCES, "needs n8, which is in use")
    two = a_job(2, required=(6, 7))
    assert told(two, **busy) == (RESOURCES, "needs n[7-8], of which n8 is in use")
    busy["running"] = [a_running_job((6, 7), 100)]
    assert told(two, **busy) == (RESOURCES, "needs n[7-8], which are in use")


def test_a_named_node_without_room_for_the_job_is_in_use(told):
    partly = {"nodes": 2, "running": [a_running_job((1,), 100, shared=True, cpus=3)]}
    job = a_job(required=(1,), shared=True, cpus=2)
    assert told(job, **partly) == (RESOURCES, "needs n2, which is in use")


def test_a_named_node_that_goes_to_a_job_before(told):
    jobs = [a_job(required=(1,), priority=9), a_job(required=(1,))]
    assert told(jobs, nodes=2) == (RESOURCES, "needs n2, which goes to a job before it")


def test_others_are_busy_than_those_that_are_named(told):
    busy = {"nodes": 8, "partitions": MAIN, "running": [a_running_job(tuple(range(6)), 100)]}
    assert told(a_job(4, required=(7,)), **busy) == (RESOURCES, "needs 4 nodes of main with n8")


@pytest.mark.parametrize(
    ("state", "word"),
    [
        ("DOWN", "down"),
        ("DOWN+DRAIN", "down"),
        ("DOWN*", "down"),
        ("UP+DRAIN", "drained"),
        ("UP+NOT_RESPONDING", "not responding"),
        ("UP+POWERED_DOWN", "powered off"),
        ("", "not available"),
    ],
)
def test_a_named_node_that_is_not_up_is_named_with_its_state(told, state, word):
    nodes = [a_node(), a_node(usable=False), a_node()]
    job = a_job(required=(1,))
    expected = (DOWN, f"needs n2, which is {word}")
    assert told(job, nodes=nodes, states=("UP", state, "UP")) == expected


def test_named_nodes_that_are_not_up_for_several_reasons(told):
    nodes = [a_node(), a_node(usable=False), a_node(usable=False)]
    states = ("UP", "DOWN", "UP+DRAIN")
    expected = (DOWN, "needs n[1-3], of which n2 is down, n3 is drained")
    assert told(a_job(3, required=(0, 1, 2)), nodes=nodes, states=states) == expected
    expected = (DOWN, "needs n[1-2], of which n2 is down")
    assert told(a_job(2, required=(0, 1)), nodes=nodes, states=states) == expected


def test_a_constraint_is_named_when_all_nodes_that_meet_it_are_down(told):
    nodes = [replace(node, usable=not node.features) for node in FAST]
    job = a_job(features="fast")
    assert told(job, nodes=nodes) == (RESOURCES, "needs 1 node of batch with fast, none is up")
    nodes[0].usable = True
    expected = (RESOURCES, "needs 2 nodes of batch with fast, only 1 is up")
    assert told(a_job(2, features="fast"), nodes=nodes) == expected


def test_a_constraint_is_named_when_all_nodes_that_meet_it_are_busy(told):
    code, text = told(a_job(features="fast"), nodes=FAST, running=[a_running_job((0, 1), 100)])
    assert code is RESOURCES
    assert "batch with fast" in text


def test_nodes_that_are_excluded_are_none_that_could_come_back(told):
    nodes = [a_node(usable=False), a_node()]
    assert told(a_job(2, excluded=(0,)), nodes=nodes) == (
        NEVER, "no 2 nodes of batch can hold it with its constraints",
    )  # fmt: skip


def test_tasks_for_which_too_few_nodes_are_up(told):
    nodes = [a_node(usable=index < 2) for index in range(8)]
    job = a_job(max_nodes=8, shared=True, tasks=9)
    expected = (RESOURCES, "needs room for 9 tasks in batch, only 2 of 8 nodes are up")
    assert told(job, nodes=nodes) == expected
    job = a_job(max_nodes=8, shared=True, tasks=33)
    assert told(job, nodes=nodes)[0] is NEVER


def test_a_reservation_that_has_begun_is_named_with_its_end(told):
    kept = {"nodes": 4, "reservations": [a_reservation([0, 1], 0, 5000, "r1")], "now_s": 1000}
    until = format_clock(5000, 1000)
    expected = f"reservation r1 keeps n[1-2] until {until}"
    assert told(a_job(3), **kept) == (ReasonCode.RESERVATION, expected)
    expected = f"reservation r1 keeps n1 until {until}"
    assert told(a_job(1, required=(0,)), **kept) == (ReasonCode.RESERVATION, expected)
    assert told(a_job(3), **kept, maintenance=True)[0] is ReasonCode.MAINTENANCE


def test_a_reservation_that_begins_too_soon_is_named_with_its_begin(told):
    coming = {"nodes": 4, "reservations": [a_reservation([3], 1500, 5000, "r1")], "now_s": 1000}
    expected = f"reservation r1 of n4 begins {format_clock(1500, 1000)}, before it would end"
    assert told(a_job(4, limit_s=600), **coming) == (ReasonCode.RESERVATION, expected)


def test_the_one_that_has_begun_is_named_first(told):
    both = [a_reservation([3], 0, 5000, "now"), a_reservation([2], 1100, 5000, "soon")]
    code, text = told(a_job(4), nodes=4, reservations=both, now_s=1050)
    assert code is ReasonCode.RESERVATION
    assert text.startswith("reservation now keeps n4 until ")
    assert text.endswith("; 1 more like it")


def test_the_jobs_own_reservation_is_to_begin(told):
    own = [a_reservation([0, 1], 1500, 5000, "mine")]
    expected = f"its reservation mine begins {format_clock(1500, 1000)}"
    told_of = told(a_job(reservation=0), nodes=4, reservations=own, now_s=1000)
    assert told_of == (ReasonCode.RESERVATION, expected)


def test_a_licence_that_is_used_up_is_told_before_busy_nodes(told):
    world = {
        "nodes": 4,
        "licences": [("ansys", 9), ("matlab", 4)],
        "running": [a_running_job((0,), 100, licences=(0, 4))],
    }
    code, text = told(a_job(4, licences=(1, 1)), **world)
    assert code is ReasonCode.LICENCES
    assert text.startswith("licence matlab is in use; ")
    assert "4 nodes" in text
    code, text = told(a_job(4, licences=(1, 0)), **world)
    assert code is RESOURCES
