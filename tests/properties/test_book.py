# SPDX-License-Identifier: Apache-2.0
"""Book against a naive oracle: exact starts, nothing oversubscribed, undo and replanning exact."""

import random
from collections.abc import Callable

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.core import NEVER, Arrangement, Book, TermMode, pack_nodes
from tests.properties.naive_book import HORIZON, Group, Held, NaiveBook, Request, Term

EXAMPLES = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SEEDS = st.integers(0, 2**48)


def ints(values, dtype=np.int64):
    return np.array(values, dtype=dtype)


def terms_of(terms):
    return (
        ints([t.constraint for t in terms], np.int32),
        ints([t.amount for t in terms]),
        ints([t.mode for t in terms], np.int8),
    )


class Pair:
    """A book and its oracle, told the same things."""

    def __init__(self, rng: random.Random, *, protect: bool = True) -> None:
        self.rng = rng
        self.n_nodes = rng.randint(1, 4)
        self.n_res = rng.randint(1, 3)
        kinds = [[rng.randint(1, 5) for _ in range(self.n_res)] for _ in range(2)]
        capacity = [rng.choice(kinds) for _ in range(self.n_nodes)]
        self.rank = [rng.randint(0, 2) for _ in range(self.n_nodes)]
        protections = []
        if protect and self.n_res > 1 and rng.random() < 0.3:
            keep = [
                [rng.choice([0, 0, 1, 2]) for _ in range(self.n_res)] for _ in range(self.n_nodes)
            ]
            protections.append((rng.randrange(self.n_res), keep))
        self.naive = NaiveBook(capacity, protections)
        self.book = Book(
            0,
            ints(capacity),
            ints(self.rank, np.int32),
            [(resource, ints(keep)) for resource, keep in protections],
        )
        for _ in range(rng.randint(1, 3)):
            nodes = set(rng.sample(range(self.n_nodes), rng.randint(1, self.n_nodes)))
            self.naive.classes.append(nodes)
            assert self.book.add_class(self.bits(nodes)) == len(self.naive.classes) - 1
        for _ in range(rng.choice([0, 0, 1, 2])):
            steps = self.steps()
            self.book.add_constraint(*map(ints, zip(*steps, strict=True)))
            self.naive.constraints.append(self.per_second(steps))
        self.lengths = [rng.randint(1, 9) for _ in range(3)]
        self.requests: list[tuple[int, Request]] = []
        self.next_job = 0
        for _ in range(rng.choice([0, 0, 1, 2])):
            self.close()

    def bits(self, nodes):
        member = np.zeros(self.n_nodes, dtype=np.bool_)
        member[sorted(nodes)] = True
        return pack_nodes(member)

    def steps(self):
        starts = sorted({0, *(self.rng.randint(1, 25) for _ in range(self.rng.randint(0, 3)))})
        amounts = [self.rng.choice([0, 1, 3, 5, 8, NEVER]) for _ in starts]
        return list(zip(starts, amounts, strict=True))

    @staticmethod
    def per_second(steps):
        amounts = []
        for second in range(HORIZON):
            amounts.append([amount for start, amount in steps if start <= second][-1])
        return amounts

    def close(self):
        cls = self.rng.randrange(len(self.naive.classes))
        start = self.rng.randint(0, 20)
        end = start + self.rng.randint(1, 8)
        nodes = set(self.rng.sample(range(self.n_nodes), self.rng.randint(1, self.n_nodes)))
        self.naive.closed.append((cls, start, end, nodes))
        return self.book.close(cls, start, end, self.bits(nodes))

    def request(self) -> tuple[int, Request]:
        rng = self.rng
        if self.requests and rng.random() < 0.5:
            return rng.choice(self.requests)
        groups = []
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            want = tuple(rng.choice([0, 1, 1, 2, 3]) for _ in range(self.n_res))
            count = rng.choice([1, 1, 2, 3])
            maximum = rng.choice([0, 0, 0, 1, 2])
            groups.append(Group(count, want, rng.randrange(len(self.naive.classes)), maximum))
        arrangement = int(rng.choice(list(Arrangement)))
        request = Request(tuple(groups), arrangement, rng.random() < 0.25)
        number = self.book.add_request(
            ints([g.count for g in groups]),
            ints([g.want for g in groups]).reshape(-1, self.n_res),
            ints([g.cls for g in groups], np.int32),
            arrangement,
            request.exclusive,
            ints([g.maximum for g in groups]),
        )
        self.requests.append((number, request))
        return number, request

    def terms(self) -> tuple[Term, ...]:
        rng = self.rng
        return tuple(
            Term(c, rng.choice([0, 1, 2, 4]), int(rng.choice(list(TermMode))))
            for c in range(len(self.naive.constraints))
            if rng.random() < 0.6
        )

    def window(self, length: int) -> tuple[int, int]:
        earliest = self.rng.choice([0, 0, 0, self.rng.randint(0, 20)])
        latest = self.rng.choice([NEVER, NEVER, self.rng.randint(0, 40)])
        return earliest, min(latest, HORIZON - length)

    def plan(self, *, last: bool | None = None) -> int | None:
        """Finds a start, compares, and books it; the job, or None."""
        rng = self.rng
        number, request = self.request()
        length, terms = rng.choice(self.lengths), self.terms()
        earliest, latest = self.window(length)
        if last is None:
            last = rng.random() < 0.2
        found = self.book.find(number, length, terms_of(terms), earliest, latest, last)
        wanted = self.naive.find(request, length, terms, earliest, latest, last)
        assert (None if found is None else found[0]) == wanted, (request, length, terms, last)
        if found is None:
            return None
        start, nodes, groups, chunks = found
        placed = dict(
            zip(zip(nodes.tolist(), groups.tolist(), strict=True), chunks.tolist(), strict=True)
        )
        held = Held(request, start, length, terms, placed)
        assert self.naive.valid(held), held
        job = self.next_job
        self.next_job += 1
        assert self.book.book(job, number, start, length, terms_of(terms), nodes, groups, chunks)
        self.naive.held[job] = held
        return job

    def revoke(self) -> None:
        if self.naive.held:
            job = self.rng.choice(sorted(self.naive.held))
            del self.naive.held[job]
            self.book.revoke(job)

    def check_nothing_oversubscribed(self) -> None:
        for second in range(60):
            free = self.book.free_at(second)
            assert free.min(initial=0) >= 0
            for node in range(self.n_nodes):
                there = [
                    held.request.exclusive
                    for held in self.naive.held.values()
                    if held.start <= second < held.end and node in {n for n, _ in held.placed}
                ]
                assert not any(there) or len(there) == 1
                left = self.naive.free(node, second)
                expected = [0] * self.n_res if left is None else left[0]
                assert free[node].tolist() == expected

    def image(self, now=0):
        """Everything a book says about itself from now on."""
        rows = self.book.bookings()
        return [
            *(
                column.tolist()
                for column in (
                    rows.job, rows.request, rows.start, rows.end,
                    rows.indptr, rows.nodes, rows.groups, rows.chunks,
                )
            ),
            [self.book.free_at(second).tolist() for second in range(now, now + 50)],
            [
                [column.tolist() for column in self.book.constraint_use(c)]
                for c in range(len(self.naive.constraints))
            ],
        ]  # fmt: skip


@given(SEEDS)
@EXAMPLES
def test_starts_are_those_of_the_oracle(seed: int) -> None:
    """Slow: the oracle looks at every second of every node."""
    pair = Pair(random.Random(seed))
    for _ in range(pair.rng.randint(4, 14)):
        if pair.rng.random() < 0.2:
            pair.revoke()
        if pair.rng.random() < 0.05:
            pair.close()
        pair.plan()
    pair.check_nothing_oversubscribed()


@given(SEEDS)
@EXAMPLES
def test_few_requests_asked_again_and_again(seed: int) -> None:
    """What earlier searches taught is used, weakened by revokes, and used again.

    Slow: the oracle looks at every second of every node.
    """
    pair = Pair(random.Random(seed))
    for _ in range(3):
        pair.request()
    pair.request = lambda: pair.rng.choice(pair.requests)  # type: ignore[method-assign]
    pair.lengths = pair.lengths[:2]
    for _ in range(pair.rng.randint(8, 20)):
        for _ in range(pair.rng.choice([0, 0, 1, 2])):
            pair.revoke()
        pair.plan(last=False)
    pair.check_nothing_oversubscribed()


@given(SEEDS)
@EXAMPLES
def test_ties_of_equal_start_and_end(seed: int) -> None:
    """All jobs last equally long and come in packs: starts and ends meet in the same seconds.

    Slow: the oracle looks at every second of every node.
    """
    pair = Pair(random.Random(seed))
    pair.lengths = [pair.rng.randint(1, 4)] * 3
    pair.window = lambda length: (0, HORIZON - length)  # type: ignore[method-assign]
    for _ in range(2):
        pair.request()
    pair.request = lambda: pair.rng.choice(pair.requests)  # type: ignore[method-assign]
    for _ in range(pair.rng.randint(6, 16)):
        if pair.rng.random() < 0.2:
            pair.revoke()
        pair.plan()
    pair.check_nothing_oversubscribed()


@given(SEEDS)
@EXAMPLES
def test_replanning_moves_to_the_earliest_start_or_not_at_all(seed: int) -> None:
    """Slow: the oracle looks at every second of every node."""
    pair = Pair(random.Random(seed))
    for _ in range(pair.rng.randint(4, 12)):
        pair.plan()
    for _ in range(2):
        for _ in range(pair.rng.randint(1, 2)):
            pair.revoke()
        order = sorted(pair.naive.held)
        pair.rng.shuffle(order)
        for job in order:
            held = pair.naive.held.pop(job)
            earliest = pair.rng.choice([0, 0, 3])
            better = pair.naive.find(
                held.request, held.length, held.terms, earliest, held.start - 1
            )
            [start] = pair.book.replan_many(ints([job]), ints([earliest])).tolist()
            assert start == (held.start if better is None else better)
            rows = pair.book.bookings(ints([job]))
            placed = dict(
                zip(
                    zip(rows.nodes.tolist(), rows.groups.tolist(), strict=True),
                    rows.chunks.tolist(),
                    strict=True,
                )
            )
            if better is None:
                assert placed == held.placed
            held = held._replace(start=start, placed=placed)
            assert pair.naive.valid(held)
            pair.naive.held[job] = held
    pair.check_nothing_oversubscribed()


@given(SEEDS)
@EXAMPLES
def test_undo_restores_exactly(seed: int) -> None:
    """Slow: compares whole images of the book, before and after."""
    pair = Pair(random.Random(seed))
    rng = pair.rng
    for _ in range(rng.randint(2, 8)):
        pair.plan()

    def set_constraint():
        if pair.naive.constraints:
            constraint, steps = rng.randrange(len(pair.naive.constraints)), pair.steps()
            pair.book.set_constraint(constraint, *map(ints, zip(*steps, strict=True)))

    def replan():
        jobs = sorted(pair.naive.held)
        if jobs:
            pair.book.replan_many(ints(jobs), ints([0] * len(jobs)))

    def plan():
        number, _ = pair.request()
        length, terms = rng.choice(pair.lengths), terms_of(pair.terms())
        found = pair.book.find(number, length, terms)
        if found is not None:
            assert pair.book.book(pair.next_job, number, found[0], length, terms, *found[1:])
            pair.naive.held[pair.next_job] = pair.naive.held.get(0)  # only its number matters
            pair.next_job += 1

    acts: list[Callable[[], object]] = [
        set_constraint, replan, plan, plan, pair.revoke, pair.close
    ]  # fmt: skip

    def what_if(depth: int) -> None:
        kept = (
            list(pair.naive.capacity), list(pair.naive.constraints),
            list(pair.naive.closed), dict(pair.naive.held),
        )  # fmt: skip
        before = pair.image()
        mark = pair.book.mark()
        for _ in range(rng.randint(1, 6)):
            rng.choice(acts)()
            if depth and rng.random() < 0.2:
                what_if(depth - 1)
        pair.book.undo(mark)
        pair.naive.capacity, pair.naive.constraints, pair.naive.closed, pair.naive.held = kept
        assert pair.image() == before

    what_if(2)
    for _ in range(4):  # and it still finds what the oracle finds
        pair.plan()


@given(SEEDS)
@EXAMPLES
def test_revoke_and_book_again_is_identity(seed: int) -> None:
    """Slow: compares whole images of the book, before and after."""
    pair = Pair(random.Random(seed))
    terms = pair.terms  # who only checks, or only counts, may not come back once others have come
    pair.terms = lambda: tuple(t._replace(mode=0) for t in terms())  # type: ignore[method-assign]
    for _ in range(pair.rng.randint(3, 10)):
        pair.plan()
    before = pair.image()[8:]
    for job, held in pair.naive.held.items():
        rows = pair.book.bookings(ints([job]))
        pair.book.revoke(job)
        assert pair.book.book(
            job, int(rows.request[0]), held.start, held.length, terms_of(held.terms),
            rows.nodes, rows.groups, rows.chunks,
        )  # fmt: skip
    assert pair.image()[8:] == before


@given(SEEDS)
@EXAMPLES
def test_many_at_once_is_one_by_one(seed: int) -> None:
    one, many = Pair(random.Random(seed)), Pair(random.Random(seed))
    requested = []
    for _ in range(one.rng.randint(2, 10)):
        many.rng.setstate(one.rng.getstate())
        number, _ = one.request()
        assert many.request()[0] == number
        length, terms = one.rng.choice(one.lengths), one.terms()
        requested.append((number, length, terms, *one.window(length)))
    images = []
    for job, (number, length, terms, earliest, latest) in enumerate(requested):
        found = one.book.find(number, length, terms_of(terms), earliest, latest)
        if found is not None:
            assert one.book.book(job, number, found[0], length, terms_of(terms), *found[1:])
        images.append(NEVER if found is None else found[0])
        rows = one.book.bookings()
        assert rows.job.tolist() == sorted(rows.job.tolist(), key=lambda j: (images[j], j))
    plan = many.book.plan_many(
        job=np.arange(len(requested)),
        request=ints([a[0] for a in requested], np.int32),
        length=ints([a[1] for a in requested]),
        not_before=ints([a[3] for a in requested]),
        latest=ints([a[4] for a in requested]),
        last=np.zeros(len(requested), dtype=np.bool_),
        term_indptr=np.cumsum([0, *(len(a[2]) for a in requested)]),
        term_constraint=ints([t.constraint for a in requested for t in a[2]], np.int32),
        term_amount=ints([t.amount for a in requested for t in a[2]]),
        term_mode=ints([t.mode for a in requested for t in a[2]], np.int8),
    )
    assert plan.start.tolist() == images
    assert many.image() == one.image()
    assert [code == 0 for code in plan.blocked_by] == [start == 0 for start in images]
