# SPDX-License-Identifier: Apache-2.0
"""What every preset must do from the first job of a workload to the last."""

import numpy as np
import pytest

from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.workloads.system import pool_of
from bridge.registry import build, parse_policy
from schedbridge_contracts import subject
from schedbridge_contracts.cycles import Memory, check, run
from schedbridge_contracts.workloads import random_workload

POLICIES = subject.presets()
NODES = 8


def result_of(policy, seed):
    """Simulates jobs that predictors can learn of; each plan is checked."""
    built, memory, rng = build(parse_policy(policy)), Memory(), np.random.default_rng(seed)

    def decide(snapshot):
        plan = run(snapshot, memory, built, rng)
        assert check(snapshot, plan) == ()
        return plan

    return simulate(random_workload(seed, 20, NODES), pool_of(NODES), decide)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_every_job_ends_and_at_the_same_time_in_a_second_run(policy):
    first, again = result_of(policy, 1), result_of(policy, 1)
    assert not first.refusals
    assert (first.schedule.end_s > first.schedule.start_s).all()
    assert first.schedule.start_s.tolist() == again.schedule.start_s.tolist()
