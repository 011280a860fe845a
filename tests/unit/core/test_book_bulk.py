# SPDX-License-Identifier: Apache-2.0
"""Bookings in bulk: where booking stops, what is too much, and that returns are seen."""

import numpy as np
import pytest

from bridge.core import NEVER, Book, TermMode, pack_nodes

NONE = np.zeros(0, dtype=np.int64)


def a_book(cores=(4, 4), most=None):
    """Nodes with so many cores; request 0 is a chunk of two, 1 one of all four."""
    book = Book(0, np.array([[n] for n in cores], dtype=np.int64), np.zeros(len(cores), np.int32))
    every = book.add_class(pack_nodes(np.ones(len(cores), dtype=bool)))
    for want in (2, 4):
        book.add_request(
            np.array([1]), np.array([[want]], dtype=np.int64), np.array([every], dtype=np.int32)
        )
    if most is not None:
        book.add_constraint(np.zeros(1, dtype=np.int64), np.array([most], dtype=np.int64))
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
    book = a_book(most=3)
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
    book = a_book(most=2)
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
