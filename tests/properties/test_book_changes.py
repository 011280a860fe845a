# SPDX-License-Identifier: Apache-2.0
"""Book against the naive oracle while the world changes: running jobs, time, closures; holders."""

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from policy_bench.planning import measure_table
from policy_bench.workloads import QueueShape

from bridge.core import Arrangement
from tests.properties.naive_book import CHECK, COUNT, HORIZON, Group, Held, Request, Term
from tests.properties.test_book import Pair, ints, terms_of

EXAMPLES = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SEEDS = st.integers(0, 2**48)


class Changing(Pair):
    """A pair whose present moves on and whose nodes are held by jobs it did not plan."""

    def __init__(self, rng: random.Random) -> None:
        self.now = 0
        self.order: list[int] = []  # of booking
        self.closures: dict[int, tuple[int, int, int, set[int]]] = {}
        super().__init__(rng)

    def close(self) -> int:
        number = super().close()
        self.closures[number] = self.naive.closed[-1]
        return number

    def reopen(self) -> None:
        if self.closures:
            number = self.rng.choice(sorted(self.closures))
            self.book.reopen(number)
            self.naive.closed.remove(self.closures.pop(number))
            self.book.reopen(number)  # nothing more

    def change_class(self) -> None:
        number = self.rng.randrange(len(self.naive.classes))
        if all(closed[0] != number for closed in self.naive.closed):
            nodes = self.rng.sample(range(self.n_nodes), self.rng.randint(1, self.n_nodes))
            self.book.set_class(number, self.bits(nodes))
            self.naive.classes[number] = set(nodes)

    def window(self, length: int) -> tuple[int, int]:
        earliest, latest = super().window(length)
        return max(earliest, self.now), latest  # the past is not to be had

    def plan(self, *, last: bool | None = None) -> int | None:
        job = super().plan(last=last)
        if job is not None:
            self.order.append(job)
        return job

    def run(self) -> int:
        """Books a job that runs, whether it fits beside the others or not."""
        rng = self.rng
        nodes = sorted(rng.sample(range(self.n_nodes), rng.randint(1, self.n_nodes)))
        uses = [tuple(rng.choice([0, 1, 2]) for _ in range(self.n_res)) for _ in nodes]
        end, exclusive, terms = self.now + rng.randint(-2, 12), rng.random() < 0.3, self.terms()
        job, self.next_job = self.next_job, self.next_job + 1
        constraints, amounts, modes = terms_of(terms)
        self.book.book_running(
            job=ints([job]),
            run_indptr=ints([0, len(nodes)]),
            run_nodes=ints(nodes, np.int32),
            run_use=ints(uses).reshape(-1, self.n_res),
            run_end=ints([end]),
            run_exclusive=np.array([exclusive]),
            term_indptr=ints([0, len(terms)]),
            term_constraint=constraints,
            term_amount=amounts,
            term_mode=modes,
        )
        held = Held(
            Request(tuple(Group(1, use, 0, 0) for use in uses), int(Arrangement.FREE), exclusive),
            self.now,
            max(end, self.now + 1) - self.now,
            terms,
            {(node, group): 1 for group, node in enumerate(nodes)},
        )
        self.naive.held[job] = held
        self.order.append(job)
        return job

    def advance(self) -> None:
        self.now += self.rng.choice([0, 1, 2, 5])
        self.book.advance(self.now)
        assert self.book.now == self.now

    def trial(self) -> None:
        """Makes room, books others there, and takes all of it back."""
        rng, before = self.rng, self.image(self.now)
        mark = self.book.mark()
        for job in rng.sample(sorted(self.naive.held), rng.randint(0, len(self.naive.held))):
            self.book.revoke(job)
        for at, (number, _) in enumerate(self.requests):  # a request may be there twice
            length, terms = rng.choice(self.lengths), terms_of(self.terms())
            if (found := self.book.find(number, length, terms, self.now)) is not None:
                assert self.book.book(self.next_job + at, number, found[0], length, terms,
                                      *found[1:])  # fmt: skip
        self.book.undo(mark)
        assert self.image(self.now) == before

    def replan(self) -> None:
        """Moves every job in a random order and compares each move."""
        order = sorted(self.naive.held)
        self.rng.shuffle(order)
        for job in order:
            held = self.naive.held.pop(job)
            rows = self.book.bookings(ints([job]))
            stays = held.start <= self.now or rows.request[0] < 0
            better = None
            if not stays:
                better = self.naive.find(
                    held.request, held.length, held.terms, self.now, held.start - 1
                )
            [start] = self.book.replan_many(ints([job]), ints([0])).tolist()
            assert start == (held.start if better is None else better)
            if better is not None:
                rows = self.book.bookings(ints([job]))
                pairs = zip(rows.nodes.tolist(), rows.groups.tolist(), strict=True)
                placed = dict(zip(pairs, rows.chunks.tolist(), strict=True))
                held = held._replace(start=start, placed=placed)
                assert self.naive.valid(held)
                # Booked again, it is the last of those that start then.
                self.order.remove(job)
                self.order.append(job)
            self.naive.held[job] = held

    def check_free(self) -> None:
        for second in range(self.now, 50):
            free = self.book.free_at(second).tolist()
            for node in range(self.n_nodes):
                left = self.naive.free(node, second)
                assert free[node] == ([0] * self.n_res if left is None else left[0])

    # --- who stands in the way ---

    def lacking(self, node, wants, exclusive, start, end):
        """What a node has too little of for one chunk, as names of what can be used up."""
        seconds = range(start, end)
        if exclusive:
            return {"node"} if any(self.naive.chunks_at(node, s) for s in seconds) else set()
        names = set()
        for second in seconds:
            chunks = self.naive.chunks_at(node, second)
            if any(whole for _, _, whole in chunks):
                names.add("node")
            used = [(want, n) for want, n, whole in chunks if not whole]
            for r, has in enumerate(self.naive.capacity[node]):
                need = sum(n * want[r] for want, n in wants)
                if need and has - sum(n * want[r] for want, n in used) < need:
                    names.add(r)
                for k, (resource, keep) in enumerate(self.naive.protections):
                    if not keep[node][r] or r == resource:
                        continue
                    need = sum(n * want[r] for want, n in wants if not want[resource])
                    left = max(0, has - keep[node][r])
                    left -= sum(n * want[r] for want, n in used if not want[resource])
                    if need and left < need:
                        names.add((k, r))
        return names

    def uses(self, held, node, name) -> bool:
        for (where, group), _ in held.placed.items():
            want = held.request.groups[group].want
            if where != node:
                continue
            if name == "node":
                return True
            if held.request.exclusive:
                continue
            if isinstance(name, int):
                if want[name]:
                    return True
            elif not want[self.naive.protections[name[0]][0]] and want[name[1]]:
                return True
        return False

    def holders(self, request: Request, terms, start: int, length: int):
        end = start + length
        counts = tuple(group.count for group in request.groups)
        if request.arrangement == Arrangement.PACK:
            sought = [counts]
        else:
            sought = [tuple(int(g == i) for i in range(len(counts))) for g in range(len(counts))]
        lacks = []
        for node in range(self.n_nodes):
            for chunks in sought:
                held, self.naive.held = self.naive.held, {}
                closed, self.naive.closed = self.naive.closed, []
                ever = self.naive.fits(request, node, chunks, 0, 1)
                self.naive.held, self.naive.closed = held, closed
                if ever:
                    wants = [(g.want, n) for g, n in zip(request.groups, chunks, strict=True)]
                    names = self.lacking(node, wants, request.exclusive, start, end)
                    lacks.extend((node, name) for name in names)
        constraints = [
            term.constraint
            for term in terms
            if term.mode != COUNT and not self.naive.constraints_hold([term], start, length)
        ]
        jobs = [
            job
            for job, held in self.naive.held.items()
            if held.start < end
            and start < held.end
            and (
                any(self.uses(held, node, name) for node, name in lacks)
                or any(t.constraint in constraints and t.mode != CHECK for t in held.terms)
            )
        ]
        by_start = sorted(jobs, key=lambda j: (self.naive.held[j].start, self.order.index(j)))
        return by_start, constraints

    def compare_holders(self) -> None:
        number, request = self.request()
        terms = self.terms()
        start = self.now + self.rng.randint(0, 12)
        length = self.rng.choice(self.lengths)
        jobs, constraints = self.book.holders(number, terms_of(terms), start, length)
        wanted = self.holders(request, terms, start, length)
        assert (jobs.tolist(), constraints.tolist()) == wanted, (request, terms, start, length)
        if self.naive.can_start(request, start, length, terms):
            assert not wanted[1]


@given(SEEDS)
@EXAMPLES
def test_running_jobs_are_where_they_are(seed: int) -> None:
    pair = Changing(random.Random(seed))
    running = [pair.run() for _ in range(pair.rng.randint(1, 3))]
    for _ in range(pair.rng.randint(2, 8)):
        pair.plan()
        if pair.rng.random() < 0.2:
            running.append(pair.run())
    rows = pair.book.bookings(ints(running))
    assert rows.request.tolist() == [-1] * len(running)
    assert rows.start.tolist() == [0] * len(running)
    assert rows.end.tolist() == [pair.naive.held[job].end for job in running]
    placed = [node for job in running for node, _ in pair.naive.held[job].placed]
    assert sorted(rows.nodes.tolist()) == sorted(placed)
    pair.check_free()
    for job in running:
        if pair.rng.random() < 0.5:
            pair.book.revoke(job)
            del pair.naive.held[job]
            pair.plan()
    pair.replan()
    pair.check_free()


@given(SEEDS)
@EXAMPLES
def test_time_moves_on_and_nodes_close_and_open(seed: int) -> None:
    """Slow: the oracle looks at every second of every node."""
    pair = Changing(random.Random(seed))
    acts = [pair.plan] * 5 + [pair.advance, pair.advance, pair.close, pair.reopen, pair.reopen]
    acts += [pair.revoke, pair.run, pair.replan, pair.trial]
    for _ in range(pair.rng.randint(6, 20)):
        pair.rng.choice(acts)()
    pair.check_free()
    for _ in range(3):
        pair.plan()


@given(SEEDS)
@EXAMPLES
def test_nodes_leave_and_join_classes(seed: int) -> None:
    pair = Changing(random.Random(seed))
    acts = [pair.plan] * 5 + [pair.change_class] * 3 + [pair.advance, pair.close, pair.reopen]
    acts += [pair.revoke, pair.run, pair.replan, pair.trial]
    for _ in range(pair.rng.randint(6, 20)):
        pair.rng.choice(acts)()
    pair.replan()
    pair.check_free()


@given(SEEDS)
@EXAMPLES
def test_few_requests_while_much_is_given_back(seed: int) -> None:
    """So that a node has more windows in which a start is possible again than are kept apart.

    Slow: each of many requests is asked of the oracle, too.
    """
    pair = Changing(random.Random(seed))
    for _ in range(2):
        pair.request()
    pair.request = lambda: pair.rng.choice(pair.requests)  # type: ignore[method-assign]
    pair.lengths = pair.lengths[:2]
    for _ in range(pair.rng.randint(6, 14)):
        pair.plan(last=False)
    acts = [pair.revoke, pair.revoke, pair.replan, pair.advance, pair.reopen]
    for _ in range(pair.rng.randint(4, 10)):
        pair.rng.choice(acts)()
        for _ in range(pair.rng.choice([0, 1, 2])):
            pair.plan(last=False)
    pair.check_free()


@given(SEEDS)
@EXAMPLES
def test_holders_are_those_of_the_oracle(seed: int) -> None:
    pair = Changing(random.Random(seed))
    acts = [pair.plan] * 4 + [pair.run, pair.revoke, pair.advance, pair.compare_holders]
    for _ in range(pair.rng.randint(4, 14)):
        pair.rng.choice(acts)()
    for _ in range(3):
        pair.compare_holders()


def test_no_way_back_in_time() -> None:
    pair = Changing(random.Random(1))
    pair.book.advance(5)
    with pytest.raises(ValueError, match="now"):
        pair.book.advance(4)
    pair.book.mark()
    with pytest.raises(ValueError, match="mark"):
        pair.book.advance(6)


@pytest.mark.parametrize("shape", list(QueueShape))
def test_many_jobs_on_many_nodes_are_where_the_other_kernel_has_them(shape: QueueShape) -> None:
    """Long sweeps over many nodes, which the oracle is too slow for."""
    measure_table(shape, 3_000, 150, against=True, repeats=1)  # raises if they differ


def test_horizon_is_beyond_what_is_planned() -> None:
    """Or the oracle would say no where a book says yes."""
    pair = Changing(random.Random(2))
    pair.terms = lambda: (Term(0, 1, 0),) if pair.naive.constraints else ()  # type: ignore[method-assign]
    for _ in range(20):
        pair.plan(last=False)
    assert max((held.end for held in pair.naive.held.values()), default=0) < HORIZON
