# SPDX-License-Identifier: Apache-2.0
"""What the checker says of other widths at the start, and of nodes given back later."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.check.legality import check, permitted_later
from bridge.model.decisions.resizes import NO_RESIZES, Resizes, resized
from bridge.model.decisions.start_widths import NO_START_WIDTHS, StartWidths, with_start_widths
from bridge.model.job import WidthRule
from bridge.model.rules.site import NO_RULES
from bridge.registry import build, parse_policy
from schedbridge_contracts.builders import a_job, a_running_job, a_snapshot
from schedbridge_contracts.cycles import Memory, run

NOW_S = 10


def a_world(**job):
    job = {"nodes": 4, "limit_s": 100, "min_start": 1, "max_start": 6, **job}
    return a_snapshot(nodes=8, now_s=NOW_S, jobs=[a_job(id="w", **job)])()


def said(world, *rows):
    start_widths = StartWidths.of(rows)
    plan = run(with_start_widths(world, start_widths), Memory(), build(parse_policy("easy")))
    return [str(one) for one in check(world, NO_RULES, replace(plan, start_widths=start_widths))]


@pytest.mark.parametrize("row", [(0, 2, 200), (0, 2, 100), (0, 6, 67), (0, 6, 100), (0, 1, 400)])
def test_widths_that_a_job_allows_for_possible_times(row):
    assert said(a_world(), row) == []


@pytest.mark.parametrize(
    ("row", "job", "why"),
    [
        ((0, 2, 201), {}, "is planned for 201 s on 2 nodes"),
        ((0, 2, 99), {}, "is planned for 99 s on 2 nodes"),
        ((0, 7, 100), {}, "is planned on 7 nodes, which it does not allow"),
        ((0, 2, 150), {"min_start": 3}, "is planned on 2 nodes, which it does not allow"),
        ((0, 3, 110), {"width_rule": WidthRule.POF2}, "is planned on 3 nodes"),
        ((0, 2, 150), {"max_start": 0}, "is planned on another width but not moldable"),
        ((0, 2, 150), {"tasks": 4}, "is planned on another width but not moldable"),
        ((0, 2, 150), {"required": (1,)}, "is planned on another width but not moldable"),
    ],
)
def test_other_widths_are_refused(row, job, why):
    found = said(a_world(**job), row)
    assert found
    assert why in found[0]


def test_without_its_width_a_row_is_wrong():
    world, start_widths = a_world(), StartWidths.of([(0, 2, 200)])
    plan = run(with_start_widths(world, start_widths), Memory(), build(parse_policy("easy")))
    assert "has the wrong number of nodes" in str(check(world, NO_RULES, plan))


@pytest.mark.parametrize(
    "start_widths",
    [
        StartWidths(np.array([1]), np.array([2]), np.array([200])),
        StartWidths(np.array([0]), np.array([2, 3]), np.array([200])),
        StartWidths(np.array([0, 0]), np.array([2, 2]), np.array([200, 200])),
    ],
)
def test_columns_of_widths_that_do_not_fit_together(start_widths):
    world = a_world()
    plan = run(world, Memory(), build(parse_policy("easy")))
    (found,) = check(world, NO_RULES, replace(plan, start_widths=start_widths))
    assert "columns of widths" in str(found)
    assert not len(permitted_later(world, NO_RESIZES, NO_RESIZES, start_widths)[1].job)


def running_world(**more):
    widths = {"min_nodes": 2, "max_nodes": 6, **more}
    job = a_running_job((1, 2, 3), id="m", end_s=100, **widths)
    return a_snapshot(nodes=8, now_s=NOW_S, running=[job])()


def returns(nodes, by_s=50, job=0):
    return Resizes.of([(job, by_s, np.array(nodes, np.int32), "lent")])


@pytest.mark.parametrize(
    ("nodes", "by_s", "more", "why"),
    [
        ((1, 2), 50, {}, None),
        ((1, 2), 50, {"adapting": True}, None),  # what it does now is over by then
        ((2, 3), 50, {"head": 3}, None),
        ((1, 2), 50, {"head": 3}, "loses the node of its batch script"),
        ((2, 3), 50, {}, "loses the node of its batch script"),
        ((1,), 50, {}, "to 1 nodes, which it does not allow"),
        ((1, 2, 3, 4), 50, {}, "is to give nodes back later, but is given some"),
        ((1, 2), NOW_S, {}, "gives nodes back at once"),
        ((1, 2), 50, {"max_nodes": 0, "min_nodes": 0}, "is resized but not malleable"),
    ],
)
def test_nodes_given_back_later(nodes, by_s, more, why):
    world = running_world(**more)
    plan = run(world, Memory(), build(parse_policy("easy")))
    found = check(world, NO_RULES, replace(plan, returns=returns(nodes, by_s)))
    assert [why in str(one) for one in found] == ([True] if why else [])
    kept, _ = permitted_later(world, NO_RESIZES, returns(nodes, by_s), NO_START_WIDTHS)
    assert len(kept) == (why is None)


def test_a_start_on_nodes_that_are_given_back_too_late_oversubscribes_them():
    waiting = a_snapshot(nodes=8, now_s=NOW_S, jobs=[a_job(nodes=6)])().jobs
    world = replace(running_world(), jobs=waiting)
    for by_s, legal in ((50, True), (51, False)):
        around = resized(world, returns((1, 2), 50))
        plan = run(around, Memory(), build(parse_policy("conservative")))
        assert plan.start_s.tolist() == [50]
        assert (check(world, NO_RULES, replace(plan, returns=returns((1, 2), by_s))) == ()) == legal
