# SPDX-License-Identifier: Apache-2.0
"""Power-aware resizes, on the system of their paper: 14 nodes, idle 71 W, Pi 170 W, heat 250 W."""

import dataclasses

import numpy as np
import pytest

from bridge.errors import ConfigError
from bridge.extensions.power.rules import Corridor, NodePower, PowerRules, with_power
from bridge.model.job import WidthRule
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import Site
from bridge.ports import State
from bridge.registry import build, parse_policy
from bridge.units import NEVER
from schedbridge_contracts.builders import a_job, a_running_job, a_snapshot
from schedbridge_contracts.cycles import Memory, run

NODE = NodePower("node", NodeSet(), 71, 250)
PI, HEAT = 170, 250


def site(*bounds, starts=(0,)):
    lower, upper = zip(*bounds, strict=True)
    return with_power(Site(), PowerRules(Corridor(starts, lower, upper), (NODE,)))


def job(first, width, watts, **more):
    nodes = tuple(range(first, first + width))
    more = {"min_nodes": 1, "max_nodes": 14, "end_s": 1000} | more
    return a_running_job(nodes, min_power_w=watts, max_power_w=watts, **more)


def waits(nodes, watts, **more):
    return a_job(nodes=nodes, min_power_w=watts, max_power_w=watts, **more)


def a_world(*running, jobs=(), now_s=10):
    return a_snapshot(nodes=14, running=list(running), jobs=list(jobs), now_s=now_s)()


def decided(world, where, policy="malleable-power", memory=None):
    """Job id to its width afterwards, the ids that start now, and the plan."""
    plan = run(world, memory or Memory(), build(parse_policy(policy)), site=where)
    ids = world.running.id[plan.resizes.job].tolist()
    widths = {name: len(plan.resizes.nodes_of(at)) for at, name in enumerate(ids)}
    return widths, world.jobs.id[plan.job[plan.starts_now]].tolist(), plan


def resized(world, plan):
    """The world when the resizes of a plan are complete."""
    held = []
    after = {int(row): at for at, row in enumerate(plan.resizes.job)}
    for row in range(len(world.running)):
        own = world.running.nodes[world.running.indptr[row] : world.running.indptr[row + 1]]
        held.append(plan.resizes.nodes_of(after[row]) if row in after else own)
    widths = [len(nodes) for nodes in held]
    running = dataclasses.replace(
        world.running,
        indptr=np.concatenate(([0], np.cumsum(widths))),
        nodes=np.concatenate(held).astype(np.int32),
        use=np.repeat(world.nodes.capacity[:1], sum(widths), axis=0),
    )
    return dataclasses.replace(world, running=running, now_s=world.now_s + 5)


def test_without_bounds_of_power_and_within_them_nobody_is_resized():
    world = a_world(job(0, 4, PI), job(4, 4, HEAT))  # 2,106 W
    assert decided(world, Site())[0] == {}
    assert decided(world, site((1700, 2500)))[0] == {}


def test_jobs_shrink_below_the_upper_bound_and_then_others_grow_into_what_it_leaves():
    world = a_world(
        job(0, 4, PI, id="pi"), job(4, 3, PI, id="pi2"),
        job(7, 4, HEAT, id="heat"), job(11, 3, HEAT, id="heat2"),
    )  # fmt: skip
    memory, where = Memory(), site((1700, 2500))  # 2,940 W
    widths, _, plan = decided(world, where, memory=memory)
    assert widths == {"heat": 1, "heat2": 1}
    assert "2940 W, more than its bound of 2500 W" in plan.resizes.reasons[0]
    for row in range(2):
        assert set(plan.resizes.nodes_of(row)) <= {7, 11}  # no head is released
    world = resized(world, plan)
    widths, _, plan = decided(world, where, memory=memory)
    assert widths in ({"pi": 8}, {"pi2": 7})  # four more nodes: 2,441 W
    assert decided(resized(world, plan), where, memory=memory)[0] == {}


def test_a_waiting_job_starts_where_a_configuration_has_room_for_it():
    world = a_world(
        job(0, 7, PI, id="a"), job(7, 7, PI, id="b"),
        jobs=[waits(14, HEAT, id="wide"), waits(4, HEAT, id="heat"), waits(1, PI, id="pi")],
    )  # fmt: skip
    memory, where = Memory(), site((2500, 3500))  # 2,380 W
    widths, _, plan = decided(world, where, memory=memory)
    assert sum(widths.values()) + 7 * (2 - len(widths)) == 10  # heat gets four nodes
    widths, started, plan = decided(resized(world, plan), where, memory=memory)
    assert started == ["heat"]  # "wide" is before it, but no configuration has room for that
    assert widths == {}


def test_only_running_jobs_count_in_the_second_scenario():
    world = a_world(job(0, 7, PI, id="a"), job(7, 7, PI, id="b"), jobs=[waits(4, HEAT)])
    policy = {"preset": "malleable-power", "reshape": {"waiting": 0}}
    widths, started, plan = decided(world, site((2500, 3500)), policy)
    assert (widths, started) == ({}, [])
    assert "the draw is 120 W below the lower bound of 2500 W" in plan.notes[0]
    assert "the draw is 120 W below" in plan.reasons[0].text


def test_pairs_of_waiting_jobs_come_after_single_ones():
    jobs = [waits(4, HEAT, id="a"), waits(4, HEAT, id="b")]
    world = a_world(job(0, 14, PI, id="m", min_nodes=5), jobs=jobs)
    memory = Memory()
    widths, _, plan = decided(world, site((2900, 3500)), memory=memory)  # one adds 320 W
    assert widths == {"m": 6}  # 994 + 6 x 99 + 8 x 179 = 3,020 W
    assert decided(resized(world, plan), site((2900, 3500)), memory=memory)[1] == ["a", "b"]
    single = {"preset": "malleable-power", "reshape": {"waiting": 1}}
    assert decided(world, site((2900, 3500)), single)[2].notes


def test_growth_serves_the_lower_bound_and_keeps_to_rules_on_widths():
    world = a_world(job(0, 2, HEAT, id="m", width_rule=WidthRule.POF2), job(2, 2, PI, max_nodes=0))
    widths, _, _ = decided(world, site((2000, 3500)))
    assert widths == {"m": 8}  # 994 + 8 x 179 + 2 x 99 = 2,624 W
    assert decided(world, site((1800, 2600)))[0] == {"m": 4}
    widths, _, plan = decided(world, site((2000, 2600)))
    assert widths == {"m": 4}  # the upper bound comes first
    assert "the draw is 92 W below" in plan.notes[0]


def test_while_a_job_adapts_nothing_is_decided():
    world = a_world(job(0, 7, HEAT, adapting=True), job(7, 7, HEAT))
    assert decided(world, site((1000, 1700)))[0] == {}


def test_where_no_configuration_keeps_the_corridor_the_nearest_one_is_taken():
    world = a_world(
        job(0, 4, HEAT, id="m", min_nodes=2), job(4, 6, HEAT, id="rigid", max_nodes=0, end_s=300),
    )  # fmt: skip
    widths, _, plan = decided(world, site((1000, 1700)))  # 994 + 8 x 179 = 2,426 W at the least
    assert widths == {"m": 2}
    assert "no widths of jobs end that" in plan.resizes.reasons[0]
    assert "exceeded by up to 726 W" in plan.notes[0]
    assert "1970-01-01T00:05:00 running jobs that draw so much end" in plan.notes[0]


@pytest.mark.parametrize("policy", ["malleable-power", "power-plan"])
def test_below_the_idle_power_of_the_nodes_nothing_starts_and_no_cancelled_job_would_help(policy):
    world = a_world(job(0, 4, HEAT, id="m", min_nodes=2), jobs=[waits(1, PI)])
    later = site((0, 500), (0, 5000), starts=(0, 1000))
    widths, started, plan = decided(world, later, policy)
    assert (widths, started) == ({"m": 2}, [])
    text = plan.reasons[0].text
    assert "exceeded by up to 852 W: without jobs the system draws 994 W" in text
    assert text.endswith("an upper bound of 1352 W, or nodes that are powered down")
    assert plan.start_s.tolist() == [1000]


def test_it_plans_again_when_a_bound_changes_and_each_tick():
    world, where = a_world(job(0, 4, PI)), site((0, 2500), (0, 1700), starts=(0, 25))
    assert decided(world, where)[2].again_s == 25
    assert decided(world, site((0, 2500)))[2].again_s == 40
    calm = {"preset": "malleable-power", "reshape": {"tick_s": 0}}
    assert decided(world, where, calm)[2].again_s == 25


def test_what_is_pending_outlives_a_restart_and_is_given_up_in_the_end():
    world = a_world(job(0, 7, PI, id="a"), job(7, 7, PI, id="b"), jobs=[
        waits(14, HEAT, id="wide"), waits(4, HEAT, id="heat")])  # fmt: skip
    memory, where = Memory(), site((2500, 3500))
    _, _, plan = decided(world, where, memory=memory)
    known = dict(memory.learnt_by("power-corridor").known)
    assert known == {"starts heat": [1], "until": [60]}
    later = dataclasses.replace(resized(world, plan), now_s=60)
    fresh = Memory(learnt=dict(memory.state.learnt))
    assert decided(later, site((0, 3500)), memory=fresh)[1] == []
    assert not len(fresh.learnt_by("power-corridor").known)
    assert State().learnt_by("power-corridor").known == {}


@pytest.mark.parametrize(("name", "value"), [("waiting", 3), ("tried", 0), ("tick_s", -1)])
def test_impossible_parameters_are_refused(name, value):
    with pytest.raises(ConfigError, match=name):
        parse_policy({"preset": "malleable-power", "reshape": {name: value}})


def test_power_plan_shrinks_before_a_bound_comes():
    world = a_world(job(0, 4, HEAT, id="m", end_s=9000), job(4, 2, PI, max_nodes=0, end_s=9000))
    where = site((0, 2500), (0, 1600), starts=(0, 100))  # it draws 1,908 W

    def at(now_s):
        return decided(dataclasses.replace(world, now_s=now_s), where, "power-plan")

    widths, _, plan = at(80)
    assert all(width >= 4 for width in widths.values())
    assert plan.again_s <= 90
    widths, _, plan = at(90)
    assert widths == {"m": 2}  # 994 + 2 x 179 + 2 x 99 = 1,550 W
    assert plan.resizes.by_s.tolist() == [95]
    assert decided(dataclasses.replace(world, now_s=90), where)[0] == {}  # the paper's waits for it


def test_power_plan_looks_each_tick_only_while_a_violation_is_not_ended():
    calm = a_world(job(0, 4, PI))
    resized_at_5 = a_world(job(0, 4, PI, resized_s=5))
    assert decided(calm, site((1000, 2500)), "power-plan")[2].again_s == NEVER
    assert decided(resized_at_5, site((1000, 2500)), "power-plan")[2].again_s == 5 + 60
    rigid = a_world(job(0, 12, HEAT, max_nodes=0), job(12, 1, PI))
    assert decided(rigid, site((1000, 1700)), "power-plan")[2].again_s == 10 + 30


def test_power_plan_without_bounds_is_malleable():
    world = a_world(job(0, 4, HEAT, id="m"), jobs=[waits(4, PI)])
    plans = [decided(world, Site(), preset)[2] for preset in ("malleable", "power-plan")]
    assert plans[0].resizes.nodes.tolist() == plans[1].resizes.nodes.tolist()
    assert plans[0].start_s.tolist() == plans[1].start_s.tolist()
