# SPDX-License-Identifier: Apache-2.0
"""Speeds, bases and the steps of lending, by numbers that can be checked by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from bridge.model.job import WidthRule
from bridge.planning.malleable.bases import (
    Costs,
    allowed,
    at_bases,
    base_ends_s,
    elastic_jobs,
    start_widths_at_bases,
)
from bridge.planning.malleable.elastic import ElasticJobs, MalleableJob
from bridge.planning.malleable.loans import kept_now
from bridge.planning.malleable.speed import serial_fractions, speed, speeds, widths_for
from bridge.units import NEVER
from schedbridge_contracts.builders import a_job, a_running_job, a_snapshot

COSTS = Costs(adaptation_s=5, between_s=60, stretch=2.0, fairness=1.0)


def a_lent_job(nodes, base, **more):
    values = {
        "row": 0, "requested": base, "maximum": 16, "rule": WidthRule.ANY, "serial": 0.0,
        "left_s": 1000, "back_s": 5, "resizable": True,
    }  # fmt: skip
    return MalleableJob(nodes=np.array(nodes, np.int32), base=base, **{**values, **more})


def columns_of(*jobs):
    """The same jobs as columns."""
    sets = [job.nodes for job in jobs]
    columns = {
        name: np.array([getattr(job, name) for job in jobs])
        for name in (
            "base",
            "requested",
            "maximum",
            "rule",
            "serial",
            "left_s",
            "back_s",
            "resizable",
        )
    }
    return ElasticJobs(
        row=np.arange(len(jobs)),
        indptr=np.cumsum([0, *map(len, sets)]),
        nodes=np.concatenate([np.zeros(0, np.int32), *sets]),
        straight=False,
        **columns,
    )


def test_a_serial_fraction_is_what_makes_the_speed_up_fit():
    serial = np.array([0.0, 0.02, 0.1])
    for width in (2, 7, 30):
        mtct = width / speeds(serial, np.full(3, width)) - 1
        assert serial_fractions(mtct, np.full(3, width)) == pytest.approx(serial)
    assert serial_fractions(np.array([-1.0, 0.3, 50.0]), np.array([4, 1, 3])).tolist() == [
        0.05, 0.05, 1.0
    ]  # fmt: skip


@pytest.mark.parametrize("serial", [0.0, 0.03, 0.5])
def test_the_fewest_nodes_for_a_speed_up(serial):
    maximum = 1 / serial if serial else 50.0
    for wanted in (0.5, 1.0, 1.4, 0.9 * maximum):
        (width,) = widths_for(np.array([serial]), np.array([wanted])).tolist()
        assert speed(serial, width) >= wanted - 1e-6
        assert width == 1 or speed(serial, width - 1) < wanted
    assert widths_for(np.array([0.5]), np.array([2.0]))[0] > 1 << 20


def test_widths_follow_their_rules():
    rules = np.array([WidthRule.ANY, WidthRule.POF2, WidthRule.EVEN, WidthRule.CUBIC], np.int8)
    assert allowed(rules, np.array([5, 5, 5, 5])).tolist() == [5, 8, 6, 8]
    assert allowed(rules, np.zeros(4, dtype=np.int64)).tolist() == [1, 1, 2, 1]


@pytest.mark.parametrize(
    ("more", "base"),
    [
        ({}, 4),  # half as fast as on eight
        ({"requested_nodes": 12}, 6),
        ({"requested_nodes": 40}, 8),  # no wider than it is
        ({"min_nodes": 5}, 5),
        ({"width_rule": WidthRule.CUBIC}, 8),
        ({"end_s": 15}, 8),  # it ends soon
    ],
)
def test_a_base_is_the_narrowest_width_that_stretch_allows(more, base):
    widths = {"min_nodes": 1, "max_nodes": 16, "end_s": 1000, **more}
    world = a_snapshot(nodes=16, now_s=10, running=[a_running_job(tuple(range(8)), **widths)])()
    world = replace(world, running=replace(world.running, mtct=np.zeros(1)))
    jobs = elastic_jobs(world, COSTS)
    assert jobs.base.tolist() == [base]
    assert jobs.is_lent.tolist() == [base < 8]
    assert jobs[0].lent.tolist() == list(range(base, 8))


def test_the_head_is_in_the_base():
    running = [a_running_job((2, 3, 5, 7), min_nodes=1, max_nodes=8, end_s=900, head=5)]
    (job,) = elastic_jobs(a_snapshot(nodes=8, running=running)(), COSTS)
    assert job.nodes.tolist() == [5, 2, 3, 7]


def test_only_the_nodes_of_malleable_jobs_are_taken_each_with_its_head_in_front():
    widths = {"min_nodes": 1, "max_nodes": 8, "end_s": 900}
    running = [
        a_running_job((0, 6), end_s=900),
        a_running_job((1, 2), **widths),
        a_running_job((3,), end_s=900),
        a_running_job((4, 5, 7), **widths, head=7),
        a_running_job((8, 9), **widths, head=9),
    ]
    jobs = elastic_jobs(a_snapshot(nodes=10, running=running)(), COSTS)
    assert jobs.row.tolist() == [1, 3, 4]
    assert [job.nodes.tolist() for job in jobs] == [[1, 2], [7, 4, 5], [9, 8]]
    assert [job.row for job in jobs] == jobs.row.tolist()


def test_what_is_given_back_leaves_ascending_nodes_and_the_head():
    widths = {"min_nodes": 1, "max_nodes": 8, "end_s": 900, "requested_nodes": 1}
    running = [
        a_running_job((0, 1, 2), **widths, head=2),
        a_running_job((3,), **widths),
        a_running_job((4, 5, 7), **widths),
    ]
    jobs = elastic_jobs(a_snapshot(nodes=8, running=running)(), COSTS)
    returns = at_bases(jobs, np.array([800, 801, 802]))
    assert returns.job.tolist() == [0, 2]
    assert returns.indptr.tolist() == [0, 1, 2]
    assert returns.nodes.tolist() == [2, 4]
    assert returns.end_s.tolist() == [800, 802]
    wide = replace(jobs, base=np.array([2, 1, 2]))
    assert at_bases(wide, np.zeros(3, dtype=np.int64)).nodes.tolist() == [0, 2, 4, 5]
    assert not len(at_bases(replace(jobs, base=jobs.width), np.zeros(3, dtype=np.int64)))


def test_a_waiting_job_is_planned_for_perfect_speed_up():
    jobs = [
        a_job(nodes=8, limit_s=100, min_start=1, max_start=8),
        a_job(nodes=8, limit_s=100),
        a_job(nodes=1, limit_s=100, min_start=1, max_start=8),
    ]
    start_widths = start_widths_at_bases(a_snapshot(jobs=jobs)(), 2.0)
    assert start_widths.job.tolist() == [0]
    base = int(start_widths.nodes[0])
    assert speed(0.05, base) >= speed(0.05, 8) / 2 > speed(0.05, base - 1)
    assert start_widths.time_limit_s.tolist() == [math.ceil(100 * 8 / base)]


def test_a_waiting_job_is_planned_on_nodes_enough_to_end_within_what_its_partitions_allow():
    job = a_job(nodes=8, limit_s=100, min_start=1, max_start=8)
    widths = []
    for max_time_s in (0, 800, 160, 100, 50):
        world = a_snapshot(nodes=8, jobs=[job])()
        (batch,) = world.partitions
        world = replace(world, partitions=(replace(batch, max_time_s=max_time_s),))
        start_widths = start_widths_at_bases(world, 100.0)
        widths.append(int(start_widths.nodes[0]) if len(start_widths) else 8)
    assert widths == [1, 1, 5, 8, 8]


def test_an_end_on_the_base_counts_the_pause_and_what_was_done_before():
    at_once = a_lent_job([0, 1, 2, 3], base=2)
    later = a_lent_job([0, 1, 2, 3], base=2, back_s=105)
    as_wide = a_lent_job([0, 1], base=2)
    ends_before = a_lent_job([0, 1, 2, 3], base=2, back_s=2000)
    over = a_lent_job([0, 1], base=1, left_s=0)
    jobs = columns_of(at_once, later, as_wide, ends_before, over)
    assert base_ends_s(jobs, 0, 5).tolist() == [5 + 2000, 105 + 2 * (1000 - 100), 1000, 1000, 0]


def test_what_is_used_first_is_given_back_first_and_no_more_than_the_rule_needs():
    used_s = np.array([NEVER, NEVER, 900, 5, 5, 700])
    job = a_lent_job([0, 1, 2, 3, 4, 5], base=2)
    assert sorted(kept_now(job, used_s, 5).tolist()) == [0, 1, 2, 5]
    even = a_lent_job([0, 1, 2, 3, 4, 5], base=2, rule=WidthRule.EVEN)
    used_s[4] = 800
    assert sorted(kept_now(even, used_s, 5).tolist()) == [0, 1, 2, 4]


def test_when_sets_of_nodes_are_first_used():
    used_s = np.array([9, NEVER, 3, 7])
    lent = [a_lent_job([9, *nodes], base=1) for nodes in ([0, 3], [], [1], [1, 2])]
    used_s = np.concatenate((used_s, [0] * 6))
    assert columns_of(*lent).first_used_s(used_s, NEVER).tolist() == [7, NEVER, NEVER, 3]
    assert columns_of(lent[1]).first_used_s(used_s, NEVER).tolist() == [NEVER]
