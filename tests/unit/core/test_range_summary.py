# SPDX-License-Identifier: Apache-2.0
"""A book of many unlike jobs searches by spans of time; it must find what a plain search finds.

Queues here are long enough for a book to begin with spans: some hundred searches that know nothing
of single nodes, on a system of more than a few nodes.
"""

import numpy as np
import pytest
from policy_bench.workloads import QueueShape, node_problem, queue, shares

from bridge.core import NEVER, UNLIMITED, Arrangement, Book, plan_nodes

NODES = 80
JOBS = 1200


class Queue:
    """Jobs of which hardly two are alike, and the system they are for.

    `longer`: so much longer is every third job. The plan then reaches so far ahead that spans are
    longer than most jobs.
    """

    def __init__(self, seed, longer=1):
        _, self.limit = queue(QueueShape.LOG, JOBS, NODES, seed)
        self.limit[::3] *= longer
        self.few, self.per_node = shares(QueueShape.LOG, JOBS, seed)
        self.problem = node_problem(NODES, self.few, self.limit, self.per_node, UNLIMITED)

    def book(self, now=0):
        """An empty book and the requests of the jobs in it."""
        book = Book(now, self.problem.capacity, self.problem.node_rank)
        book.add_class(self.problem.class_nodes[0])
        first = np.zeros(1, dtype=np.int32)
        requests = [
            book.add_request(
                self.few[i : i + 1], self.per_node[i : i + 1], first, int(Arrangement.SCATTER)
            )
            for i in range(JOBS)
        ]
        return book, np.array(requests, dtype=np.int32)

    def plan(self, book, requests):
        none = np.zeros(JOBS, dtype=np.int64)
        return book.plan_many(
            job=np.arange(JOBS), request=requests, length=self.limit, not_before=none,
            latest=np.full(JOBS, NEVER), last=none.astype(np.bool_), **no_terms(JOBS),
            reasons=False,
        )  # fmt: skip


def no_terms(n):
    nothing = np.zeros(0, dtype=np.int64)
    return {
        "term_indptr": np.zeros(n + 1, dtype=np.int64),
        "term_constraint": nothing.astype(np.int32),
        "term_amount": nothing,
        "term_mode": nothing.astype(np.int8),
    }


@pytest.mark.parametrize("longer", [1, 40])
@pytest.mark.parametrize("seed", range(3))
def test_a_long_queue_is_planned_as_plan_nodes_plans_it(seed, longer):
    jobs = Queue(seed, longer)
    book, requests = jobs.book()
    planned = jobs.plan(book, requests)
    told = plan_nodes(jobs.problem)
    assert planned.start.tolist() == told.start.tolist()
    for job in range(JOBS):
        nodes = planned.nodes[planned.indptr[job] : planned.indptr[job + 1]]
        assert set(nodes) == set(told.nodes[told.indptr[job] : told.indptr[job + 1]])


@pytest.mark.parametrize("longer", [1, 40])
@pytest.mark.parametrize("seed", range(3))
def test_what_is_given_back_is_found_when_time_has_passed(seed, longer):
    """Against a book that was given the same bookings and has searched for nothing yet."""
    jobs, rng = Queue(seed, longer), np.random.default_rng(seed)
    book, requests = jobs.book()
    jobs.plan(book, requests)
    now = 20_000
    ended = book.bookings()
    for job in ended.job[ended.end <= now]:
        book.revoke(int(job))
    book.advance(now)
    left = book.bookings().job
    for job in rng.choice(left, len(left) // 3, replace=False):
        book.revoke(int(job))
    rows = book.bookings()
    fresh, same = jobs.book(now=now)
    assert same.tolist() == requests.tolist()
    booked = fresh.book_many(
        job=rows.job, request=rows.request, start=rows.start, length=rows.end - rows.start,
        indptr=rows.indptr, nodes=rows.nodes, groups=rows.groups, chunks=rows.chunks,
        **no_terms(len(rows.job)), forced=True,
    )  # fmt: skip
    assert booked.all()
    for request in rng.choice(requests, 200):
        length = int(rng.integers(60, 90_000))
        one, other = book.find(int(request), length), fresh.find(int(request), length)
        assert one[0] == other[0]
        assert one[1].tolist() == other[1].tolist()
