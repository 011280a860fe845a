# SPDX-License-Identifier: Apache-2.0
"""Limits of jobs that give nodes back, by numbers that can be checked by hand, and for ever."""

from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.extensions.elastic.resizing.budgets import Budgets
from bridge.units import UNLIMITED_S
from schedbridge_contracts.builders import a_running_job, a_snapshot


def world(width, now_s, end_s, start_s=0, job="7", maximum=8):
    running = [
        a_running_job(
            tuple(range(width)),
            id=job,
            start_s=start_s,
            end_s=end_s,
            min_nodes=1,
            max_nodes=maximum,
        )
    ]
    return a_snapshot(nodes=8, running=running, now_s=now_s)()


def seen(*worlds):
    budgets = Budgets()
    for each in worlds:
        budgets.see(each)
    return budgets


def test_a_job_on_fewer_nodes_may_use_what_it_has_left():
    first = world(4, 0, 600)
    later = world(4, 60, 600)
    assert seen(first).end_s(later, 0, 1) == 60 + 4 * 540
    assert seen(first).end_s(later, 0, 2) == 60 + 2 * 540
    assert seen(first).end_s(later, 0, 3) == 60 + 720


def test_no_other_change_moves_the_limit():
    first = world(4, 0, 600)
    for width in (4, 5, 0, -1):
        assert seen(first).end_s(first, 0, width) == 0
    assert seen(first).end_s(world(4, 700, 600), 0, 1) == 0  # it is late already
    assert Budgets().end_s(first, 0, 1) == 0
    endless = world(4, 0, UNLIMITED_S)
    assert seen(endless).end_s(endless, 0, 1) == 0
    rigid = world(4, 0, 600, maximum=0)
    assert seen(rigid).end_s(rigid, 0, 1) == 0


def test_a_job_that_was_requeued_has_a_budget_of_its_own():
    again = world(2, 1000, 1600, start_s=1000)
    assert seen(world(4, 0, 600), again).end_s(again, 0, 1) == 1000 + 1200


def test_a_job_that_ended_is_forgotten():
    first = world(4, 0, 600)
    assert seen(first, world(1, 1, 9, job="8")).end_s(first, 0, 1) == 0


@settings(deadline=None)
@given(
    st.integers(1, 8), st.integers(60, 5000),
    st.lists(st.tuples(st.integers(1, 8), st.integers(1, 500)), max_size=20),
)  # fmt: skip
def test_no_row_of_changes_gives_more_than_the_budget_at_one_node(width, limit_s, changes):
    budgets, end_s, now_s = Budgets(), limit_s, 0
    budget = width * limit_s
    for after, passed_s in changes:
        budgets.see(world(width, now_s, end_s))
        now_s += passed_s
        if now_s >= end_s:
            break
        until_s = budgets.end_s(world(width, now_s, end_s), 0, after)
        if until_s:
            assert after < width
            assert until_s > end_s
            assert until_s <= -(-budget // after)
            end_s = until_s
        width = after
    assert end_s <= budget
