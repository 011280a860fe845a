# SPDX-License-Identifier: Apache-2.0
"""The upper bound of power as a constraint, and its reasons."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.extensions.power.planning.estimates import system_power
from bridge.extensions.power.rules import NO_UPPER_W, Corridor, NodePower, PowerRules, with_power
from bridge.model.reasons import ReasonCode
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import Site
from bridge.planning.explain.what_if import what_if
from bridge.planning.site_rules.capacity_constraints import UNBOUNDED, Mode
from bridge.planning.site_rules.lowered_rules import Extent, lower, stranded, unknown_to
from bridge.registry import build, parse_policy
from bridge.units import NEVER
from schedbridge_contracts.builders import a_job, a_node, a_running_job, a_snapshot
from schedbridge_contracts.cycles import Memory, check, run

REST = NodePower("rest", NodeSet(), 71, 250)
BIG = NodePower("big", NodeSet(features="gpu"), 300, 2000)


def rules(*upper_w, starts_s=(0,), types=(REST,), base_w=0):
    corridor = Corridor(tuple(starts_s), (0,) * len(starts_s), upper_w)
    return with_power(Site(), PowerRules(corridor, types, base_w))


def planned(snapshot, given, plan="conservative"):
    made = run(snapshot, Memory(), build(parse_policy(plan)), site=given)
    assert check(snapshot, made, given) == ()
    return made


def test_the_bound_is_what_base_and_idle_nodes_leave():
    world = a_snapshot(nodes=4, now_s=50)()
    given = rules(1000, NO_UPPER_W, 200, starts_s=(0, 100, 200), base_w=10)
    lowered = lower(given, world)
    starts, left = lowered.constraints.steps(0)
    assert starts.tolist() == [50, 100, 200]
    assert left.tolist() == [1000 - 10 - 4 * 71, UNBOUNDED, 0]  # 200 W are less than idle
    assert (lowered.constraints.keys, lowered.any) == (("power",), True)


@pytest.mark.parametrize(
    "given", [Site(), with_power(Site(), PowerRules()), rules(5, NO_UPPER_W, starts_s=(0, 9))]
)
def test_without_a_bound_nothing_is_constrained(given):
    lowered = lower(given, a_snapshot(nodes=4, now_s=9, jobs=[a_job()])())
    assert not lowered.any
    assert lowered.bounds == ()
    assert len(lowered.constraints) == 0


def test_running_jobs_count_and_are_not_refused():
    held = [
        a_running_job((0,), max_power_w=100),
        a_running_job((1, 2), measured_max_power_w=200),
        a_running_job((3,), max_power_w=50),
    ]
    lowered = lower(rules(10), a_snapshot(nodes=4, running=held)())
    assert lowered.running.amount.tolist() == [29, 258]  # the third draws no more than idle
    assert set(lowered.running.mode.tolist()) == {Mode.COUNT}


def test_without_nodes_the_most_of_a_partition_is_assumed():
    nodes = [a_node(), a_node(features=("gpu",))]
    jobs = [a_job(), a_job(max_power_w=400), a_job(max_power_w=60)]
    lowered = lower(rules(9000, types=(BIG, REST)), a_snapshot(nodes=nodes, jobs=jobs)())
    rows = np.arange(3)
    terms = lowered.terms(rows, rows * 0, rows + 100, Extent(rows * 0 + 2))
    assert terms.amount.tolist() == [3400, 658]


def test_a_job_waits_until_its_power_is_free_and_is_told_so():
    running = [a_running_job((0, 1, 2), end_s=70)]
    world = a_snapshot(nodes=8, running=running, jobs=[a_job(4, max_power_w=250)])()
    plan = planned(world, rules(1700))
    assert plan.start_s.tolist() == [70]
    (reason,) = plan.reasons
    assert reason.code is ReasonCode.POWER
    assert reason.text == "waits for power: needs 716 W, 590 W are free of 1,700 W"  # 595


def test_a_job_that_never_fits_is_told_so():
    world = a_snapshot(nodes=8, jobs=[a_job(8)])()
    plan = planned(world, rules(1700))
    (reason,) = plan.reasons
    assert (plan.start_s[0], reason.code) == (NEVER, ReasonCode.NEVER)
    assert reason.text == (
        "needs 1,432 W, more than the 1,132 W that the upper bound of power leaves"
    )


def test_a_bound_that_falls_is_planned_around():
    """It must fit throughout its run: before the window if short, else after it."""
    given = rules(1900, 600, 1900, starts_s=(0, 100, 200))
    jobs = [a_job(4, limit_s=100), a_job(4, limit_s=101), a_job(4, limit_s=99)]
    plan = planned(a_snapshot(nodes=8, jobs=jobs)(), given)
    start_s = dict(zip(plan.job.tolist(), plan.start_s.tolist(), strict=True))
    assert start_s == {0: 0, 1: 200, 2: 301}
    alone = planned(a_snapshot(nodes=8, jobs=jobs[1:2])(), given)
    assert alone.start_s.tolist() == [200]
    text = alone.reasons[0].text
    assert text == "waits for power: needs 716 W, 32 W are free of 600 W from 00:01:40 on"


def test_a_bound_that_stays_low_refuses_what_would_run_into_it():
    given = rules(2000, 600, starts_s=(0, 100))
    jobs = [a_job(4, limit_s=100), a_job(4, limit_s=200, id="long")]
    plan = planned(a_snapshot(nodes=8, jobs=jobs)(), given)
    assert sorted(plan.start_s.tolist()) == [0, NEVER]
    (reason,) = [why for why in plan.reasons if why is not None]
    assert "power" in reason.text


def test_a_lack_of_power_far_away_does_not_hold_short_jobs():
    given = rules(NO_UPPER_W, 600, starts_s=(0, 10_000))
    plan = planned(a_snapshot(nodes=8, jobs=[a_job(8, limit_s=5000)])(), given)
    assert plan.start_s.tolist() == [0]


def test_without_an_estimate_a_job_takes_nodes_that_the_bound_permits():
    """Of nodes that draw most it would need more than there is, of others not."""
    nodes = [*(a_node(features=("gpu",)) for _ in range(3)), *(a_node() for _ in range(3))]
    jobs = [a_job(3, id="any"), a_job(2, features="gpu", id="gpu")]
    given = rules(3000, types=(BIG, REST))  # idle: 1113
    plan = planned(a_snapshot(nodes=nodes, jobs=jobs)(), given)
    of = {plan.job[row]: row for row in range(2)}
    assert plan.start_s[of[0]] == 0
    assert plan.nodes_of(of[0]).tolist() == [3, 4, 5]
    assert plan.start_s[of[1]] == NEVER  # 3,400 W beyond idle


def test_jobs_share_nodes_by_their_cpus():
    """16 jobs of one CPU draw as two nodes; the bound leaves power for one and a half."""
    jobs = [a_job(shared=True, cpus=1) for _ in range(16)]
    world = a_snapshot(nodes=[a_node(cpus=8), a_node(cpus=8)], jobs=jobs)()
    plan = planned(world, rules(142 + 12 * 23))
    assert (plan.start_s == 0).sum() == 12


def test_free_tasks_share_fewer_nodes_where_the_bound_says_so():
    job = a_job(tasks=8, max_nodes=8, shared=True, max_power_w=171)
    world = a_snapshot(nodes=[a_node(cpus=4) for _ in range(8)], jobs=[job])()
    plan = planned(world, rules(8 * 71 + 250))
    assert plan.start_s.tolist() == [0]
    assert len(plan.nodes) == 2


@pytest.mark.parametrize("state", ["DOWN+POWERED_DOWN", "UP+POWERED_DOWN"])
def test_nodes_that_are_off_leave_their_idle_power(state):
    world = a_snapshot(nodes=4, jobs=[a_job(2)])()
    given = rules(3 * 71 + 2 * 179)
    assert planned(world, given).start_s.tolist() == [NEVER]
    nodes = replace(
        world.nodes, state=("UP", "UP", "UP", state), usable=np.array([True] * 3 + [False])
    )
    assert planned(replace(world, nodes=nodes), given).start_s.tolist() == [0]


def test_what_if_keeps_the_bound():
    running = [a_running_job((0, 1, 2), end_s=70)]
    world = a_snapshot(nodes=8, running=running, jobs=[a_job(4)])()
    given = rules(1700)
    policy, site = build(parse_policy("conservative")), given
    plan = planned(world, given)
    conditions = policy.plan.conditions(site)
    changes = what_if(world, plan, 0, conditions)
    assert [(change.size, change.start_s) for change in changes if change.size] == [(3, 0)]
    free = policy.plan.conditions(Site())
    assert planned(world, Site()).start_s.tolist() == [0]
    assert what_if(world, plan, 0, free) != changes


def test_an_announced_start_that_a_new_bound_forbids_is_stranded():
    world = a_snapshot(nodes=8, jobs=[a_job(4), a_job(4)])()
    plan = planned(world, Site())
    found = stranded(lower(rules(8 * 71 + 800), world), plan)
    assert [(one.row, one.text) for one in found] == [(1, "upper bound of power")]


def test_a_resource_that_no_node_has_is_named():
    kind = NodePower("x", NodeSet(having="fpga"), 1, 2)
    assert unknown_to(rules(100, types=(kind, REST)), a_snapshot()()) == ("fpga",)


@pytest.mark.parametrize(("spare_w", "starts"), [(0, False), (1, True)])
def test_running_jobs_draw_on_nodes_that_are_not_known(spare_w, starts):
    """Two nodes at the maximum of all types, and three as stated; idle power is in neither."""
    jobs = [
        a_running_job((0,), end_s=90, max_power_w=171, nodes_elsewhere=3),
        a_running_job((1,), end_s=90, nodes_elsewhere=2),
    ]
    world = a_snapshot(nodes=4, running=jobs, jobs=[a_job(1, limit_s=50)])()
    used_w = 4 * 71 + 100 + 3 * 171 + 179 + 2 * 2000
    given = rules(used_w + 178 + spare_w, types=(BIG, REST))
    made = planned(world, given)
    assert (int(made.start_s[0]) == world.now_s) == starts
    types = PowerRules(Corridor((0,), (0,), (used_w,)), (BIG, REST))
    assert system_power(types, world) == (4 * 71, used_w)
