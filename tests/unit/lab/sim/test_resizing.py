# SPDX-License-Identifier: Apache-2.0
"""Simulated jobs whose width changes while they run."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.cycle import run_cycle
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.runs.faults import Fault, FaultKind
from bridge.lab.sim.workloads.speedup import Amdahl
from bridge.lab.sim.workloads.system import pool_of
from bridge.model.decisions.resizes import Resizes
from bridge.model.rules.site import NO_RULES
from bridge.ports import State
from bridge.registry import build, parse_policy
from schedbridge_contracts.crosses import each, seeds
from schedbridge_contracts.reshaping import RandomReshape
from schedbridge_contracts.workloads import a_workload
from tests.workloads import malleable


class Resizing:
    """Plans by the cycle; at stated instants a resize is put into the plan, unchecked."""

    def __init__(self, at=None, reshape=None):
        self.at, self.seen = at or {}, []
        policy = build(parse_policy("easy"))
        self.policy = policy if reshape is None else replace(policy, reshape=reshape)

    def __call__(self, snapshot):
        self.seen.append(snapshot)
        plan = run_cycle(snapshot, NO_RULES, State(), self.policy, np.random.default_rng(0)).plan
        if (rows := self.at.get(snapshot.now_s)) is not None:
            rows = [(job, by_s, np.array(nodes, np.int32), "") for job, nodes, by_s in rows]
            plan = replace(plan, resizes=Resizes.of(rows))
        return plan


def test_added_nodes_are_held_until_the_end():
    decide = Resizing({5: [(0, (0, 1, 2), 7)]})
    outcome = simulate(
        malleable(a_workload([(1, 20, 20, 2), (5, 9, 9, 4), (6, 9, 9, 2)], 4)), pool_of(4), decide
    )
    assert not outcome.refusals
    assert outcome.schedule.start_s.tolist() == [1, 23, 32]  # it stood still for 2 s
    assert outcome.nodes[: outcome.indptr[1]].tolist() == [0, 1, 2]


def test_removed_nodes_are_free_when_the_plan_says_and_not_before():
    decide = Resizing({5: [(0, (0,), 9)]})
    outcome = simulate(malleable(a_workload([(1, 20, 20, 4), (5, 5, 5, 2)], 4)), pool_of(4), decide)
    assert not outcome.refusals
    assert outcome.schedule.start_s.tolist() == [1, 9]
    assert outcome.schedule.end_s.tolist() == [25, 14]  # it stood still for 4 s


def test_a_job_that_gives_nodes_back_is_shown_as_adapting():
    decide = Resizing({5: [(0, (0,), 9)]})
    simulate(
        malleable(a_workload([(1, 20, 20, 4), (5, 5, 5, 2), (7, 1, 1, 4)], 4)), pool_of(4), decide
    )
    shown = next(snapshot.running for snapshot in decide.seen if snapshot.now_s == 7)
    assert shown.id.tolist() == ["1", "1"]
    assert shown.adapting.tolist() == [True, False]
    assert shown.releasing.tolist() == [False, True]
    assert shown.end_s.tolist() == [25, 9]
    assert shown.nodes.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        ((0, 1, 2, 3), "which others hold"),
        ((0, 2), "gets nodes and loses others at once"),
        ((0, 1), "keeps the nodes it has"),
        ((0, 1, 9), "does not exist"),
    ],
)
def test_an_impossible_resize_is_refused_and_nothing_else(nodes, why):
    decide = Resizing({5: [(0, nodes, 9)]})
    outcome = simulate(
        malleable(a_workload([(1, 20, 20, 2), (2, 20, 20, 1), (5, 5, 5, 3)], 4)), pool_of(4), decide
    )
    assert why in str(outcome.refusals[0])
    assert len(outcome.refusals) == 1
    assert (outcome.schedule.end_s > 0).all()


def test_a_rigid_job_is_not_resized():
    decide = Resizing({5: [(0, (0,), 9)]})
    outcome = simulate(a_workload([(1, 20, 20, 2), (5, 5, 5, 4)], 4), pool_of(4), decide)
    assert "not malleable" in str(outcome.refusals[0])


def test_a_job_that_loses_a_node_while_it_shrinks_frees_all_of_them():
    decide = Resizing({5: [(0, (0,), 15)]})
    faults = [Fault(7, FaultKind.NODE_LOST, 3), Fault(8, FaultKind.NODE_RETURNED, 3)]
    outcome = simulate(
        malleable(a_workload([(1, 20, 20, 4), (5, 5, 5, 1)], 4)), pool_of(4), decide, faults=faults
    )
    assert outcome.restarts.tolist() == [1, 0]
    assert outcome.schedule.end_s.tolist()[0] == outcome.schedule.start_s.tolist()[0] + 20


@each(seed=seeds(4, whole=10))
def test_resizing_at_random_every_job_ends_and_nothing_is_refused(seed):
    """Slow: 60 jobs are resized at random at every event."""
    rng = np.random.default_rng(seed)
    jobs = [
        (1 + int(rng.integers(200)), run_s, run_s + int(rng.integers(50)), int(rng.integers(1, 9)))
        for run_s in rng.integers(1, 80, 60).tolist()
    ]
    decide = Resizing(reshape=RandomReshape(seed))
    outcome = simulate(malleable(a_workload(jobs, 12)), pool_of(12), decide)
    assert not outcome.refusals
    assert not outcome.failures
    ran_s = outcome.schedule.end_s - outcome.schedule.start_s
    assert (ran_s >= outcome.workload.runtime_s).all()  # they stand still while they adapt
    assert any(snapshot.running.adapting.any() for snapshot in decide.seen)
    spells, held_s = outcome.spells, np.zeros(len(jobs), dtype=np.int64)
    np.add.at(held_s, spells.job, np.diff(spells.indptr) * (spells.until_s - spells.from_s))
    assert held_s.tolist() == outcome.schedule.held_s.tolist()


def test_a_wider_job_is_as_much_faster_as_its_speedup():
    workload = malleable(a_workload([(1, 100, 100, 1), (11, 1, 1, 1)], 4))
    workload.malleable.speedup[:] = [Amdahl(0.0)] * 2
    outcome = simulate(workload, pool_of(4), Resizing({11: [(0, (0, 3), 12)]}))
    # 10 s on one node, a second of adapting, 90 s of work on two nodes.
    assert outcome.schedule.end_s.tolist() == [11 + 1 + 45, 12]
