# SPDX-License-Identifier: Apache-2.0
"""Two kernels, one behaviour: `plan_nodes` and the book plan the same worlds alike."""

import dataclasses

import numpy as np
import pytest

from bridge.model.job_columns import objects
from bridge.planning.scheduler.list_scheduler import ListScheduler
from bridge.ports import Conditions, Preference, Selection
from bridge.registry import build, choices, parse_policy
from bridge.units import NEVER, UNPLANNED
from schedbridge_contracts.builders import a_running_job, a_snapshot
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import check
from schedbridge_contracts.test_plan_stage import with_bounds
from schedbridge_contracts.worlds import random_world

DEPTHS = (None, 1, 3)
PLACES = tuple(build(parse_policy({"place": name})).place for name in choices()["place"])


def preference_by(selection, snapshot):
    rank = np.arange(len(snapshot.nodes), dtype=np.int32)
    if selection == Selection.BEST_FIT:
        rank %= 3
    return Preference(selection, rank)


def schedulers(snapshot, preference):
    """The same rows for both: one that chose the fast path, one that is made to use the book."""
    order = np.argsort(snapshot.jobs.submit_s, kind="stable")
    fast = ListScheduler(snapshot, order, preference, Conditions())
    book = ListScheduler(snapshot, order, preference, Conditions(), by_book=True)
    assert (fast.by_book, book.by_book) == (False, True)
    return fast, book


def by_name(snapshot):
    """The same world without jobs that count tasks; one job keeps nodes from being told alike.

    Whole nodes that nobody tells apart are planned as a number by `plan_nodes` alone, which may
    start jobs earlier; uneven layouts of tasks are looked at by `plan_nodes` alone.
    """
    jobs = snapshot.jobs
    return dataclasses.replace(
        snapshot,
        jobs=dataclasses.replace(
            jobs,
            tasks=np.zeros_like(jobs.tasks),
            per_task=np.zeros_like(jobs.per_task),
            max_tasks_per_node=np.zeros_like(jobs.max_tasks_per_node),
            exclusive=np.zeros_like(jobs.exclusive),
        ),
    )


@pytest.mark.parametrize("selection", list(Selection))
@each(seed=range(100))
def test_they_give_the_same_starts_and_nodes(seed, selection):
    snapshot = by_name(random_world(seed))
    if seed % 2:
        snapshot = with_bounds(snapshot, seed)
    fast, book = schedulers(snapshot, preference_by(selection, snapshot))
    for depth in DEPTHS:
        one, other = fast.schedule(depth=depth), book.schedule(depth=depth)
        assert one.start_s.tolist() == other.start_s.tolist()
        assert one.end_s.tolist() == other.end_s.tolist()
        assert one.alternative.tolist() == other.alternative.tolist()
        mine, theirs = fast.plan("one"), book.plan("other")
        assert (check(snapshot, mine), check(snapshot, theirs)) == ((), ())
        assert mine.indptr.tolist() == theirs.indptr.tolist()
        assert mine.nodes.tolist() == theirs.nodes.tolist()
        for row in range(len(mine)):
            said, told = mine.reasons[row], theirs.reasons[row]
            assert (said is None) == (told is None)
            job = mine.job[row]
            # Of two things in a job's way each may tell another one, and numbers of nodes that a
            # rule does not allow are told differently.
            if not snapshot.jobs.licences[job].any() and not snapshot.jobs.width_rule[job]:
                assert said is None or said.code is told.code, (said, told)


def tasks_alone(snapshot):
    """The same world with jobs that count tasks on shared nodes only, without amounts per node."""
    jobs = snapshot.jobs
    return dataclasses.replace(
        snapshot,
        jobs=dataclasses.replace(
            jobs,
            tasks=np.maximum(jobs.tasks, jobs.max_nodes),
            per_task=np.maximum(jobs.per_task, [1] + [0] * (jobs.per_task.shape[1] - 1)),
            per_node=np.zeros_like(jobs.per_node),
            min_nodes=np.ones_like(jobs.min_nodes),
            max_nodes=np.maximum(jobs.tasks, jobs.max_nodes),
            max_tasks_per_node=np.zeros_like(jobs.max_tasks_per_node),
            width_rule=np.zeros_like(jobs.width_rule),
            exclusive=np.zeros_like(jobs.exclusive),
            required=objects([()] * len(jobs)),
        ),
    )


def as_it_is(snapshot):
    return snapshot


def half_filled(snapshot):
    """The same world; one running job after the other holds half of every second node's CPUs."""
    cpus = snapshot.nodes.capacity[:, 0]
    running = [
        a_running_job((node,), end_s=30 * (node + 1), shared=True, cpus=int(cpus[node]) // 2)
        for node in range(0, len(cpus), 2)
    ]
    licences = [(name, 0) for name in snapshot.licences]
    held = a_snapshot(nodes=len(cpus), running=running, licences=licences)().running
    return dataclasses.replace(snapshot, running=held)


def empty(snapshot):
    nobody = a_snapshot(licences=[(name, 0) for name in snapshot.licences])().running
    return dataclasses.replace(snapshot, running=nobody)


def preferences(snapshot):
    """Those of all place policies, each once."""
    found = [place.preference(snapshot) for place in PLACES]
    return {(one.selection, one.rank.tobytes()): one for one in found}.values()


@each(seed=range(30), filled=(as_it_is, half_filled, empty))
def test_tasks_get_the_same_nodes_by_every_place_policy(seed, filled):
    snapshot = filled(tasks_alone(random_world(seed)))
    for preference in preferences(snapshot):
        fast, book = schedulers(snapshot, preference)
        for depth in DEPTHS:
            assert fast.schedule(depth=depth).start_s.tolist() == (
                book.schedule(depth=depth).start_s.tolist()
            )
            mine, theirs = fast.plan("one"), book.plan("other")
            assert check(snapshot, theirs) == ()
            assert mine.indptr.tolist() == theirs.indptr.tolist()
            assert mine.nodes.tolist() == theirs.nodes.tolist()
            assert mine.tasks.tolist() == theirs.tasks.tolist()


@each(seed=range(40))
def test_an_order_stands_for_a_schedule_whatever_was_decoded_before(seed):
    snapshot = with_bounds(random_world(seed, chunks=bool(seed % 2)), seed)
    order = np.argsort(snapshot.jobs.submit_s, kind="stable")
    preference = Preference(Selection.SEQUENTIAL, np.arange(len(snapshot.nodes), dtype=np.int32))
    rng = np.random.default_rng(seed)
    one = ListScheduler(snapshot, order, preference, Conditions())
    orders = [rng.permutation(len(one)) for _ in range(4)]
    first = [one.schedule(other).start_s.tolist() for other in orders]
    again = [one.schedule(other).start_s.tolist() for other in reversed(orders)]
    assert first == again[::-1]
    for other, starts in zip(orders, first, strict=True):
        fresh = ListScheduler(snapshot, order, preference, Conditions())
        assert fresh.schedule(other).start_s.tolist() == starts
        plan = fresh.plan("fresh")
        assert check(snapshot, plan) == ()
        assert plan.start_s[fresh.rows.plannable].tolist() == starts
        one.schedule(other)
        same = one.plan("same")
        assert same.nodes.tolist() == plan.nodes.tolist()
        assert same.reasons == plan.reasons


@each(seed=range(40))
def test_a_row_is_planned_beside_those_before_it_alone(seed):
    snapshot = random_world(seed, chunks=bool(seed % 2))
    order = np.arange(len(snapshot.jobs))
    preference = Preference(Selection.SEQUENTIAL, np.arange(len(snapshot.nodes), dtype=np.int32))
    scheduler = ListScheduler(snapshot, order, preference, Conditions())
    given = np.random.default_rng(seed).permutation(len(scheduler))
    starts = scheduler.schedule(given).start_s
    swapped = np.concatenate((given[:-2], given[:-3:-1])) if len(given) > 1 else given
    there = scheduler.schedule(swapped).start_s
    assert starts[given[:-2]].tolist() == there[given[:-2]].tolist()
    last = starts[given[-1:]]
    assert ((last == NEVER) | (last == UNPLANNED) | (last >= snapshot.now_s)).all()
