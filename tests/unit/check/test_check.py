# SPDX-License-Identifier: Apache-2.0
"""Every rule of the judge is broken once, on a plan that is legal otherwise."""

import dataclasses

import numpy as np
import pytest

from bridge.model.job import Hold, WidthRule
from bridge.model.topology import Topology
from bridge.registry import build, parse_policy
from bridge.units import NEVER
from schedbridge_contracts.builders import (
    a_job,
    a_node,
    a_partition,
    a_reservation,
    a_running_job,
    a_snapshot,
)
from schedbridge_contracts.cycles import Memory, check, run

WORLD = {
    "nodes": [a_node(features=("x",)), a_node(), a_node(), a_node(usable=False)],
    "partitions": [a_partition("p", range(4), max_time_s=500), a_partition("q", (0, 1))],
    "running": [a_running_job((2,), 100)],
    "licences": [("matlab", 2)],
    "reservations": [a_reservation((1,), 1000, 2000)],
}
JOBS = [
    a_job(nodes=1),
    a_job(nodes=1, shared=True, tasks=4, licences=(1,)),
    a_job(nodes=1, licences=(1,)),
    a_job(array_tasks=3, array_startable=1),
    a_job(hold=Hold.BEGIN_TIME, begin_s=700),
    a_job(hold=Hold.HELD),
]


@pytest.fixture
def legal():
    snapshot = a_snapshot(**WORLD, jobs=JOBS)()
    policy = build(parse_policy("conservative"))
    return snapshot, run(snapshot, Memory(), policy, np.random.default_rng(0))


def broken(snapshot, plan, **columns):
    return " / ".join(map(str, check(snapshot, dataclasses.replace(plan, **columns))))


def changed(column, position, value):
    copy = column.copy()
    copy[position] = value
    return copy


def test_a_legal_plan_is_legal(legal):
    assert check(*legal) == ()


@pytest.mark.parametrize(
    ("column", "position", "value", "says"),
    [
        ("start_s", 0, -5, "starts in the past"),
        ("start_s", 5, 600, "before its begin time"),
        ("start_s", 4, 0, "is held"),
        ("end_s", 0, 99, "not planned for its time limit"),
        ("partition", 0, -1, "no partition"),
        ("partition", 0, 1, "did not name partition q"),
        ("partition", 0, 7, "unknown partition"),
        ("nodes", 0, 3, "not usable"),
        ("nodes", 0, 2, "oversubscribes a node"),
        ("nodes", 0, 99, "unknown node"),
        ("job", 0, 99, "unknown job"),
        ("tasks", 1, 3, "does not hold its tasks"),
        ("job", 0, 1, "has no row"),
    ],
)
def test_a_broken_column_is_found(legal, column, position, value, says):
    snapshot, plan = legal
    assert says in broken(
        snapshot, plan, **{column: changed(getattr(plan, column), position, value)}
    )


def test_a_plan_for_another_second(legal):
    snapshot, plan = legal
    assert "made for second" in broken(snapshot, plan, now_s=1)


def test_columns_of_different_length(legal):
    snapshot, plan = legal
    assert "different length" in broken(snapshot, plan, start_s=plan.start_s[:-1])


def test_waiting_needs_a_reason(legal):
    snapshot, plan = legal
    reasons = tuple(None for _ in plan.reasons)
    assert "without a reason" in broken(snapshot, plan, reasons=reasons)


def verdict(job, world=None, **columns):
    """Plans one job alone on idle nodes, then breaks the plan."""
    snapshot = a_snapshot(**({"nodes": 4} | (world or {})), jobs=[a_job(nodes=job.nodes)])()
    plan = run(snapshot, Memory(), build(parse_policy("conservative")), np.random.default_rng(0))
    requested = a_snapshot(**({"nodes": 4} | (world or {})), jobs=[job])()
    return broken(requested, plan, **columns)


@pytest.mark.parametrize(
    ("job", "world", "says"),
    [
        (a_job(nodes=2, width_rule=WidthRule.ODD), {}, "not odd"),
        (a_job(required=(3,)), {}, "misses a required node"),
        (a_job(excluded=(0,)), {}, "outside partition or constraint"),
        (a_job(features="none"), {}, "outside partition or constraint"),
        (a_job(cpus=5), {}, "requests more than a node has"),
        (a_job(licences=(3,)), {"licences": [("matlab", 2)]}, "oversubscribes a licence"),
        (a_job(limit_s=50), {}, "not planned for its time limit"),
        (a_job(reservation=0), {"reservations": [a_reservation((3,), 5, 900)]}, "leaves its"),
        (a_job(max_nodes=3, nodes=1, limit_s=100, tasks=9), {}, "does not hold its tasks"),
    ],
)
def test_a_plan_made_for_another_request_is_found(job, world, says):
    assert says in verdict(job, world)


def test_nodes_of_a_reservation_are_closed_to_others():
    world = {"reservations": [a_reservation((0,), 50, 80)], "nodes": 2}
    snapshot = a_snapshot(**world, jobs=[a_job()])()
    free = a_snapshot(nodes=2, jobs=[a_job()])()
    plan = run(free, Memory(), build(parse_policy("conservative")), np.random.default_rng(0))
    assert "uses nodes of reservation maint" in broken(snapshot, plan)


def test_arrays_may_not_exceed_their_own_limit():
    many = a_snapshot(jobs=[a_job(array_tasks=3, array_startable=3)])()
    few = a_snapshot(jobs=[a_job(array_tasks=3, array_startable=2)])()
    plan = run(many, Memory(), build(parse_policy("conservative")), np.random.default_rng(0))
    assert "started 3 times, 2 allowed" in broken(few, plan)


def test_what_runs_already_is_not_the_plans_fault():
    """Two running jobs oversubscribe node 0; a plan that stays away from it is legal."""
    running = [a_running_job((0,), 100), a_running_job((0,), 100)]
    snapshot = a_snapshot(nodes=2, running=running, jobs=[a_job(), a_job()])()
    plan = run(snapshot, Memory(), build(parse_policy("conservative")), np.random.default_rng(0))
    assert plan.start_s.tolist() == [0, 100]


def test_who_takes_nothing_of_what_is_oversubscribed_adds_nothing_to_it():
    """A node was configured smaller under its job: its memory is gone, some CPUs are free."""
    jobs = [a_job(shared=True, cpus=1), a_job(shared=True, cpus=1, mem_mib=1)]
    before, after = (
        a_snapshot(nodes=1, running=[a_running_job((0,), 100, True, 1, mem_mib)], jobs=jobs)()
        for mem_mib in (0, 10**6)
    )
    plan = run(before, Memory(), build(parse_policy("conservative")), np.random.default_rng(0))
    assert plan.start_s.tolist() == [0, 0]
    assert [(v.row, v.text) for v in check(after, plan)] == [(1, "oversubscribes a node")]


def on_switches(job, leaf_of_node, parent=(-1, -1)):
    """Plans a job on nodes that hang nowhere, then says where they do hang."""
    snapshot = a_snapshot(jobs=[job])()
    plan = run(snapshot, Memory(), build(parse_policy("conservative")), np.random.default_rng(0))
    topology = Topology(
        tuple("ab"), np.array(parent, dtype=np.int32), np.array(leaf_of_node, dtype=np.int32)
    )
    return [v.text for v in check(dataclasses.replace(snapshot, topology=topology), plan)]


@pytest.mark.parametrize(
    ("leaf_of_node", "says"),
    [
        ((0, 0, 1, 1), []),
        ((0, 1, 0, 1), ["has nodes of two fabrics"]),
        ((0, -1, 0, 1), ["has several nodes, one on no switch"]),
        ((-1, -1, 0, 1), ["has several nodes, one on no switch"]),
    ],
)
def test_a_job_has_nodes_of_one_fabric(leaf_of_node, says):
    assert on_switches(a_job(2), leaf_of_node) == says


def test_a_cluster_without_nodes_has_no_fabrics():
    none = np.zeros(0, dtype=np.int32)
    topology = Topology(("a",), np.array([-1], dtype=np.int32), none)
    world = dataclasses.replace(a_snapshot(nodes=0, jobs=[a_job(2)])(), topology=topology)
    policy = build(parse_policy("easy"))
    assert run(world, Memory(), policy, np.random.default_rng(0)).start_s.tolist() == [NEVER]


def test_leaf_switches_are_counted_until_the_job_has_waited():
    three = (0, 0, 2, 2)
    parent = (1, -1, 1)
    few = "is on 2 leaf switches before it has waited for 1"
    assert on_switches(a_job(4, switches=1, switches_wait_s=9), three, parent) == [few]
    assert on_switches(a_job(4, switches=1, switches_wait_s=0), three, parent) == []
    assert on_switches(a_job(4, switches=2, switches_wait_s=9), three, parent) == []
    assert on_switches(a_job(2, switches=1, switches_wait_s=9), three, parent) == []
