# SPDX-License-Identifier: Apache-2.0
"""Starts that are known to have too few free nodes: kept over moves, as a new book finds them."""

import numpy as np

from bridge.core import NEVER, Book, pack_nodes
from schedbridge_contracts.crosses import each


def ints(values, dtype=np.int64):
    return np.array(values, dtype=dtype)


def terms(jobs):
    return {
        "term_indptr": np.zeros(jobs + 1, np.int64), "term_constraint": ints([], np.int32),
        "term_amount": ints([]), "term_mode": ints([], np.int8),
    }  # fmt: skip


def a_book(nodes):
    """An empty book, and requests for 1, 2, ... whole nodes."""
    book = Book(0, np.full((nodes, 1), 4, np.int64), np.zeros(nodes, np.int32))
    cls = ints([book.add_class(pack_nodes(np.ones(nodes, bool)))], np.int32)
    return book, [
        book.add_request(ints([count]), ints([[1]]), cls, arrangement=2, exclusive=True)
        for count in range(1, nodes + 1)
    ]


def replanned(book, job, not_before):
    return book.replan_many(ints([job]), ints([not_before])).tolist()[0]


def test_a_job_that_may_start_earlier_than_the_last_of_its_kind_is_moved():
    book, requests = a_book(1)
    for job, (start, length) in enumerate([(0, 20), (20, 20), (40, 60), (100, 10), (110, 10)]):
        book.book_many(
            job=ints([job]), request=ints([requests[0]], np.int32), start=ints([start]),
            length=ints([length]), indptr=ints([0, 1]), nodes=ints([0], np.int32),
            groups=ints([0], np.int32), chunks=ints([1], np.int32), forced=True, **terms(1),
        )  # fmt: skip
    assert replanned(book, 3, 0) == 100
    book.revoke(1)
    assert replanned(book, 4, 50) == 110
    assert replanned(book, 3, 0) == 20


@each(seed=range(12))
def test_moves_are_those_in_a_new_book(seed):
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 7))
    book, requests = a_book(nodes)
    not_before = {}

    def plan(first, count):
        jobs = range(first, first + count)
        since = rng.integers(0, 150, count) * (rng.random(count) < 0.7)
        not_before.update(zip(jobs, since.tolist(), strict=True))
        book.plan_many(
            job=ints(jobs), request=ints(rng.choice(requests, count), np.int32),
            length=np.full(count, 10), not_before=since,
            latest=np.full(count, NEVER, np.int64), last=np.zeros(count, bool), reasons=False,
            **terms(count),
        )  # fmt: skip
        return first + count

    coming = plan(0, int(rng.integers(10, 30)))
    for _ in range(10):
        for job in rng.choice(sorted(not_before), 2, replace=False).tolist():
            book.revoke(job)
            del not_before[job]
        for job in sorted(not_before, key=lambda job: book.bookings(ints([job])).start[0]):
            now = book.bookings()
            again, _ = a_book(nodes)
            again.book_many(
                job=now.job, request=now.request, start=now.start, length=now.end - now.start,
                indptr=now.indptr, nodes=now.nodes, groups=now.groups, chunks=now.chunks,
                forced=True, **terms(len(now.job)),
            )  # fmt: skip
            expected = replanned(again, job, not_before[job])
            assert replanned(book, job, not_before[job]) == expected
        coming = plan(coming, 2)
