# SPDX-License-Identifier: Apache-2.0
"""Choices: what they leave out, and that they never touch a place in the plan."""

import dataclasses

import numpy as np
import pytest

from bridge.extensions.power.rules import PowerRules, with_power
from bridge.model.rules.limits import EACH, ConsumerKind, Items, Limit, Rules
from bridge.model.rules.site import NO_RULES, Site
from bridge.model.topology import regular
from bridge.planning.eligibility.controller_choice import Chooser
from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider
from bridge.units import NEVER, UNPLANNED
from schedbridge_contracts.builders import a_job, a_node, a_reservation, a_running_job, a_snapshot
from schedbridge_contracts.crosses import each
from schedbridge_contracts.worlds import random_world


def plan_of(snapshot, preset="slurm-like"):
    return Decider(build(PRESETS[preset])).decide(snapshot)


def chosen(snapshot, row, site=NO_RULES, *, alone=True):
    """On a plan in which nobody else has a place, or on the plan; None: no choice."""
    plan = plan_of(snapshot)
    if alone:
        plan = dataclasses.replace(plan, start_s=np.where(plan.job == row, plan.start_s, UNPLANNED))
    found = list(Chooser(snapshot, site, plan).choices([row]))
    return found[0].nodes.tolist() if found else None


@pytest.mark.parametrize(("limit_s", "nodes"), [(50, [0, 1, 2]), (51, [1, 2])])
def test_nodes_with_a_planned_start_before_its_end_are_left_out(limit_s, nodes):
    holds = a_running_job((0,), 50, shared=True, cpus=1)
    first = a_job(required=(0,), priority=9)  # the whole node, once it is free
    asks = a_job(limit_s=limit_s, controller_chooses=True, required=(1,))
    snapshot = a_snapshot(nodes=3, jobs=[first, asks], running=[holds])()
    assert chosen(snapshot, 1, alone=False) == nodes


SIZES = (4, 8, 8, 4)


def instead(jobs, site=NO_RULES, *, by_size=True, sizes=SIZES, **settings):
    """For each start that is planned for now, its nodes if the controller may choose others."""
    snapshot = a_snapshot(nodes=[a_node(cpus) for cpus in sizes], jobs=jobs, **settings)()
    plan = plan_of(snapshot)
    assert plan.starts_now.tolist() == list(range(len(jobs)))
    chooser = Chooser(snapshot, site, plan, by_size=by_size)
    found = [chooser.instead(row) for row in plan.starts_now.tolist()]
    return [None if choice is None else choice.nodes.tolist() for choice in found]


def test_whole_nodes_that_differ_in_size_are_the_controllers_choice():
    """Its own scheduler looks for a block of nodes, and may take the larger ones."""
    jobs = [a_job(nodes=1), a_job(nodes=2)]
    assert instead(jobs[:1]) == [[0, 1, 2, 3]]
    # Neither may have the nodes of the other one: 0, and 1 and 3.
    assert instead(jobs) == [[0, 2], [1, 2, 3]]


@each(
    settings=(
        {"by_size": False}, {"sizes": (8, 8, 8, 8)}, {"site": with_power(Site(), PowerRules())}
    )
)  # fmt: skip
def test_planned_nodes_stay_where_they_have_a_meaning_or_are_alike(settings):
    assert instead([a_job(nodes=1), a_job(nodes=2)], **settings) == [None, None]


@each(
    job=(
        {"shared": True, "cpus": 1}, {"nodes": 1, "max_nodes": 2}, {"min_s": 50, "limit_s": 100},
        {"deadline_s": 10_000_000},
    )
)  # fmt: skip
def test_planned_nodes_stay_for_requests_of_other_amounts(job):
    assert instead([a_job(**job)]) == [None]


def test_under_a_limit_a_whole_node_job_gets_no_more_than_is_planned():
    limit = Limit(ConsumerKind.USER, EACH, "cpus", Items(8))
    assert instead([a_job(nodes=1)], Site(Rules(limits=(limit,)))) == [[0, 3]]


def test_of_two_that_are_to_start_on_one_node_the_first_may_have_it():
    """Slurm takes none of the other nodes for them: each would keep the other from it for ever."""
    jobs = [a_job(shared=True, cpus=1, required=(0,), controller_chooses=True) for _ in range(2)]
    snapshot = a_snapshot(nodes=[a_node(4)] * 2, jobs=jobs)()
    plan = plan_of(snapshot)
    assert plan.starts_now.tolist() == [0, 1]
    found = Chooser(snapshot, NO_RULES, plan).choices([0, 1])
    assert [(choice.job, choice.nodes.tolist()) for choice in found] == [(0, [0, 1])]


def test_a_start_that_the_planner_places_is_not_touched():
    jobs = [
        a_job(shared=True, cpus=1, required=(0,), controller_chooses=True),
        a_job(shared=True, cpus=1, required=(0,)),
    ]
    snapshot = a_snapshot(nodes=[a_node(4)] * 2, jobs=jobs)()
    assert list(Chooser(snapshot, NO_RULES, plan_of(snapshot)).choices([0])) == []


def test_required_and_excluded_nodes():
    jobs = [a_job(required=(1,)), a_job(excluded=(0, 2)), a_job(required=(0,), nodes=2)]
    snapshot = a_snapshot(nodes=[a_node(8)] * 3, jobs=jobs)()
    assert [chosen(snapshot, row) for row in range(3)] == [[0, 1, 2], [1], [0, 1, 2]]


def test_full_nodes_are_left_out_but_for_jobs_that_ask_for_more():
    jobs = [a_job(), a_job(controller_chooses=True)]
    snapshot = a_snapshot(nodes=2, jobs=jobs, running=[a_running_job((0,), 99)])()
    assert chosen(snapshot, 0) == [1]
    assert chosen(snapshot, 1) == [0, 1]


@pytest.mark.parametrize(
    ("limit", "may"),
    [
        (Limit(ConsumerKind.USER, "user", "cpus", Items(4)), False),
        (Limit(ConsumerKind.USER, "*", "cpus", Items(4)), False),
        (Limit(ConsumerKind.USER, "other", "cpus", Items(4)), True),
    ],
)
def test_who_may_be_limited_has_no_choice(limit, may):
    snapshot = a_snapshot(nodes=2, jobs=[a_job()])()
    site = Site(Rules(limits=(limit,)))
    assert (chosen(snapshot, 0, site) is not None) == may


@pytest.mark.parametrize(("maximum", "may"), [(1, True), (2, False)])
def test_where_switches_are_known_several_nodes_are_the_planners(maximum, may):
    snapshot = a_snapshot(nodes=4, jobs=[a_job(max_nodes=maximum)])()
    snapshot = dataclasses.replace(snapshot, topology=regular(4, 2))
    assert (chosen(snapshot, 0) is not None) == may


def test_where_power_is_bounded_there_is_no_choice():
    snapshot = a_snapshot(nodes=2, jobs=[a_job()])()
    assert chosen(snapshot, 0, with_power(Site(), PowerRules())) is None


def test_protected_sites_have_no_choice():
    snapshot = a_snapshot(nodes=2, jobs=[a_job()])()
    assert chosen(snapshot, 0) == [0, 1]
    assert chosen(snapshot, 0, Site(protect={"gpus": {"cpus": 1}})) is None


@pytest.mark.parametrize("preset", ["slurm-like", "easy", "conservative", "openccs"])
@each(seed=range(25))
def test_no_choice_touches_a_place_in_the_plan(preset, seed):
    """Second by second: a job that took all nodes of its choice would meet nobody's start."""
    snapshot = random_world(seed, chunks=True)
    plan = plan_of(snapshot, preset)
    for choice in Chooser(snapshot, NO_RULES, plan).choices(range(len(snapshot.jobs))):
        jobs, room = snapshot.jobs, snapshot.partitions[choice.partition]
        limit_s = int(jobs.time_limit_s[choice.job]) or room.default_time_s or room.max_time_s
        end_s = snapshot.now_s + limit_s if limit_s else NEVER
        nodes = set(choice.nodes.tolist())
        assert nodes <= set(room.nodes.tolist())
        assert snapshot.nodes.usable[choice.nodes].all()
        assert not nodes & set(jobs.excluded[choice.job])
        assert set(jobs.required[choice.job]) <= nodes
        assert len(nodes) >= jobs.min_nodes[choice.job]
        for row in range(len(plan)):
            if plan.job[row] != choice.job and plan.start_s[row] not in (NEVER, UNPLANNED):
                assert plan.start_s[row] >= end_s or not nodes & set(plan.nodes_of(row).tolist())


HOUR_S = 3600


def limits_of(snapshot, row, *, alone=False):
    """Nodes and time limit of a choice, on a plan or on one in which the job has no start."""
    plan = plan_of(snapshot)
    if alone:
        plan = dataclasses.replace(plan, start_s=np.where(plan.job == row, UNPLANNED, plan.start_s))
    found = list(Chooser(snapshot, NO_RULES, plan).choices([row]))
    return [(choice.nodes.tolist(), choice.time_limit_s) for choice in found]


@pytest.mark.parametrize("alone", [False, True])
def test_a_limit_that_may_be_cut_ends_before_a_reservation(alone):
    """Slurm refuses a start that would last into it; nodes outside of it leave the whole limit."""
    job = a_job(limit_s=HOUR_S, min_s=120, controller_chooses=True)
    everywhere = a_reservation(range(3), 600, 9000)
    snapshot = a_snapshot(nodes=3, jobs=[job, job], reservations=[everywhere])()
    for row in (0, 1):
        assert limits_of(snapshot, row, alone=alone)[0][1] == 420  # an hour, half by half
    some = a_reservation([0, 1], 600, 9000)
    snapshot = a_snapshot(nodes=3, jobs=[job], reservations=[some])()
    assert limits_of(snapshot, 0, alone=alone) == [([2], 0)]


def test_a_limit_that_may_be_cut_ends_before_a_planned_start():
    holds = a_running_job((0,), 600, shared=True, cpus=1)
    wide = a_job(2, priority=9)
    asks = a_job(shared=True, cpus=1, limit_s=HOUR_S, min_s=240, controller_chooses=True)
    snapshot = a_snapshot(nodes=2, jobs=[wide, asks], running=[holds])()
    assert limits_of(snapshot, 1) == [([0, 1], 420)]
    assert limits_of(snapshot, 1, alone=True) == [([0, 1], 420)]


def test_a_limit_is_not_cut_below_its_minimum_nor_where_a_deadline_cuts_it():
    everywhere = a_reservation(range(2), 600, 9000)
    too_long = a_job(limit_s=HOUR_S, min_s=660, controller_chooses=True)
    rigid = a_job(limit_s=HOUR_S, controller_chooses=True)
    snapshot = a_snapshot(nodes=2, jobs=[too_long, rigid], reservations=[everywhere])()
    assert limits_of(snapshot, 0) == limits_of(snapshot, 1) == [([0, 1], 0)]  # Slurm refuses
    due = a_job(limit_s=HOUR_S, min_s=120, deadline_s=8000, controller_chooses=True)
    assert limits_of(a_snapshot(nodes=2, jobs=[due])(), 0) == [([0, 1], 0)]
