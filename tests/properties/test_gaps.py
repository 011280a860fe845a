# SPDX-License-Identifier: Apache-2.0
"""A stated gap is one: no order of the jobs, planned greedily, costs less than it allows.

Orders are tried on the planner that all rules are kept by. So a gap must not be stated where the
solver knows fewer ways for a job to lie than the planner does.
"""

import itertools
import random
from collections import Counter

import numpy as np
import pytest

from bridge.model.job import Hold
from bridge.planning.dispatch.objective import Objective
from bridge.policies.plan.backfill import Backfill
from bridge.registry import build, parse_policy
from bridge.units import NEVER, UNPLANNED
from schedbridge_contracts.builders import a_job, a_node, a_running_job, a_snapshot
from schedbridge_contracts.cycles import Memory, plan_alone

GOAL = Objective("slowdown")
PLANS = {
    "search": {"ageing_s": None, "most_wait_s": None, "effort": 20_000},
    "pcp19": {"startable": False, "effort": 0.3},
    "hcp19": {"startable": False, "effort": 0.3},
    "pcp20": {"startable": False, "effort": 0.3},
}


def world(seed):
    """Few jobs on few nodes; some may lie in several ways."""
    dice = random.Random(seed)
    nodes = [a_node(cpus=dice.choice((2, 4))) for _ in range(3)]
    running = [
        a_running_job((n,), dice.randint(5, 90), shared=True, cpus=dice.randint(1, 2))
        for n in range(3)
        if dice.random() < 0.7
    ]
    jobs = [
        dice.choice(
            (
                a_job(nodes=dice.randint(1, 2), limit_s=limit_s),
                a_job(shared=True, cpus=dice.randint(1, 3), limit_s=limit_s),
                a_job(shared=True, tasks=dice.randint(2, 5), max_nodes=2, limit_s=limit_s),
                a_job(shared=True, tasks=3, max_nodes=3, limit_s=limit_s),
            )
        )
        for limit_s in (dice.choice((10, 30, 100)) for _ in range(dice.randint(2, 4)))
    ]
    return a_snapshot(nodes=nodes, running=running, jobs=jobs)()


def started(plan):
    return bool(len(plan)) and not np.isin(plan.start_s, (NEVER, UNPLANNED)).any()


def minimum(snapshot, preference):
    """The least objective of any order, each job at its earliest start."""
    costs = []
    for order in itertools.permutations(range(len(snapshot.jobs))):
        rows = np.array(order, dtype=np.int64)
        plan = plan_alone(Backfill(depth=None), snapshot, rows, preference, Memory())
        costs.append(GOAL.of_plan(snapshot, plan))
    return min(costs)


@pytest.mark.parametrize("name", PLANS)
def test_nothing_costs_less_than_a_stated_gap_allows(name):
    seen = Counter()
    for seed in range(30):
        snapshot = world(seed)
        policy = build(parse_policy({"order": "fcfs", "plan": {"name": name, **PLANS[name]}}))
        order, preference = policy.order.order(snapshot), policy.place.preference(snapshot)
        memory = Memory()
        plan = plan_alone(policy.plan, snapshot, order, preference, memory)
        done = memory.dispatched
        if not started(plan) or done.jobs != len(snapshot.jobs):
            continue
        seen[done.gap is None] += 1
        if done.gap is None:
            continue
        # The dispatchers' models count from now, `search` from when a job came.
        length_s = plan.end_s - plan.start_s
        waited = float((1 + (snapshot.now_s - snapshot.jobs.submit_s[plan.job]) / length_s).sum())
        fixed = 0.0 if name == "search" else waited
        bound = fixed + (done.found - fixed) * (1 - done.gap)
        assert minimum(snapshot, preference) >= bound - 1e-4 * done.found, f"seed {seed}"
    assert seen[False] or name == "pcp20", "no gap was ever known"
    assert seen[True] or name == "search", "all gaps were known"


BEFORE = {
    "licence": {"licences": (1,)},
    "deadline": {"deadline_s": 5000},
}


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("kept", BEFORE.values(), ids=BEFORE)
def test_no_gap_is_stated_behind_a_job_that_keeps_its_place(name, kept):
    # Once the short job goes first the sum is 2.01; beside the long one's place it is 102.
    jobs = [a_job(limit_s=1000, priority=9, **kept), a_job(limit_s=10)]
    snapshot = a_snapshot(nodes=1, jobs=jobs, licences=[("lic", 4)])()
    policy = build(parse_policy({"order": "slurm", "plan": {"name": name, **PLANS[name]}}))
    order, preference = policy.order.order(snapshot), policy.place.preference(snapshot)
    memory = Memory()
    plan_alone(policy.plan, snapshot, order, preference, memory)
    done = memory.dispatched
    assert done.gap is None or done.found * (1 - done.gap) <= 2.01


@pytest.mark.parametrize("name", ["pcp19", "hcp19", "pcp20"])
@pytest.mark.parametrize("deadline_s", [50, 150], ids=["never", "in another order"])
def test_no_gap_is_stated_if_another_order_has_a_place_for_more_jobs(name, deadline_s):
    jobs = [a_job(priority=9), a_job(deadline_s=deadline_s)]
    snapshot = a_snapshot(nodes=1, jobs=jobs)()
    policy = build(parse_policy({"order": "slurm", "plan": {"name": name, **PLANS[name]}}))
    order, preference = policy.order.order(snapshot), policy.place.preference(snapshot)
    memory = Memory()
    plan_alone(policy.plan, snapshot, order, preference, memory)
    assert memory.dispatched.gap == (None if deadline_s == 150 else 0.0)


@pytest.mark.parametrize("name", ["pcp19", "hcp19", "pcp20"])
def test_a_fixed_start_behind_the_window_is_known_to_its_model(name):
    # The long one cannot start before 150: the solver is not to put it before the fixed start.
    fixed = a_job(fixed=True, begin_s=50, hold=Hold.BEGIN_TIME)
    jobs = [a_job(limit_s=100, priority=9), a_job(limit_s=60, priority=5), fixed]
    snapshot = a_snapshot(nodes=1, jobs=jobs)()
    policy = build(parse_policy({"order": "slurm", "plan": {"name": name, **PLANS[name]}}))
    order, preference = policy.order.order(snapshot), policy.place.preference(snapshot)
    memory = Memory()
    plan = plan_alone(policy.plan, snapshot, order, preference, memory)
    starts = dict(zip(plan.job.tolist(), plan.start_s.tolist(), strict=True))
    assert starts == {0: 210, 1: 150, 2: 50}
    assert memory.dispatched.fallback == ""
