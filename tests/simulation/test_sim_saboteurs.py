# SPDX-License-Identifier: Apache-2.0
"""One saboteur for each rule of the simulated controller: it is refused, all else runs."""

import dataclasses

import numpy as np
import pytest

from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.workloads.system import pool_of, read_system
from schedbridge_contracts.workloads import a_workload
from tests.workloads import ReferenceBackfill

SHARED = """
nodes:
  - {names: "a[1-2]", cpus: 4, features: [fast]}
  - {names: "b1", cpus: 4}
partitions:
  - {name: small, nodes: "a[1-2]", max_time_s: 1000}
  - {name: alone, nodes: "b1", exclusive: true, queues: [9]}
"""


def spoil_first(**columns):
    """Spoils the plan of the first decision only; afterwards the naive planner is honest."""
    calls = []

    def decide(snapshot):
        plan = ReferenceBackfill()(snapshot)
        calls.append(plan)
        if len(calls) > 1:
            return plan
        changed = {name: change(getattr(plan, name)) for name, change in columns.items()}
        return dataclasses.replace(plan, **changed)

    return decide


def ints(values, dtype=np.int32):
    return np.array(values, dtype=dtype)


SABOTEURS = {
    "starts a job that is not there": ({"job": lambda job: job + 7}, "none"),
    "names a negative job": ({"job": lambda job: job - 7}, "none"),
    "starts one job twice": ({"job": lambda job: job * 0}, "is started twice by one plan"),
    "gives nodes that do not exist": ({"nodes": lambda n: n + 100}, "does not exist"),
    "gives negative nodes": ({"nodes": lambda n: n - 100}, "does not exist"),
    "gives one node twice": ({"nodes": lambda n: n * 0}, "or one twice"),
    "gives the same nodes to two jobs": (
        {"nodes": lambda n: ints([0, 1, 0, 1])},
        "which others hold",
    ),
    "gives too few nodes": (
        {
            "indptr": lambda p: ints([0, 1, 2], np.int64),
            "nodes": lambda n: n[:2],
            "tasks": lambda t: t[:2],
        },
        "gets 1 nodes where 2 to 2 belong",
    ),
    "uses a partition that the job did not name": ({"partition": lambda p: p + 1}, "did not name"),
    "plans with columns of different length": ({"start_s": lambda s: s[:-1]}, "different length"),
    "plans with offsets past the nodes": ({"indptr": lambda p: p * 9}, "do not fit its nodes"),
    "plans with offsets that fall": (
        {"indptr": lambda p: ints([0, 9, 4], np.int64)},
        "offsets that fall",
    ),
    "plans with offsets that do not begin at 0": ({"indptr": lambda p: p + 1}, "do not fit"),
    "answers for another time": ({"now_s": lambda now: now - 60}, "stale"),
}


@pytest.mark.parametrize("name", SABOTEURS)
def test_it_is_refused_and_everything_runs_all_the_same(name):
    spoilt, says = SABOTEURS[name]
    outcome = simulate(
        a_workload([(1, 50, 60, 2), (1, 50, 60, 2), (5, 10, 10, 4)], 4),
        pool_of(4),
        spoil_first(**spoilt),
    )
    assert any(says in str(refusal) for refusal in outcome.refusals), outcome.refusals
    assert outcome.schedule.finished.all()
    assert no_node_twice(outcome)


def test_a_node_out_of_service_is_refused():
    from bridge.lab.sim.runs.faults import Fault, FaultKind

    def blind(snapshot):
        usable = np.ones(len(snapshot.nodes), dtype=bool)
        seen = dataclasses.replace(
            snapshot, nodes=dataclasses.replace(snapshot.nodes, usable=usable)
        )
        return ReferenceBackfill()(seen)

    outcome = simulate(
        a_workload([(5, 10, 10, 2)], 2),
        pool_of(2),
        blind,
        faults=[Fault(1, FaultKind.NODE_LOST, 0), Fault(60, FaultKind.NODE_RETURNED, 0)],
    )
    assert any("not usable" in str(refusal) for refusal in outcome.refusals)
    assert outcome.schedule.start_s[0] >= 60


class OnSharedNodes:
    """A described system and a planner whose every start is written down in the test."""

    def __init__(self, tmp_path, jobs, queues, node_requests=None):
        path = tmp_path / "system.yaml"
        path.write_text(SHARED)
        self.system = read_system(path)
        self.workload = dataclasses.replace(
            a_workload(jobs, self.system.processors), queue=np.array(queues)
        )
        if node_requests is not None:
            requested = np.array(node_requests, dtype=object)
            self.workload = dataclasses.replace(self.workload, node_requests=requested)

    def refusals(self, *starts):
        """Each start as (job row, partition, {node: tasks}); all in the first second."""

        def decide(snapshot):
            plan = ReferenceBackfill(0)(snapshot)
            given = starts if snapshot.generation == 1 else ()
            widths = [len(placed) for *_, placed in given]
            return dataclasses.replace(
                plan,
                job=ints([job for job, *_ in given]),
                start_s=np.full(len(given), snapshot.now_s),
                end_s=np.full(len(given), snapshot.now_s + 1),
                partition=ints([partition for _, partition, _ in given]),
                indptr=np.cumsum([0, *widths]),
                nodes=ints([node for *_, placed in given for node in placed]),
                tasks=ints([n for *_, placed in given for n in placed.values()]),
                reasons=(None,) * len(given),
            )

        outcome = simulate(self.workload, self.system, decide)
        return [refusal.why for refusal in outcome.refusals if refusal.job]


def test_shared_nodes_hold_what_fits_and_no_more(tmp_path):
    world = OnSharedNodes(tmp_path, [(1, 9, 9, 3), (1, 9, 9, 2), (1, 9, 9, 1)], [-1, -1, -1])
    assert world.refusals((0, 0, {0: 3}), (1, 0, {0: 1, 1: 1})) == []
    assert world.refusals((0, 0, {0: 3}), (1, 0, {0: 2})) == [
        "does not fit on a1, which others hold"
    ]


def test_tasks_must_add_up(tmp_path):
    world = OnSharedNodes(tmp_path, [(1, 9, 9, 3)], [-1])
    assert world.refusals((0, 0, {0: 2})) == ["gets 2 tasks where 3 belong"]
    assert world.refusals((0, 0, {0: 3, 1: 0})) == ["gets 3 tasks where 3 belong"]


def test_an_exclusive_partition_shares_nothing(tmp_path):
    world = OnSharedNodes(tmp_path, [(1, 9, 9, 1), (1, 9, 9, 1)], [9, 9])
    assert world.refusals((0, 1, {2: 1}), (1, 1, {2: 1})) == [
        "does not fit on b1, which others hold"
    ]


def test_a_partition_keeps_to_its_nodes_and_its_time(tmp_path):
    world = OnSharedNodes(tmp_path, [(1, 9, 2000, 1)], [-1])
    assert world.refusals((0, 0, {2: 1})) == [
        "gets a node that is not usable or not in its partition"
    ]
    assert world.refusals((0, 0, {0: 1})) == ["asks for more than the partition's 1000 s"]


def test_a_job_gets_the_nodes_it_asked_for(tmp_path):
    texts = ["1:ppn=2:a2", "1:ppn=2:^a2", "1:ppn=2:fast", "2:ppn=2"]
    jobs = [(1, 9, 9, 2), (1, 9, 9, 2), (1, 9, 9, 2), (1, 9, 9, 4)]
    world = OnSharedNodes(tmp_path, jobs, [-1] * 4, texts)
    right = (0, 0, {1: 2}), (1, 0, {0: 2}), (2, 0, {0: 2}), (3, 0, {0: 2, 1: 2})
    assert world.refusals(*right[:3]) == []
    assert world.refusals(right[3]) == []
    assert world.refusals((0, 0, {0: 2})) == ["does not get a2, which it asked for"]
    assert world.refusals((1, 0, {1: 2})) == ["gets a2, which it excluded"]
    assert world.refusals((3, 0, {0: 3, 1: 1})) == [
        "gets 3 tasks on a node, more than it asked for"
    ]
    anywhere = OnSharedNodes(tmp_path, [(1, 9, 9, 2)], [9], ["1:ppn=2:fast"])
    assert anywhere.refusals((0, 1, {2: 2})) == ["gets nodes that do not match fast"]


def no_node_twice(outcome):
    """From the outcome alone: no node held by two jobs in one second."""
    start_s, end_s = outcome.schedule.start_s, outcome.schedule.end_s
    jobs = np.repeat(np.arange(len(start_s)), np.diff(outcome.indptr))
    order = np.lexsort((start_s[jobs], outcome.nodes))
    node, job = outcome.nodes[order], jobs[order]
    same = node[1:] == node[:-1]
    return bool((start_s[job[1:]][same] >= end_s[job[:-1]][same]).all())
