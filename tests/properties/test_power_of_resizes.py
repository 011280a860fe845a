# SPDX-License-Identifier: Apache-2.0
"""Jobs that grow, shrink and start on other widths keep the upper bound of power, second by second.

Power is added up by hand from the plan's columns: nodes that a job is given draw from now on, those
that it gives back until they are free.
"""

from dataclasses import replace

import numpy as np
import pytest

from bridge.cycle import run_cycle
from bridge.extensions.power.rules import Corridor, NodePower, PowerRules, power_of, with_power
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import Site
from bridge.ports import State
from bridge.registry import build, choices, parse_policy
from bridge.units import NEVER, UNPLANNED
from schedbridge_contracts.crosses import each
from schedbridge_contracts.reshaping import RandomReshape, a_malleable_world

IDLE_W = 50
STAGES = [*choices()["reshape"], "random"]


def drawing(world, rng):
    """The world, in which every job states what it draws."""
    jobs, running = world.jobs, world.running
    return replace(
        world,
        jobs=replace(jobs, max_power_w=rng.integers(60, 300, len(jobs))),
        running=replace(running, max_power_w=rng.integers(60, 300, len(running))),
    )


def spans(world, plan):
    """Who draws how much beyond idle, from when until when; the running jobs first."""
    running, now_s = world.running, world.now_s
    resized = {int(job): row for row, job in enumerate(plan.resizes.job)}
    returned = {int(job): row for row, job in enumerate(plan.returns.job)}
    for job in range(len(running)):
        each_w = max(int(running.max_power_w[job]) - IDLE_W, 0)
        has = set(running.nodes[running.indptr[job] : running.indptr[job + 1]].tolist())
        end_s = max(int(running.end_s[job]), now_s + 1)
        for rows, changes in ((resized, plan.resizes), (returned, plan.returns)):
            if job not in rows:
                continue
            row = rows[job]
            after = set(changes.nodes_of(row).tolist())
            until_s = max(min(int(changes.by_s[row]), end_s), now_s + 1)
            yield len(has - after) * each_w, now_s, until_s, False
            has, end_s = after, max(int(changes.end_s[row]) or end_s, now_s + 1)
        yield len(has) * each_w, now_s, end_s, False
    for row in range(len(plan)):
        if plan.start_s[row] not in (NEVER, UNPLANNED):
            each_w = int(world.jobs.max_power_w[plan.job[row]]) - IDLE_W
            width = len(plan.nodes_of(row))
            yield width * each_w, int(plan.start_s[row]), int(plan.end_s[row]), True


def exceeded(world, plan, corridor):
    """The seconds at which rows, or nodes that jobs were given, draw above the bound."""
    rest_w = IDLE_W * len(world.nodes)
    found, drawn = [], list(spans(world, plan))
    before_w = int((np.diff(world.running.indptr) * (world.running.max_power_w - IDLE_W)).sum())
    edges = {at for _, begin, end, _ in drawn for at in (begin, end)} | {*corridor.starts_s}
    for second in sorted(at for at in edges if world.now_s <= at):
        there = [(watts, mine) for watts, begin, end, mine in drawn if begin <= second < end]
        total = rest_w + sum(watts for watts, _ in there)
        more = any(mine and watts for watts, mine in there)
        more |= total - rest_w > before_w
        if total > corridor.at(second)[1] and more:
            found.append((second, total, corridor.at(second)[1]))
    return found


def bounded(seed):
    """A malleable world, and a site with a bound near what it draws that changes soon."""
    rng = np.random.default_rng(seed)
    world = a_malleable_world(seed)
    up = replace(world.nodes, state=("UP",) * len(world.nodes))
    world = drawing(replace(world, nodes=up), rng)
    running = world.running
    now_w = int((np.diff(running.indptr) * (running.max_power_w - IDLE_W)).sum())
    rest_w = IDLE_W * len(world.nodes)
    upper = tuple(max(rest_w + now_w + int(rng.integers(-100, 300)), 0) for _ in range(2))
    corridor = Corridor((0, world.now_s + int(rng.integers(1, 60))), (0, 0), upper)
    power = PowerRules(corridor, (NodePower("all", NodeSet(), IDLE_W, 400),))
    return world, with_power(Site(), power)


@each(seed=range(60))
@pytest.mark.parametrize("stage", STAGES)
def test_the_bound_holds_at_every_second(stage, seed):
    world, site = bounded(seed)
    named = "none" if stage == "random" else stage
    policy = build(parse_policy({"preset": "slurm-like", "reshape": named}))
    if stage == "random":
        policy = replace(policy, reshape=RandomReshape(seed))
    plan = run_cycle(world, site, State(), policy, np.random.default_rng(0)).plan
    assert exceeded(world, plan, power_of(site).corridor) == []


def test_without_the_bound_it_would_be_exceeded():
    """The worlds above are such that the bound binds in many of them."""
    policy = build(parse_policy({"preset": "slurm-like", "reshape": "fpsma"}))
    binds = 0
    for seed in range(20):
        world, site = bounded(seed)
        free = run_cycle(world, Site(), State(), policy, np.random.default_rng(0)).plan
        binds += bool(exceeded(world, free, power_of(site).corridor))
    assert binds > 6
