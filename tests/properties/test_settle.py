# SPDX-License-Identifier: Apache-2.0
"""`Book.settle` comes to what `keep_many` comes to in an empty book."""

import random
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.core import NEVER, Arrangement, Book, TermMode, pack_nodes

NONE = (np.zeros(0, np.int32), np.zeros(0, np.int64), np.zeros(0, np.int8))


@dataclass
class Job:
    number: int
    request: int
    start: int
    length: int
    nodes: dict[int, int]
    """Node to chunks."""
    terms: list[tuple[int, int, int]]
    booked: bool = True
    unsure: bool = False


@dataclass
class World:
    """Nodes, requests and running jobs, which any number of books can be made of."""

    dice: random.Random
    capacity: np.ndarray = field(init=False)

    def __post_init__(self):
        dice = self.dice
        self.n = dice.randint(2, 6)
        self.capacity = np.array([[dice.choice((2, 4, 4))] for _ in range(self.n)])
        self.rank = np.array([dice.randint(0, 2) for _ in range(self.n)], dtype=np.int32)
        everyone = set(range(self.n))
        self.classes = [everyone, set(dice.sample(range(self.n), dice.randint(1, self.n)))]
        self.requests = []
        for _ in range(4):
            self.requests.append(
                (
                    dice.randint(1, 3), dice.randint(1, 2), dice.randrange(2),
                    dice.choice((Arrangement.FREE, Arrangement.SCATTER)), dice.random() < 0.5,
                )
            )  # fmt: skip
        self.running = [
            (at, dice.randint(1, 60), dice.randrange(self.n), dice.random() < 0.3)
            for at in range(dice.randint(0, 4))
        ]

    def book(self):
        book = Book(0, self.capacity, self.rank)
        for nodes in self.classes:
            book.add_class(pack_nodes(np.array([[at in nodes for at in range(self.n)]]))[0])
        book.add_constraint(np.zeros(1, np.int64), np.array([6], np.int64))
        numbers = set()
        for count, want, cls, arrangement, exclusive in self.requests:
            number = book.add_request(
                count=np.array([count]),
                want=np.array([[want]]),
                cls=np.array([cls], np.int32),
                arrangement=int(arrangement),
                exclusive=exclusive,
                max_per_node=np.array([0]),
            )
            numbers.add(number)
        self.numbers = sorted(numbers)  # equal requests share one
        n = len(self.running)
        book.book_running(
            job=-1 - np.arange(n),
            run_indptr=np.arange(n + 1),
            run_nodes=np.array([one[2] for one in self.running], np.int32),
            run_use=np.ones((n, 1), np.int64),
            run_end=np.array([one[1] for one in self.running], np.int64),
            run_exclusive=np.array([one[3] for one in self.running], bool),
            term_indptr=np.zeros(n + 1, np.int64),
            term_constraint=NONE[0],
            term_amount=NONE[1],
            term_mode=NONE[2],
        )
        return book

    def jobs(self):
        """Most as a plan has them, some a little later or elsewhere, some without a place."""
        dice, book, found = self.dice, self.book(), []
        for number in range(dice.randint(1, 14)):
            request, length = dice.choice(self.numbers), dice.choice((5, 20, 50))
            terms = [(0, dice.randint(1, 2), dice.choice((0, 0, 1)))] if dice.random() < 0.2 else []
            columns = tuple(
                np.array([term[at] for term in terms], dtype)
                for at, dtype in enumerate((np.int32, np.int64, np.int8))
            )
            place = book.find(request, length, columns)
            if place is None:
                continue
            start, nodes, groups, chunks = place
            book.book(number, request, start, length, columns, nodes, groups, chunks)
            job = Job(number, request, start, length,
                      dict(zip(nodes.tolist(), chunks.tolist(), strict=True)), terms)  # fmt: skip
            job.start += dice.choice((0,) * 8 + (1, 3))
            job.length += dice.choice((0,) * 8 + (1, 10))
            job.booked = dice.random() < 0.9
            job.unsure = dice.random() < 0.1
            found.append(job)
        dice.shuffle(found)
        return found


def columns(jobs):
    terms = [term for job in jobs for term in job.terms]
    return {
        "job": np.array([job.number for job in jobs], np.int64),
        "request": np.array([job.request for job in jobs], np.int32),
        "start": np.array([job.start for job in jobs], np.int64),
        "length": np.array([job.length for job in jobs], np.int64),
        "term_indptr": np.cumsum([0, *(len(job.terms) for job in jobs)]).astype(np.int64),
        "term_constraint": np.array([term[0] for term in terms], np.int32),
        "term_amount": np.array([term[1] for term in terms], np.int64),
        "term_mode": np.array([term[2] for term in terms], np.int8),
    }


def places(jobs):
    nodes = [(node, chunks) for job in jobs for node, chunks in job.nodes.items()]
    return {
        "indptr": np.cumsum([0, *(len(job.nodes) for job in jobs)]).astype(np.int64),
        "nodes": np.array([node for node, _ in nodes], np.int32),
        "groups": np.zeros(len(nodes), np.int32),
        "chunks": np.array([chunks for _, chunks in nodes], np.int32),
    }


def held(book):
    """Everything booked, by job."""
    found = book.bookings()
    return {
        number: (
            int(found.start[at]), int(found.end[at]),
            found.nodes[found.indptr[at] : found.indptr[at + 1]].tolist(),
            found.chunks[found.indptr[at] : found.indptr[at + 1]].tolist(),
        )
        for at, number in enumerate(found.job.tolist())
    }  # fmt: skip


def use(book):
    """Of the constraint: what it allows, and what counts on it."""
    return [column.tolist() for column in book.constraint_use(0)]


def outcome(kept):
    return (
        kept.kept.tolist(), kept.start.tolist(), kept.blocked_by[~kept.kept].tolist(),
        kept.blocked_constraint[~kept.kept].tolist(),
    )  # fmt: skip


def starts(book, world):
    """Where new jobs would start, and where those that are booked would move."""
    found = [book.find(request, length) for request in world.numbers for length in (1, 7, 20, 55)]
    return [None if one is None else (one[0], *(part.tolist() for part in one[1:]))
            for one in found]  # fmt: skip


def test_what_settles_in_place_is_what_an_empty_book_would_hold():
    told = {"settled": 0, "moved": 0, "left": 0, "lost": 0}

    @settings(max_examples=400, deadline=None, database=None, derandomize=True)
    @given(st.integers(0, 1 << 40))
    def worlds(seed):
        world = World(random.Random(seed))
        jobs = world.jobs()
        if not jobs:
            return
        scratch, book = world.book(), world.book()
        all_ = columns(jobs)
        there = [job for job in jobs if job.booked]
        book.book_many(**columns(there), **places(there), forced=True)
        starts(book, world)  # so that searches have learnt something
        before = held(book), use(book)
        stands = np.array([job.booked for job in jobs])
        movable = np.array([world.dice.random() < 0.95 for _ in jobs])
        found = book.settle(
            **all_,
            booked=stands,
            unsure=np.array([job.unsure for job in jobs]),
            movable=movable,
            maximum=world.dice.choice((3, 20, 20, 20)),
        )
        if found is None:
            told["left"] += 1
            assert (held(book), use(book)) == before
            return
        expected = scratch.keep_many(**all_, **places(jobs), stands=stands, movable=movable)
        assert expected.done == len(jobs)
        assert outcome(found) == outcome(expected)
        assert held(book) == held(scratch)
        assert use(book) == use(scratch)
        assert starts(book, world) == starts(scratch, world)
        order = all_["job"][found.start != NEVER]
        none = np.zeros(len(order), np.int64)
        moved = book.replan_many(order, none).tolist(), scratch.replan_many(order, none).tolist()
        assert moved[0] == moved[1]
        assert (held(book), use(book)) == (held(scratch), use(scratch))
        told["settled"] += 1
        told["moved"] += not found.kept.all()
        told["lost"] += bool((found.start == NEVER).any())

    worlds()
    assert told["moved"] > 40  # else little is tested
    assert told["lost"] > 10
    assert 40 < told["left"] < 250


def test_a_counted_term_is_allowed_and_a_checked_one_is_not():
    world = World(random.Random(1))
    book = world.book()
    job = Job(1, 0, 100, 5, {}, [(0, 1, int(TermMode.CHECK))], booked=False)
    flags = {name: np.array([False]) for name in ("booked", "unsure", "movable")}
    with pytest.raises(ValueError, match="term_mode: expected BOTH or COUNT"):
        book.settle(**columns([job]), **flags, maximum=5)
    job.terms = [(0, 1, int(TermMode.COUNT))]
    assert book.settle(**columns([job]), **flags, maximum=5) is None  # it may not move
