# SPDX-License-Identifier: Apache-2.0
"""What the checker says of plans that draw more than the upper bound of power."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.check.legality import check, permitted
from bridge.extensions.power.rules import NO_UPPER_W, Corridor, NodePower, PowerRules, with_power
from bridge.model.decisions.resizes import Resizes
from bridge.model.decisions.start_widths import StartWidths, with_start_widths
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import NO_RULES, Site
from bridge.registry import build, parse_policy
from schedbridge_contracts.builders import a_job, a_running_job, a_snapshot
from schedbridge_contracts.cycles import Memory, run

IDLE = 8 * 70
TYPES = (NodePower("all", NodeSet(), 70, 170),)
TEXT = "draws more than the upper bound of power leaves"


def bound(*upper_w, starts_s=(0,)):
    """Bounds on what is drawn beyond idle; every node can draw 100 W more."""
    upper = tuple(one if one == NO_UPPER_W else IDLE + one for one in upper_w)
    corridor = Corridor(tuple(starts_s), (0,) * len(starts_s), upper)
    return with_power(Site(), PowerRules(corridor, TYPES))


def a_plan(world):
    """A plan that knows of no bound."""
    return run(world, Memory(), build(parse_policy("conservative")))


def said(world, site, **changes):
    return [str(one) for one in check(world, site, replace(a_plan(world), **changes))]


@pytest.mark.parametrize(
    ("upper", "late"), [(500, 0), (499, 1), (300, 1), (299, 1), (199, 2), (0, 2)]
)
def test_the_last_rows_are_blamed(upper, late):
    world = a_snapshot(nodes=8, jobs=[a_job(3), a_job(2)])()
    found = said(world, bound(upper))
    assert len(found) == late
    assert all(text.endswith(TEXT) for text in found)


@pytest.mark.parametrize(("falls_s", "fine"), [(100, True), (99, False), (1, False)])
def test_every_second_of_a_run_counts(falls_s, fine):
    world = a_snapshot(nodes=8, jobs=[a_job(3, limit_s=100)])()
    assert (said(world, bound(300, 299, starts_s=(0, falls_s))) == []) == fine
    assert said(world, bound(0, 300, starts_s=(0, 1))) != []


def test_running_jobs_count_until_their_ends_but_are_not_blamed():
    running = [a_running_job((0, 1), end_s=50, measured_max_power_w=300)]
    world = a_snapshot(nodes=8, running=running, jobs=[a_job(3)])()
    assert said(world, bound(760)) == []
    assert len(said(world, bound(759))) == 1
    assert said(replace(world, jobs=a_snapshot()().jobs), bound(0)) == []
    idle = a_snapshot(nodes=8, running=running, jobs=[a_job(3, max_power_w=70)])()
    assert said(idle, bound(0)) == []  # it draws nothing beyond idle


def grown(*nodes, by_s=20, job=0):
    return Resizes.of([(job, by_s, np.array(nodes, np.int32), "")])


MALLEABLE = {"min_nodes": 1, "max_nodes": 8, "id": "m", "end_s": 100}


@pytest.mark.parametrize(
    ("draws", "upper", "fine"),
    [
        ({}, 400, True),
        ({}, 399, False),
        ({"max_power_w": 120}, 200, True),
        ({"max_power_w": 120}, 199, False),
        ({"max_power_w": 120, "measured_max_power_w": 170}, 399, False),
        ({"learnt_max_power_w": 120}, 199, False),
    ],
)
def test_growth_draws_as_the_job_does(draws, upper, fine):
    world = a_snapshot(nodes=8, running=[a_running_job((0, 1), **MALLEABLE, **draws)])()
    found = said(world, bound(upper), resizes=grown(0, 1, 2, 3))
    assert found == ([] if fine else [f"job m: is given nodes, but {TEXT}"])
    assert len(permitted(world, bound(upper), grown(0, 1, 2, 3))) == fine


def test_growth_keeps_a_bound_that_falls_before_the_end_of_the_job():
    world = a_snapshot(nodes=8, running=[a_running_job((0, 1), **MALLEABLE)])()
    assert said(world, bound(400, 399, starts_s=(0, 100)), resizes=grown(0, 1, 2, 3)) == []
    assert said(world, bound(400, 399, starts_s=(0, 99)), resizes=grown(0, 1, 2, 3)) != []


def test_jobs_that_share_nodes_grow_by_their_cpus():
    job = a_running_job((0,), shared=True, cpus=1, **MALLEABLE)
    world = a_snapshot(nodes=8, running=[job])()  # of 4 CPUs
    assert said(world, bound(50), resizes=grown(0, 1)) == []
    assert said(world, bound(49), resizes=grown(0, 1)) != []


@pytest.mark.parametrize(("start_s", "fine"), [(19, False), (20, True)])
def test_a_shrink_frees_power_when_the_nodes_are_free(start_s, fine):
    running = [a_running_job((0, 1, 2, 3), **MALLEABLE)]
    world = a_snapshot(nodes=8, running=running, jobs=[a_job(2)])()
    plan = replace(
        a_plan(world), start_s=np.array([start_s]), end_s=np.array([start_s + 100]),
            reasons=(Reason(ReasonCode.POWER, "waits"),),
        resizes=grown(0, 1, by_s=20),
    )  # fmt: skip
    found = check(world, bound(400), plan)
    assert (found == ()) == fine
    assert check(world, NO_RULES, plan) == ()


def test_what_is_given_back_later_counts_until_then():
    running = [a_running_job((0, 1, 2, 3), **MALLEABLE)]
    world = a_snapshot(nodes=8, running=running, jobs=[a_job(2)])()
    for start_s, fine in ((49, False), (50, True)):
        plan = replace(
            a_plan(world), start_s=np.array([start_s]), end_s=np.array([start_s + 100]),
            reasons=(Reason(ReasonCode.POWER, "waits"),),
            returns=grown(0, 1, by_s=50),
        )  # fmt: skip
        assert (check(world, bound(400), plan) == ()) == fine


@pytest.mark.parametrize(("nodes", "fine"), [(4, True), (5, False)])
def test_moldable_jobs_draw_on_the_nodes_that_they_start_on(nodes, fine):
    job = a_job(2, limit_s=100, min_start=1, max_start=8)
    world = a_snapshot(nodes=8, jobs=[job])()
    widths = StartWidths(np.array([0]), np.array([nodes]), np.array([-(-200 // nodes)]))
    plan = replace(a_plan(with_start_widths(world, widths)), start_widths=widths)
    assert (check(world, bound(400), plan) == ()) == fine


def test_tasks_of_an_array_each_draw():
    world = a_snapshot(nodes=8, jobs=[a_job(2, array_tasks=3, array_startable=3)])()
    assert said(world, bound(600)) == []
    assert len(said(world, bound(599))) == 1
    assert len(said(world, bound(200))) == 2


def test_running_jobs_draw_on_nodes_that_are_not_known():
    """Two of them at the maximum of a type, and one as stated; three more are free at 50 s."""
    running = [
        a_running_job((0,), end_s=500, nodes_elsewhere=2),
        a_running_job((1,), end_s=500, max_power_w=170, nodes_elsewhere=1),
        a_running_job((2,), end_s=50, nodes_elsewhere=3),
    ]
    world = a_snapshot(nodes=8, running=running, jobs=[a_job(3, limit_s=200)])()
    held_w = 3 * 100 + 3 * 170
    assert said(world, bound(held_w + 3 * 170 + 300)) == []
    (text,) = said(world, bound(held_w + 3 * 170 + 299))
    assert text.endswith(TEXT)
    assert said(world, bound(NO_UPPER_W, held_w - 100 + 300, starts_s=(0, 50))) == []
    assert said(world, bound(NO_UPPER_W, held_w - 100 + 299, starts_s=(0, 50))) != []
