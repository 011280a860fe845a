# SPDX-License-Identifier: Apache-2.0
"""What every plan policy must do, in every combination with the other stages."""

import dataclasses
import json
import os
import subprocess
import sys

import numpy as np

from bridge.registry import build, parse_policy
from schedbridge_contracts import subject
from schedbridge_contracts.builders import a_job, a_running_job, a_snapshot, gantt
from schedbridge_contracts.crosses import cases, each
from schedbridge_contracts.cycles import Memory, check, run
from schedbridge_contracts.worlds import random_world

STAGES = subject.crossed("plan", "order", "place")


def decide(snapshot, plan, order, place, seed=0):
    return run_policy(snapshot, {"order": order, "plan": plan, "place": place}, seed)


def run_policy(snapshot, policy, seed=0):
    """One cycle under a policy as it is written in a configuration."""
    built = build(parse_policy(policy))
    return run(snapshot, Memory(), built, np.random.default_rng(seed))


@each(**STAGES, seed=range(20))
def test_plans_are_legal(plan, order, place, seed):
    snapshot = random_world(seed)
    made = decide(snapshot, plan, order, place)
    assert check(snapshot, made) == (), gantt(snapshot, made)


@each(**STAGES, seed=range(20))
def test_deadlines_and_fixed_starts_are_kept(plan, order, place, seed):
    snapshot = with_bounds(random_world(seed), seed)
    made = decide(snapshot, plan, order, place)
    assert check(snapshot, made) == (), gantt(snapshot, made)


@each(**STAGES, late_s=[60, 61])
def test_a_fixed_start_is_a_minute_late_at_most(plan, order, place, late_s):
    job = a_job(2, begin_s=5000 - late_s, fixed=True)
    made = decide(a_snapshot(nodes=2, now_s=5000, jobs=[job])(), plan, order, place)
    assert len(made.starts_now) == (late_s <= 60)


@each(**STAGES, short_s=[0, 1])
def test_a_deadline_is_kept_to_the_second(plan, order, place, short_s):
    now_s = 6000  # of a minute: a window opens
    job = a_job(2, limit_s=100, deadline_s=now_s + 100 - short_s)
    made = decide(a_snapshot(nodes=2, now_s=now_s, jobs=[job])(), plan, order, place)
    assert len(made.starts_now) == (short_s == 0)


@each(**STAGES)
def test_an_empty_queue_is_an_empty_plan(plan, order, place):
    assert len(decide(a_snapshot()(), plan, order, place)) == 0


@each(**STAGES)
def test_a_full_cluster_starts_nothing(plan, order, place):
    running = [a_running_job((0, 1), 10**6)]
    full = a_snapshot(nodes=2, running=running)()
    snapshot = a_snapshot(nodes=2, running=running, jobs=random_jobs())()
    assert len(decide(full, plan, order, place)) == 0
    assert len(decide(snapshot, plan, order, place).starts_now) == 0


@each(**STAGES)
def test_no_cluster_at_all_leaves_reasons(plan, order, place):
    made = decide(a_snapshot(nodes=0, jobs=random_jobs())(), plan, order, place)
    assert len(made.starts_now) == 0
    assert all(reason is not None for reason in made.reasons)


def decisions(policies):
    """Starts and nodes under each of some policies, in a world for each."""
    made = [decide(random_world(seed % 20), **policy) for seed, policy in enumerate(policies)]
    return [[plan.start_s.tolist(), plan.nodes.tolist()] for plan in made]


def test_the_same_seed_gives_the_same_plan_in_another_process():
    policies = dict(cases(**STAGES))
    code = (
        "import json, sys; from schedbridge_contracts.test_plan_stage import decisions;"
        "print(json.dumps(decisions(json.load(sys.stdin))))"
    )
    other = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(list(policies.values())),
        env=os.environ | {"PYTHONHASHSEED": "1"}, capture_output=True, check=True, text=True,
    )  # fmt: skip
    there, here = json.loads(other.stdout), decisions(policies.values())
    compared = zip(policies, there, here, strict=True)
    assert [name for name, theirs, ours in compared if theirs != ours] == []


def with_bounds(snapshot, seed):
    """The same world, in which some jobs have a deadline or a fixed start."""
    rng, jobs = np.random.default_rng(seed), snapshot.jobs
    n, now_s = len(jobs), snapshot.now_s
    some = rng.random(n) < 0.5
    fixed = ~some & (rng.random(n) < 0.3)
    jobs = dataclasses.replace(
        jobs,
        deadline_s=np.where(some, now_s + rng.integers(1, 400, n), 0),
        min_time_s=np.where(rng.random(n) < 0.5, rng.integers(1, 60, n), 0),
        fixed=fixed,
        begin_s=np.where(fixed, now_s + rng.integers(1, 200, n), jobs.begin_s),
    )
    return dataclasses.replace(snapshot, jobs=jobs)


def random_jobs():
    return [a_job(nodes=1), a_job(nodes=2), a_job(shared=True, tasks=3)]
