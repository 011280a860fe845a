# SPDX-License-Identifier: Apache-2.0
"""Books the rows of a cycle, in any number of passes, and gives the plan that comes of it.

Words
    candidate   one alternative of an asked row: where, how long, and its layouts.
    simple      a row with one candidate that can lie in one way only: booked in bulk.

Rules
    1. Of several candidates and layouts the earliest start wins, ties go to the first.
    2. A row that starts now takes the widest of its layouts that fits now.
    3. A row whose limits refuse all its candidates is not booked; the refusal is its reason.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.core import Blocked, Bookings
from bridge.model.plan import Plan
from bridge.model.reasons import Reason
from bridge.planning.ceilings import Mode
from bridge.planning.cluster_book import BookTerms, ClusterBook, Protection
from bridge.planning.eligibility import Alternative
from bridge.planning.layouts import Layout, Layouts, layouts
from bridge.planning.rows import Rows
from bridge.planning.rules import LoweredRules
from bridge.units import NEVER, UNPLANNED

_Found = tuple[int, NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]  # of Book.find


@dataclass(frozen=True, slots=True)
class Place:
    """Where a row that does not start now stands.

    Attributes:
        start_s: its place in the plan; NEVER: none.
        blocked: why it does not start now.
        ceiling: of the book, for `Blocked.COUNTER` and `NEVER_COUNTER`; -1: none.
        partition: of the candidate that was judged.
        nodes: that it wants there.
        reason: its limits refuse it; otherwise None.
    """

    start_s: int
    blocked: int
    ceiling: int
    partition: int
    nodes: int
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class Kept:
    """A place in a former plan.

    Attributes:
        start_s: announced.
        alternative: which of the job's own.
        layout: how it lies there.
        nodes, groups, chunks: as the book has them.
    """

    start_s: int
    alternative: int
    layout: Layout
    nodes: NDArray[np.int32]
    groups: NDArray[np.int32]
    chunks: NDArray[np.int32]


class Booking:
    """The rows of one cycle on their way into the plan.

    Attributes:
        cluster: the book they are written into; rows are booked under their position in
            `Rows.asked`.
    """

    def __init__(
        self,
        rows: Rows,
        rank: NDArray[np.int32],
        *,
        lowered: LoweredRules,
        protect: Protection | None = None,
    ) -> None:
        """Lowers all candidates; books what runs."""
        self.rows = rows
        snapshot, alternatives = rows.snapshot, rows.alternatives
        n_asked = len(rows.asked)
        self._job = rows.job[rows.asked]
        self._first = alternatives.indptr
        owner = np.repeat(np.arange(n_asked), np.diff(alternatives.indptr))
        self.layouts: list[Layouts] = _layouts_of(rows, self._job[owner])
        self.cluster = ClusterBook(
            snapshot, rows.eligibility, rank, lowered=lowered, protect=protect
        )
        self._book = self.cluster.book
        job = self._job[owner]
        widths = np.array([ways.least[0].nodes for ways in self.layouts], dtype=np.int64)
        asked = (job, alternatives.partition, alternatives.time_limit_s, widths)
        terms = lowered.terms(*asked)
        self._terms = self.cluster.with_licences(terms, snapshot.jobs.licences[job], Mode.BOTH)
        self._refusals = terms.reasons
        self._shut = _shut_sets(lowered.closed_to(*asked))
        refused = np.array([reason is not None for reason in self._refusals], dtype=bool)
        several = np.array(
            [len(ways.least) > 1 or bool(ways.wider) for ways in self.layouts], dtype=bool
        )
        self._refused = np.ones(n_asked, dtype=bool)
        self._refused[owner[~refused]] = False
        self._simple = np.diff(alternatives.indptr) == 1
        self._simple[owner[several | refused]] = False
        self._request = np.full(len(self.layouts), -1, dtype=np.int32)
        self._not_before = rows.not_before_s()
        # What came of each row.
        self._start = np.full(n_asked, NEVER, dtype=np.int64)
        self._chosen = np.zeros(n_asked, dtype=np.int32)
        self._blocked = np.full(n_asked, Blocked.NEVER_NODES, dtype=np.int8)
        self._ceiling = np.full(n_asked, -1, dtype=np.int32)

    def has_start(self, asked: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which of these asked rows are booked."""
        booked: NDArray[np.bool_] = self._start[asked] != NEVER
        return booked

    def later(self) -> NDArray[np.bool_]:
        """(n_asked,) which rows are booked at a later start than now."""
        later: NDArray[np.bool_] = (self._start != NEVER) & (self._start > self.rows.snapshot.now_s)
        return later

    # ------------------------------------------------------------------ passes

    def keep(self, asked: NDArray[np.intp], kept: Sequence[Kept], start: NDArray[np.int64]) -> None:
        """Books rows where they lay in a former plan, in the order given, as far as they fit.

        Args:
            asked: positions in `Rows.asked`, none of them booked.
            kept: theirs.
            start: (n,) when, s.
        """
        rows: list[tuple[int, int, int, Kept]] = []  # asked, candidate, request, kept
        begin = []
        for at, place, start_s in zip(asked.tolist(), kept, start.tolist(), strict=True):
            candidate = int(self._first[at]) + place.alternative
            if candidate >= self._first[at + 1] or self._refusals[candidate] is not None:
                continue
            if place.layout in self.layouts[candidate].least:
                request = self._request_of(candidate, place.layout)
                rows.append((at, candidate, request, place))
                begin.append(start_s)
        if not rows:
            return
        jobs, candidates, requests, places = zip(*rows, strict=True)
        at = np.array(candidates, dtype=np.int64)
        indptr, take = _gather(self._terms.indptr, at)
        sizes = [len(place.nodes) for place in places]
        done = self._book.book_many(
            job=np.array(jobs, dtype=np.int64),
            request=np.array(requests, dtype=np.int32),
            start=np.array(begin, dtype=np.int64),
            length=self.rows.alternatives.time_limit_s[at],
            indptr=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            nodes=np.concatenate([place.nodes for place in places]),
            groups=np.concatenate([place.groups for place in places]),
            chunks=np.concatenate([place.chunks for place in places]),
            term_indptr=indptr,
            term_ceiling=self._terms.ceiling[take],
            term_amount=self._terms.amount[take],
            term_mode=self._terms.mode[take],
        )
        now_s = self.rows.snapshot.now_s
        for (row, _, _, place), start_s, booked in zip(rows, begin, done.tolist(), strict=True):
            if booked:
                self._start[row], self._chosen[row] = start_s, place.alternative
                self._blocked[row] = Blocked.STARTS_NOW if start_s == now_s else Blocked.NODES_BUSY

    def places(self, asked: NDArray[np.intp]) -> list[Kept]:
        """Where booked rows lie, to be kept."""
        found = self._book.bookings(job=asked.astype(np.int64))
        offsets, starts = found.indptr.tolist(), found.start.tolist()
        return [
            Kept(
                starts[at],
                int(self._chosen[row]),
                self.cluster.layout_of[int(found.request[at])],
                found.nodes[offsets[at] : offsets[at + 1]],
                found.groups[offsets[at] : offsets[at + 1]],
                found.chunks[offsets[at] : offsets[at + 1]],
            )
            for at, row in enumerate(asked.tolist())
        ]

    def plan(
        self,
        asked: NDArray[np.intp],
        *,
        not_before: NDArray[np.int64] | None,
        latest: NDArray[np.int64],
    ) -> None:
        """Books rows at their earliest starts, in the order given.

        Args:
            asked: positions in `Rows.asked`, none of them booked.
            not_before: (n,) s; None: what the jobs say.
            latest: (n,) the latest start, s.
        """
        begin = self._not_before[asked] if not_before is None else not_before
        begin = np.maximum(begin, self.rows.snapshot.now_s)
        wanted = ~self._refused[asked]
        asked, begin, latest = asked[wanted], begin[wanted], latest[wanted]
        simple = self._simple[asked]
        cuts = np.flatnonzero(np.diff(simple.astype(np.int8))) + 1
        for part in np.split(np.arange(len(asked)), cuts):
            if len(part) == 0:
                continue
            if simple[part[0]]:
                self._plan_simple(asked[part], begin[part], latest[part])
            else:
                for at in part.tolist():
                    self._plan_one(int(asked[at]), int(begin[at]), int(latest[at]))

    def _plan_simple(
        self, asked: NDArray[np.intp], begin: NDArray[np.int64], latest: NDArray[np.int64]
    ) -> None:
        at = self._first[asked]
        for candidate in at[self._request[at] < 0].tolist():
            self._request_of(candidate)
        indptr, take = _gather(self._terms.indptr, at)
        found = self._book.plan_many(
            job=asked.astype(np.int64),
            request=self._request[at],
            length=self.rows.alternatives.time_limit_s[at],
            not_before=begin,
            latest=latest,
            last=np.zeros(len(asked), dtype=bool),
            term_indptr=indptr,
            term_ceiling=self._terms.ceiling[take],
            term_amount=self._terms.amount[take],
            term_mode=self._terms.mode[take],
        )
        self._start[asked] = found.start
        self._blocked[asked] = found.blocked_by
        self._ceiling[asked] = found.blocked_ceiling

    def _plan_one(self, asked: int, begin_s: int, latest_s: int) -> None:
        best_s, best = NEVER, None
        first, end = int(self._first[asked]), int(self._first[asked + 1])
        for candidate in range(first, end):
            if self._refusals[candidate] is not None:
                continue
            length, terms = self._length(candidate), self._terms_of(candidate)
            for layout in self.layouts[candidate].least:
                request = self._request_of(candidate, layout)
                until = min(latest_s, best_s - 1)
                found = self._book.find(request, length, terms, begin_s, until)
                if found is not None:
                    best_s, best = found[0], (candidate, request, terms, found)
        now_s = self.rows.snapshot.now_s
        if best is None or best_s != now_s:
            candidate = best[0] if best else self._first_open(first, end)
            request = self._request_of(candidate, self.layouts[candidate].least[0])
            self._blocked[asked], self._ceiling[asked] = self._book.why(
                request, self._length(candidate), self._terms_of(candidate), begin_s, latest_s
            )
        if best is None:
            return
        candidate, request, terms, found = best
        if best_s == now_s:
            request, terms, found = self._widest(candidate) or (request, terms, found)
            self._blocked[asked] = Blocked.STARTS_NOW
        self._book.book(asked, request, best_s, self._length(candidate), terms, *found[1:])
        self._start[asked], self._chosen[asked] = best_s, candidate - first

    def _widest(self, candidate: int) -> tuple[int, BookTerms, _Found] | None:
        """Request, terms and mapping of the widest layout that fits now; None: the least does."""
        now_s = self.rows.snapshot.now_s
        for layout in self.layouts[candidate].wider:
            request = self._request_of(candidate, layout)
            terms = self._terms_of(candidate)
            found = self._book.find(request, self._length(candidate), terms, now_s, now_s)
            if found is not None:
                return request, terms, found
        return None

    def replan(self, asked: NDArray[np.intp]) -> None:
        """Moves booked rows to earlier places where there are any, in the order given."""
        simple = self._simple[asked]
        cuts = np.flatnonzero(np.diff(simple.astype(np.int8))) + 1
        for part in np.split(asked, cuts):
            if len(part) == 0:
                continue
            if self._simple[part[0]]:
                moved = self._book.replan_many(part.astype(np.int64), self._not_before[part])
                self._start[part] = moved
                now = part[moved == self.rows.snapshot.now_s]
                self._blocked[now] = Blocked.STARTS_NOW
            else:
                for at in part.tolist():
                    self._replan_one(at)

    def _replan_one(self, asked: int) -> None:
        before_s, chosen = int(self._start[asked]), int(self._chosen[asked])
        verdict = int(self._blocked[asked]), int(self._ceiling[asked])
        begin_s = max(int(self._not_before[asked]), self.rows.snapshot.now_s)
        if before_s <= begin_s:
            return
        mark = self._book.mark()
        self._book.revoke(asked)
        self._start[asked] = NEVER
        self._plan_one(asked, begin_s, before_s - 1)
        if self._start[asked] == NEVER:
            self._book.undo(mark)
            self._start[asked], self._chosen[asked] = before_s, chosen
            self._blocked[asked], self._ceiling[asked] = verdict
        else:
            self._book.keep(mark)

    # ------------------------------------------------------------------ candidates

    def _length(self, candidate: int) -> int:
        return int(self.rows.alternatives.time_limit_s[candidate])

    def _terms_of(self, candidate: int) -> BookTerms:
        own = self._terms.of(candidate)
        return self._terms.ceiling[own], self._terms.amount[own], self._terms.mode[own]

    def _request_of(self, candidate: int, layout: Layout | None = None) -> int:
        first = self.layouts[candidate].least[0]
        if layout is not None and layout is not first:
            return self.cluster.request(layout, self._shut[candidate])
        if self._request[candidate] < 0:
            self._request[candidate] = self.cluster.request(first, self._shut[candidate])
        return int(self._request[candidate])

    def _first_open(self, first: int, end: int) -> int:
        return next(c for c in range(first, end) if self._refusals[c] is None)

    # ------------------------------------------------------------------ what came of it

    def waiting(self) -> Iterator[tuple[int, Place]]:
        """The asked rows that do not start now, and where they stand."""
        now_s = self.rows.snapshot.now_s
        for asked in np.flatnonzero(self._start != now_s).tolist():
            candidate = int(self._first[asked] + self._chosen[asked])
            yield (
                asked,
                Place(
                    int(self._start[asked]),
                    int(self._blocked[asked]),
                    int(self._ceiling[asked]),
                    int(self.rows.alternatives.partition[candidate]),
                    self.layouts[candidate].least[0].nodes,
                    self._refusals[candidate] if self._refused[asked] else None,
                ),
            )

    def result(self, policy: str, *, beyond: bool = False) -> Plan:
        """The plan.

        Args:
            policy: who planned.
            beyond: rows without a start lie beyond the horizon: they are UNPLANNED, not NEVER,
                unless they can never run.
        """
        booked = np.flatnonzero(self._start != NEVER)
        found = self._book.bookings(job=booked.astype(np.int64))
        lying = _Lying(self.cluster, found)
        width = np.zeros(len(self._start), dtype=np.int64)
        width[booked] = lying.width
        start = self._start.copy()
        if beyond:
            never = (self._blocked <= Blocked.NEVER_FREED) & (self._blocked > 0)
            start[(start == NEVER) & ~never & ~self._refused] = UNPLANNED
        return self.rows.plan(
            policy,
            start=start,
            alternative=np.where(self._start != NEVER, self._chosen, -1).astype(np.int32),
            indptr=np.concatenate(([0], np.cumsum(width))).astype(np.int64),
            nodes=lying.nodes,
            tasks=lying.tasks,
            groups=lying.groups,
        )


class _Lying:
    """Bookings, node by node: several groups of a job on one node are one entry."""

    def __init__(self, cluster: ClusterBook, found: Bookings) -> None:
        n_jobs = len(found.job)
        owner = np.repeat(np.arange(n_jobs), np.diff(found.indptr))
        ways = cluster.layout_of
        offset = np.concatenate(([0], np.cumsum([len(way.groups) for way in ways]))).astype(
            np.int64
        )
        tasks_each = np.array([g.tasks for way in ways for g in way.groups], dtype=np.int64)
        kind = np.array([g.kind for way in ways for g in way.groups], dtype=np.int64)
        group = offset[found.request[owner]] + found.groups
        order = np.lexsort((found.nodes, owner))
        owner, nodes, group = owner[order], found.nodes[order], group[order]
        chunks = found.chunks[order].astype(np.int64)
        fresh = np.ones(len(nodes), dtype=bool)
        fresh[1:] = (owner[1:] != owner[:-1]) | (nodes[1:] != nodes[:-1])
        entry = np.cumsum(fresh) - 1
        n_entries = int(fresh.sum())
        tasks = np.bincount(entry, weights=chunks * tasks_each[group], minlength=n_entries)
        self.nodes: NDArray[np.int32] = nodes[fresh].astype(np.int32)
        self.tasks: NDArray[np.int32] = tasks.astype(np.int32)
        self.width = np.bincount(owner[fresh], minlength=n_jobs)
        self.groups: NDArray[np.int32] | None = None
        several = np.array([way.groups[-1].kind > 0 for way in ways], dtype=bool)
        if n_jobs and several.any() and several[found.request].any():
            mixed = several[found.request][owner]
            self.groups = np.zeros((n_entries, int(kind.max()) + 1), dtype=np.int32)
            np.add.at(self.groups, (entry[mixed], kind[group[mixed]]), chunks[mixed])


def _gather(
    indptr: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets and positions of some rows of a CSR."""
    counts = indptr[rows + 1] - indptr[rows]
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    take = np.repeat(indptr[rows] - offsets[:-1], counts) + np.arange(offsets[-1])
    return offsets, take


def _shut_sets(closed: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """For each candidate the closures that keep it out; candidates alike share one."""
    if not closed.any():
        return [()] * len(closed)
    known: dict[bytes, tuple[int, ...]] = {}
    found = []
    for row in closed:
        key = row.tobytes()
        if key not in known:
            known[key] = tuple(np.flatnonzero(row).tolist())
        found.append(known[key])
    return found


def _layouts_of(rows: Rows, job: NDArray[np.int64]) -> list[Layouts]:
    """The layouts of every candidate; candidates that ask alike share them."""
    jobs, columns = rows.snapshot.jobs, rows.alternatives
    known: dict[tuple[object, ...], Layouts] = {}
    asked: dict[int, tuple[object, ...]] = {}
    found = []
    table = zip(
        job.tolist(), columns.class_.tolist(), columns.partition.tolist(),
        columns.time_limit_s.tolist(), columns.min_nodes.tolist(), columns.max_nodes.tolist(),
        strict=True,
    )  # fmt: skip
    for row, class_, partition, limit_s, least, most in table:
        own = asked.get(row)
        if own is None:
            own = asked[row] = (
                jobs.per_node[row].tobytes(), jobs.per_task[row].tobytes(), int(jobs.tasks[row]),
                int(jobs.max_tasks_per_node[row]), bool(jobs.exclusive[row]),
                int(jobs.width_rule[row]), jobs.required[row], jobs.chunks[row],
            )  # fmt: skip
        key = (own, class_, least, most)
        ways = known.get(key)
        if ways is None:
            alternative = Alternative(class_, partition, limit_s, least, most)
            ways = known[key] = layouts(rows.snapshot, rows.eligibility, row, alternative)
        found.append(ways)
    return found
