# SPDX-License-Identifier: Apache-2.0
"""Jobs that ask for nothing of what others ask for: no CPUs, no memory, no time, no anything."""

import dataclasses
import random

import numpy as np
import pytest

from bridge.core import search_orders
from schedbridge_contracts import subject
from schedbridge_contracts.builders import a_job, a_node, a_running_job, a_snapshot, gantt
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import check
from schedbridge_contracts.test_plan_stage import run_policy

PLANS = [
    *subject.tried("plan").values(),
    *(
        {"name": name, "startable": False, "budget_ms": 0, "effort": 0.1}
        for name in ("pcp19", "hcp19", "pcp20")
    ),
]


def empty_handed(dice: random.Random) -> a_job:
    """A job that asks for little, and of most things for nothing."""
    zero_or = lambda maximum: dice.choice((0, 0, dice.randint(1, maximum)))  # noqa: E731
    tasks = zero_or(4)
    return a_job(
        nodes=1,
        max_nodes=4 if tasks else None,
        tasks=tasks,
        cpus_per_task=zero_or(2),
        shared=dice.random() < 0.85,
        cpus=zero_or(2),
        mem_mib=zero_or(2000),
        gpus=zero_or(2),
        limit_s=dice.choice((0, 1, 20, 60, 300)),
        submit_s=-dice.randint(0, 100),
        licences=(zero_or(1),),
        chunks=dice.choice(("",) * 8 + ("2:ncpus=1", "2:ncpus=1+1:ncpus=2")),
    )


def world(seed: int):
    dice = random.Random(seed)
    nodes = [
        a_node(dice.choice((0, 2, 4)), dice.choice((0, 4000)), dice.choice((0, 2)))
        for _ in range(4)
    ]
    nodes[0] = a_node(cpus=4, mem_mib=4000, gpus=2)
    running = [
        a_running_job((n,), dice.randint(-5, 90), shared=True, cpus=zero, gpus=0)
        for n in range(4)
        if (zero := min(dice.choice((0, 1)), nodes[n].cpus)) is not None and dice.random() < 0.6
    ]
    jobs = [empty_handed(dice) for _ in range(dice.randint(1, 9))]
    if dice.random() < 0.5:  # somebody who has to wait
        jobs.append(a_job(nodes=4, limit_s=100, submit_s=-200))
    return a_snapshot(nodes=nodes, running=running, jobs=jobs, licences=[("l", 1)])()


@pytest.mark.parametrize("plan", PLANS, ids=subject.name_of)
@each(seed=range(40))
def test_every_policy_plans_them(plan, seed):
    snapshot = world(seed)
    found = run_policy(snapshot, {"order": "slowdown", "plan": plan, "place": "best-fit"})
    assert check(snapshot, found) == (), f"seed {seed}\n{gantt(snapshot, found)}"


def test_an_order_of_jobs_that_ask_for_nothing_is_searched():
    from tests.unit.core.test_order_arguments import PROBLEM, REQUESTED

    nothing = np.zeros_like(PROBLEM.per_task)
    problem = dataclasses.replace(PROBLEM, per_task=nothing, per_node=nothing)
    found = search_orders(problem, **REQUESTED)
    assert sorted(found.order.tolist()) == [0, 1]
