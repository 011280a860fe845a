# SPDX-License-Identifier: Apache-2.0
"""What every reshape and every share policy must do."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.cycle import run_cycle
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.workloads.speedup import Amdahl
from bridge.lab.sim.workloads.system import pool_of
from bridge.lab.sim.workloads.workload import Malleable
from bridge.model.rules.site import NO_RULES
from bridge.ports import State
from bridge.registry import build, parse_policy
from schedbridge_contracts import subject
from schedbridge_contracts.alike import assert_alike
from schedbridge_contracts.crosses import each
from schedbridge_contracts.reshaping import a_malleable_world as a_world
from schedbridge_contracts.reshaping import naive_problem
from schedbridge_contracts.workloads import a_workload
from schedbridge_contracts.worlds import random_world

STAGES = {
    f"{stage}-{name}": (stage, written)
    for stage in ("reshape", "share")
    for name, written in subject.tried(stage).items()
}


def a_policy(stage, name):
    return build(parse_policy({"preset": "slurm-like", stage: name}))


def plan_of(snapshot, policy):
    return run_cycle(snapshot, NO_RULES, State(), policy, np.random.default_rng(0)).plan


@pytest.mark.parametrize(("stage", "name"), STAGES.values(), ids=STAGES)
class TestEveryReshapeAndSharePolicy:
    @each(seed=range(20))
    def test_plans_on_malleable_worlds_are_legal_and_repeatable(self, stage, name, seed):
        world, policy = a_world(seed), a_policy(stage, name)
        plan = plan_of(world, policy)
        assert naive_problem(world, plan) is None
        assert_alike(plan, plan_of(world, policy))

    @each(seed=range(20))
    def test_where_no_job_is_malleable_the_plan_is_that_of_none(self, stage, name, seed):
        world = random_world(seed)
        plan, plain = plan_of(world, a_policy(stage, name)), plan_of(world, a_policy(stage, "none"))
        assert_alike(plan.by(""), plain.by(""))
        assert not len(plan.resizes)

    def test_every_job_of_a_malleable_workload_ends(self, stage, name):
        rng, policy = np.random.default_rng(1), a_policy(stage, name)
        jobs = [
            (1 + int(rng.integers(200)), run_s, 2 * run_s, int(rng.integers(1, 9)))
            for run_s in rng.integers(1, 80, 40).tolist()
        ]
        widths = Malleable(
            np.full(40, 1), np.full(40, 10), np.zeros(40, dtype=np.int8),
            np.array([processors for *_, processors in jobs]), np.full(40, Amdahl(0.05)),
        )  # fmt: skip
        outcome = simulate(
            replace(a_workload(jobs, 10), malleable=widths),
            pool_of(10),
            lambda snapshot: plan_of(snapshot, policy),
        )
        assert not outcome.refusals
        assert (outcome.schedule.end_s > outcome.schedule.start_s).all()
