# SPDX-License-Identifier: Apache-2.0
"""Bookings in bulk: where booking stops, what is too much, and that returns are seen."""

import numpy as np
import pytest

from bridge.core import NEVER, Book, TermMode, pack_nodes

NONE = np.zeros(0, dtype=np.int64)


def a_book(cores=(4, 4), maximum=None):
    """Nodes with so many cores; request 0 is a chunk of two, 1 one of all four."""
    book = Book(0, np.array([[n] for n in cores], dtype=np.int64), np.zeros(len(cores), np.int32))
    every = book.add_class(pack_nodes(np.ones(len(cores), dtype=bool)))
    for want in (2, 4):
        book.add_request(
            np.array([1]), np.array([[want]], dtype=np.int64), np.array([every], dtype=np.int32)
        )
    if maximum is not None:
        book.add_constraint(np.zeros(1, dtype=np.int64), np.array([maximum], dtype=np.int64))
    return book


def terms(n, amount=None):
    some = np.arange(n + 1, dtype=np.int64) * (amount is not None)
    count = int(some[-1])
    return {
        "term_indptr": some,
        "term_constraint": np.zeros(count, dtype=np.int32),
        "term_amount": np.full(count, amount or 0, dtype=np.int64),
        "term_mode": np.full(count, TermMode.BOTH, dtype=np.int8),
    }


def put(book, requests, nodes, *, start=0, amount=None, first=0, **how):
    n = len(requests)
    return book.book_many(
        job=np.arange(first, first + n, dtype=np.int64),
        request=np.array(requests, dtype=np.int32),
        start=np.full(n, start, dtype=np.int64),
        length=np.full(n, 100, dtype=np.int64),
        indptr=np.arange(n + 1, dtype=np.int64),
        nodes=np.array(nodes, dtype=np.int32),
        groups=np.zeros(n, dtype=np.int32),
        chunks=np.ones(n, dtype=np.int32),
        **terms(n, amount),
        **how,
    ).tolist()


@pytest.mark.parametrize(("stop", "booked"), [(False, 3), (True, 1)])
def test_nothing_is_booked_after_the_first_that_does_not_fit(stop, booked):
    book = a_book()
    done = put(book, [0, 1, 0, 0], [0, 0, 0, 1], stop=stop)
    assert done == [True, False, not stop, not stop]
    assert len(book) == booked


def test_a_node_with_more_than_it_has_is_overbooked_until_it_is_given_back():
    book = a_book()
    put(book, [1], [0], start=50)
    assert not book.overbooked()
    put(book, [0], [0], start=140, first=1, forced=True)
    assert book.overbooked()
    book.revoke(0)
    assert not book.overbooked()


def test_a_constraint_that_allows_less_than_there_is_is_overbooked():
    book = a_book(maximum=3)
    put(book, [0], [0], amount=3)
    assert not book.overbooked()
    book.set_constraint(0, np.zeros(1, dtype=np.int64), np.array([2], dtype=np.int64))
    assert book.overbooked()


def plan(book, requests, amount=None):
    n = len(requests)
    return book.plan_many(
        job=np.arange(n, dtype=np.int64),
        request=np.array(requests, dtype=np.int32),
        length=np.full(n, 100, dtype=np.int64),
        not_before=np.zeros(n, dtype=np.int64),
        latest=np.full(n, NEVER, dtype=np.int64),
        last=np.zeros(n, dtype=bool),
        **terms(n, amount),
    ).start.tolist()


def replanned(book, *jobs):
    return book.replan_many(np.array(jobs), np.zeros(len(jobs), dtype=np.int64)).tolist()


def test_a_booking_that_could_not_move_moves_when_its_own_or_another_node_is_given_back():
    book = a_book()
    assert plan(book, [1, 1, 1, 1]) == [0, 0, 100, 100]
    assert replanned(book, 2, 3) == [100, 100]
    book.revoke(1)
    assert replanned(book, 2, 3) == [0, 100]
    book.revoke(0)
    assert replanned(book, 3) == [0]


def test_a_booking_that_could_not_move_moves_when_its_constraint_allows_more():
    book = a_book(maximum=2)
    assert plan(book, [0, 0], amount=2) == [0, 100]
    assert replanned(book, 1) == [100]
    book.set_constraint(0, np.zeros(1, dtype=np.int64), np.array([4], dtype=np.int64))
    assert replanned(book, 1) == [0]


def test_a_booking_that_could_not_move_moves_when_a_closed_time_opens():
    book = a_book(cores=(4,))
    shut = book.close(0, 0, 50, pack_nodes(np.ones(1, dtype=bool)))
    assert plan(book, [0]) == [50]
    assert replanned(book, 0) == [50]
    book.reopen(shut)
    assert replanned(book, 0) == [0]


def keep(book, requests, nodes, *, stands=None, movable=None, first=0, at=0):
    n = len(requests)
    return book.keep_many(
        job=np.arange(n, dtype=np.int64) + 100,
        request=np.array(requests, dtype=np.int32),
        start=np.full(n, at, dtype=np.int64),
        length=np.full(n, 100, dtype=np.int64),
        indptr=np.arange(n + 1, dtype=np.int64),
        nodes=np.array(nodes, dtype=np.int32),
        groups=np.zeros(n, dtype=np.int32),
        chunks=np.ones(n, dtype=np.int32),
        **terms(n),
        stands=np.array(stands or [True] * n),
        movable=np.array(movable or [True] * n),
        first=first,
    )


def test_a_job_gives_way_to_those_before_it_by_moving_to_another_node():
    book = a_book(cores=(4, 4, 4))
    found = keep(book, [1, 1, 1, 1], [0, 0, 1, 2], stands=[True, True, True, False])
    assert found.done == 4
    assert found.kept.tolist() == [True, False, False, False]
    assert found.start.tolist() == [0, 0, 0, NEVER]
    assert book.bookings(np.array([100, 101, 102])).nodes.tolist() == [0, 1, 2]


def test_keeping_stops_at_a_job_that_the_caller_has_to_move():
    book = a_book()
    found = keep(book, [1, 1, 1], [0, 0, 1], movable=[True, False, True], at=7)
    assert (found.done, found.start.tolist()) == (1, [7, NEVER, NEVER])
    found = keep(book, [1, 1, 1], [0, 0, 1], first=2, at=7)
    assert (found.done, found.kept.tolist()) == (3, [False, False, True])
    with pytest.raises(ValueError, match="start"):
        keep(book, [1], [0], at=-1)
    with pytest.raises(ValueError, match="first"):
        keep(book, [1], [0], first=2)


def test_a_booking_that_could_not_move_moves_when_a_node_joins_its_class():
    book = a_book(cores=(4, 4))
    book.set_class(0, pack_nodes(np.array([True, False])))
    assert plan(book, [1, 1]) == [0, 100]
    assert replanned(book, 1) == [100]
    book.set_class(0, pack_nodes(np.array([False, True])))
    assert replanned(book, 1) == [0]
    assert book.bookings(np.array([0, 1])).nodes.tolist() == [0, 1]


def test_a_class_with_closed_times_or_under_a_mark_does_not_change():
    book = a_book()
    every = pack_nodes(np.ones(2, dtype=bool))
    mark = book.mark()
    with pytest.raises(ValueError, match="mark"):
        book.set_class(0, every)
    book.undo(mark)
    book.close(0, 0, 50, every)
    with pytest.raises(ValueError, match="closed"):
        book.set_class(0, every)


def test_many_jobs_of_whole_nodes_move_as_soon_as_enough_nodes_are_free():
    """Among them a node that two running jobs hold."""
    nodes, running = 40, np.zeros(0, dtype=np.int64)
    book = Book(0, np.full((nodes, 1), 4, dtype=np.int64), np.zeros(nodes, np.int32))
    every = book.add_class(pack_nodes(np.ones(nodes, dtype=bool)))
    for width in (1, 30):
        book.add_request(
            np.array([width]), np.array([[4]]), np.array([every], dtype=np.int32), 2, True
        )
    book.book_running(
        job=np.array([-1, -2]),
        run_indptr=np.array([0, 20, 21]),
        run_nodes=np.array([*range(20), 0], dtype=np.int32),
        run_use=np.full((21, 1), 4, dtype=np.int64),
        run_end=np.array([50, 80]),
        run_exclusive=np.ones(2, dtype=bool),
        term_indptr=np.zeros(3, dtype=np.int64),
        term_constraint=running.astype(np.int32),
        term_amount=running,
        term_mode=running.astype(np.int8),
    )
    assert plan(book, [1, 0, 0, 1]) == [50, 0, 0, 150]
    assert replanned(book, 0, 3) == [50, 150]
    book.revoke(-1)
    assert replanned(book, 0, 3) == [0, 100]
    book.revoke(0)
    assert replanned(book, 3) == [0]
