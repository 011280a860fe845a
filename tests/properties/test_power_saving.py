# SPDX-License-Identifier: Apache-2.0
"""Powering nodes down and up, in random worlds under random bounds, by hand from plans."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.cycle import run_cycle
from bridge.extensions.power.changes import changes_of
from bridge.extensions.power.closing import with_powered_off
from bridge.extensions.power.columns import NAME, PowerSaving, saving_of
from bridge.extensions.power.rules import (
    NO_UPPER_W,
    Corridor,
    NodePower,
    PowerDown,
    PowerRules,
    with_power,
)
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import Site
from bridge.ports import State
from bridge.registry import build, parse_policy
from bridge.units import NEVER, UNPLANNED
from schedbridge_contracts.builders import a_job, a_running_job, a_snapshot
from schedbridge_contracts.crosses import each
from tests.properties.naive_power import upper_w
from tests.properties.rule_worlds import corridors, worlds

STATES = ["UP", "UP", "UP", "UP+POWERING_DOWN", "UP+POWERED_DOWN", "UP+POWERING_UP"]
POLICIES = ["conservative", "easy", "openccs", "search", "power-plan", "malleable-power"]
IDLE_W, MAX_W = 50, 300


@st.composite
def saving_worlds(draw):
    """Nodes in all states of power, of which some cannot be powered down."""
    world = draw(worlds(most_jobs=2))
    n_nodes, busy = len(world.nodes), set(world.running.nodes.tolist())
    state = [
        "UP" if node in busy else draw(st.sampled_from(STATES))
        if world.nodes.usable[node] else world.nodes.state[node]
        for node in range(n_nodes)
    ]  # fmt: skip
    off = np.array([words in STATES[3:] for words in state])
    resuming = np.array([words == STATES[5] for words in state])
    saving = PowerSaving(
        can=np.array(draw(st.lists(st.booleans(), min_size=n_nodes, max_size=n_nodes))),
        off=off,
        resume_s=np.array(draw(st.lists(st.integers(1, 40), min_size=n_nodes, max_size=n_nodes))),
        ready_s=np.where(resuming, world.now_s + draw(st.integers(-3, 40)) + 4, 0),
        idle_since_s=np.full(n_nodes, draw(st.sampled_from([0, world.now_s]))),
    )
    table = replace(world.nodes, state=tuple(state)).having(NAME, saving)
    return with_powered_off(replace(world, nodes=table))


settings_of_sites = st.none() | st.builds(
    PowerDown, st.sampled_from([(), ("p",), ("p", "q")]), st.sampled_from([0, 30])
)


def stated(world):
    """The world in which every job states its draw, so that it can be added up."""
    jobs, running = world.jobs, world.running
    return replace(
        world,
        jobs=replace(jobs, max_power_w=np.maximum(jobs.max_power_w, IDLE_W + 30)),
        running=replace(running, max_power_w=np.maximum(running.max_power_w, IDLE_W)),
    )


def drawn_w(world, plan, second):
    """What nodes draw idle, jobs beyond it, and nodes on their way up, at a second."""
    saving, states = saving_of(world.nodes), world.nodes.state
    total = sum(IDLE_W for words in states if "POWERED_DOWN" not in words)
    up = changes_of(plan).up.tolist()
    if up and second < world.now_s + int(saving.resume_s[up].max()):
        total += IDLE_W * len(up)
    rows = 0
    for row in range(len(plan)):
        start_s, end_s = int(plan.start_s[row]), int(plan.end_s[row])
        if start_s not in (NEVER, UNPLANNED) and start_s <= second < end_s:
            job = int(plan.job[row])
            known = int(world.jobs.learnt_max_power_w[job] or world.jobs.max_power_w[job])
            rows += max(known - IDLE_W, 0) * len(plan.nodes_of(row))
    return total, rows


@pytest.mark.parametrize("name", POLICIES)
@given(world=saving_worlds(), corridor=corridors(), down=settings_of_sites)
@settings(max_examples=100)
def test_nodes_are_powered_as_the_rules_say(name, world, corridor, down):
    kinds = (NodePower("all", NodeSet(), IDLE_W, MAX_W),)
    rules = PowerRules(corridor, kinds, 0, 10, down)
    world = stated(world)
    site = with_power(Site(), rules)
    policy = build(parse_policy(name))
    plan = run_cycle(world, site, State(), policy, np.random.default_rng(0)).plan
    saving = saving_of(world.nodes)

    for row in plan.starts_now.tolist():  # no job starts on a node that is off
        assert not saving.off[plan.nodes_of(row)].any()
    for row in range(len(plan)):  # nor is it planned there before the node is available
        if plan.start_s[row] in (NEVER, UNPLANNED):
            continue
        for node in plan.nodes_of(row).tolist():
            if saving.off[node]:
                available_s = saving.ready_s[node] or world.now_s + saving.resume_s[node]
                assert plan.start_s[row] >= available_s
    used = {*world.running.nodes.tolist()}
    for row in plan.starts_now.tolist():
        used |= set(plan.nodes_of(row).tolist())
    for node in changes_of(plan).down.tolist():
        assert down is not None
        assert saving.can[node]
        assert not saving.off[node]
        assert node not in used
    for node in changes_of(plan).up.tolist():
        assert world.nodes.state[node] == "UP+POWERED_DOWN"
        planned = [row for row in range(len(plan)) if node in plan.nodes_of(row).tolist()]
        assert planned
    if len(changes_of(plan).up):  # their idle power fits beside what is planned
        last_s = world.now_s + int(saving.resume_s[changes_of(plan).up].max())
        for second in range(world.now_s, last_s):
            if (bound := upper_w(rules, second)) != NO_UPPER_W:
                idle, rows = drawn_w(world, plan, second)
                assert idle + rows <= bound


def a_tight_world(seed):
    """Six nodes, some of them off, with jobs and a bound near what idle nodes draw."""
    rng = np.random.default_rng(seed)
    held = int(rng.integers(0, 3))
    off = np.arange(6) >= 6 - int(rng.integers(0, 3))
    running = [a_running_job((at,), end_s=1000 + int(rng.integers(1, 400)),
                             max_power_w=int(rng.integers(IDLE_W, MAX_W)))
               for at in range(held)]  # fmt: skip
    jobs = [a_job(nodes=int(rng.integers(1, 6)), limit_s=int(rng.integers(10, 300)),
                  max_power_w=int(rng.integers(IDLE_W + 1, MAX_W)),
                  begin_s=int(rng.choice([0, 1020, 1050])))
            for _ in range(int(rng.integers(1, 5)))]  # fmt: skip
    world = a_snapshot(nodes=6, running=running, jobs=jobs, now_s=1000)()
    saving = PowerSaving(
        can=np.ones(6, dtype=bool), off=off, resume_s=np.full(6, 40),
        ready_s=np.zeros(6, dtype=np.int64), idle_since_s=np.zeros(6, dtype=np.int64),
    )  # fmt: skip
    state = tuple("UP+POWERED_DOWN" if each else "UP" for each in off)
    world = replace(world, nodes=replace(world.nodes, state=state).having(NAME, saving))
    awake_w = IDLE_W * int((~off).sum())
    return with_powered_off(world), awake_w + int(rng.integers(-60, 500))


@each(seed=range(300))
def test_under_a_tight_bound_only_nodes_that_nobody_needs_are_powered_down(seed):
    world, bound_w = a_tight_world(seed)
    kinds = (NodePower("all", NodeSet(), IDLE_W, MAX_W),)
    rules = PowerRules(Corridor((0,), (0,), (bound_w,)), kinds, 0, 10, PowerDown((), 30))
    site = with_power(Site(), rules)
    policy = build(parse_policy("conservative"))
    plan = run_cycle(world, site, State(), policy, np.random.default_rng(0)).plan
    saving, down = saving_of(world.nodes), set(changes_of(plan).down.tolist())
    assert not down & set(world.running.nodes.tolist())
    for row in range(len(plan)):
        if plan.start_s[row] not in (NEVER, UNPLANNED):
            back_s = world.now_s + 40 + 30
            assert plan.start_s[row] > back_s or not down & set(plan.nodes_of(row).tolist())
    if len(changes_of(plan).up):
        for second in range(world.now_s, world.now_s + int(saving.resume_s.max())):
            runs = world.running.end_s > second
            held_w = int((world.running.max_power_w - IDLE_W)[runs].sum())
            assert sum(drawn_w(world, plan, second)) + held_w <= bound_w
