# SPDX-License-Identifier: Apache-2.0
"""Books the rows of a cycle in one or more passes, and returns the resulting plan.

Rules
    1. A row with several candidates or layouts is booked where `StartSearch` finds it; simple rows
       (`bridge.planning.scheduler.candidates`) are booked in bulk.
    2. A row counts against limits with the amounts of its layout
       (`bridge.planning.scheduler.layout_choices`). A row is not booked if limits refuse all its
       candidates; the refusal is its reason.
    3. No row is booked at a time that its deadline or fixed start does not allow
       (`bridge.planning.queue.time_windows`).
    4. A late row is booked at its latest start; if there is none, at its earliest.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.core import UNLIMITED, Blocked, Kept
from bridge.model.rules.site import Protection
from bridge.planning.queue.rows import Rows
from bridge.planning.scheduler.book_handover import Handover, KeptBook
from bridge.planning.scheduler.candidates import Candidates
from bridge.planning.scheduler.cluster_book import ClusterBook
from bridge.planning.scheduler.former_book import FormerBook
from bridge.planning.scheduler.former_placements import FormerPlacements, KeptRows
from bridge.planning.scheduler.placements import PlacementColumns, RowStates
from bridge.planning.scheduler.planned_rows import PlannedRows
from bridge.planning.scheduler.start_search import RowFit
from bridge.planning.site_rules.capacity_constraints import Mode
from bridge.planning.site_rules.lowered_rules import LoweredRules
from bridge.ports import Preference
from bridge.units import NEVER


class BookPlanner:
    """Plans the rows of one cycle in a book."""

    def __init__(
        self,
        rows: Rows,
        preference: Preference,
        *,
        lowered: LoweredRules,
        protect: Protection | None = None,
        kept: KeptBook | None = None,
    ) -> None:
        """Lowers all candidates and books the running jobs.

        Args:
            protect: see `Protection`.
            kept: the book of the cycle before; used if the first pass is `keep`.
        """
        empty_book = partial(
            ClusterBook,
            rows.snapshot,
            rows.eligibility,
            preference.rank,
            lowered=lowered,
            protect=protect,
            selection=preference.selection,
        )
        self._candidates = Candidates(rows, empty_book(kept=kept), lowered)
        self.planned = PlannedRows(rows, self._candidates)
        self._former = FormerBook(self.planned, empty_book)
        self._search, self._now_s = self.planned.search, self.planned.now_s
        self._mark: int | None = None

    def restart(self) -> None:
        """Removes every row; running jobs stay. Must be called before the first pass, too."""
        self._former.give_up()
        if self._mark is None:
            for at in np.flatnonzero(~self._candidates.refused).tolist():
                self._candidates.name_requests(at)
        else:
            self.planned.cluster.undo(self._mark)
        self._mark = self.planned.cluster.mark()
        self.planned.states = RowStates(len(self.planned.rows.plannable))

    def plan(
        self,
        requested: NDArray[np.intp],
        *,
        not_before: NDArray[np.int64] | None,
        latest: NDArray[np.int64],
        late: NDArray[np.bool_] | None = None,
        depth: int | None = None,
    ) -> None:
        """Books rows at their earliest starts, in the order given.

        Args:
            requested: positions in `Rows.plannable`, none of them booked.
            not_before: (n,) s; None: what the jobs say.
            latest: (n,) the latest start, s.
            late: (n,) rows with a deadline to be booked at their latest starts; None: none.
            depth: once this many of them start later than now, the others start now or are passed
                over; None: no bound.
        """
        self._former.give_up()
        booked, all_, now_s = self.planned.states, self._candidates, self._now_s
        late = np.zeros(len(requested), dtype=bool) if late is None else late
        begin = all_.not_before_s[requested] if not_before is None else not_before
        begin = np.maximum(begin, now_s)
        wanted = ~all_.refused[requested]
        requested, begin, latest, late = (
            requested[wanted],
            begin[wanted],
            latest[wanted],
            late[wanted],
        )
        simple = all_.simple[requested] & ~late
        left = UNLIMITED if depth is None else depth
        for part in _alike(simple):
            if simple[part[0]]:
                left -= self._plan_simple(requested[part], begin[part], latest[part], left)
                continue
            for at in part.tolist():
                row, begin_s, until_s = int(requested[at]), int(begin[at]), int(latest[at])
                if left <= 0:
                    until_s = min(until_s, now_s)
                    booked.passed_over[row] = True
                if not late[at] or not self._plan_late(row, begin_s, until_s):
                    self._plan_one(row, begin_s, until_s)
                left -= now_s < booked.start_s[row] < NEVER
        booked.passed_over[requested] &= self._could_start(requested, begin)

    def _could_start(
        self, requested: NDArray[np.intp], begin: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Which rows have no start yet, and could have one that is not too late."""
        if not len(requested):
            return np.zeros(0, dtype=bool)
        all_ = self._candidates
        last = np.maximum.reduceat(all_.latest_s, all_.first[:-1])[requested]
        could: NDArray[np.bool_] = (self.planned.states.start_s[requested] == NEVER) & (
            begin <= last
        )
        return could

    def _plan_simple(
        self,
        requested: NDArray[np.intp],
        begin: NDArray[np.int64],
        latest: NDArray[np.int64],
        depth: int,
    ) -> int:
        """Books rows in bulk; returns how many of them start later than now."""
        all_, booked = self._candidates, self.planned.states
        at = all_.first[requested]
        found = self.planned.book.plan_many(
            job=self.planned.number[requested],
            request=all_.requests(at),
            length=all_.length_s[at],
            not_before=begin,
            latest=np.minimum(latest, all_.latest_s[at]),
            last=np.zeros(len(requested), dtype=bool),
            **all_.term_columns(all_.choices.numbers(at)),
            depth=max(depth, 0),
        )
        later = (found.start > self._now_s) & (found.start != NEVER)
        booked.passed_over[requested] = np.cumsum(later) >= depth
        booked.start_s[requested] = found.start
        booked.blocked[requested] = found.blocked_by
        booked.constraint[requested] = found.blocked_constraint
        return int(np.count_nonzero(later))

    def _plan_late(self, requested: int, begin_s: int, latest_s: int) -> bool:
        """Books a row with a deadline at its latest start (rule 4); returns False if none."""
        found = self._search.latest(requested, begin_s, latest_s)
        if found is None:
            return False
        self._put(requested, found)
        self.planned.states.late[requested] = True
        now = found.start_s == self._now_s
        self.planned.states.blocked[requested] = Blocked.STARTS_NOW if now else Blocked.NODES_BUSY
        return True

    def _plan_one(self, requested: int, begin_s: int, latest_s: int) -> None:
        booked = self.planned.states
        found = self._search.earliest(requested, begin_s, latest_s, bound=True)
        if found is None or found.start_s != self._now_s:
            candidates = None if found is None else [found.choice.candidate]
            why = self._search.why(requested, begin_s, latest_s, candidates)
            booked.blocked[requested], booked.constraint[requested] = why.blocked, why.constraint
            booked.alternative[requested] = why.candidate - self._candidates.first[requested]
        if found is None:
            return
        if found.start_s == self._now_s:
            found = self._search.widest_now(found.choice.candidate) or found
            booked.blocked[requested] = Blocked.STARTS_NOW
        self._put(requested, found)

    def _put(self, requested: int, found: RowFit) -> None:
        """Books a row at its start, and notes it in the columns of states."""
        all_, booked, choice = self._candidates, self.planned.states, found.choice
        request, terms = all_.request_of(choice), all_.terms_of(choice)
        number, length = int(self.planned.number[requested]), int(all_.length_s[choice.candidate])
        self.planned.book.book(number, request, found.start_s, length, terms, *found.mapping)
        booked.start_s[requested] = found.start_s
        booked.alternative[requested] = choice.candidate - all_.first[requested]
        booked.position[requested] = choice.position

    def keep(
        self,
        requested: NDArray[np.intp],
        former: PlacementColumns,
        row: NDArray[np.intp],
        start_s: NDArray[np.int64],
    ) -> None:
        """Books rows at their placements in a former plan, in the order given, as far as they fit.

        A row that no longer fits there gets other nodes at the same time, before the rows behind
        it. A job with access to a FreePool may have been placed beside jobs without, which had to
        fit first: if all rows fit with those others first, they are booked in that order.

        Args:
            requested: positions in `Rows.plannable`, none of them booked.
            row: (n,) which of them each has.
            start_s: (n,) when.
        """
        matching = FormerPlacements(self._candidates, former)
        kept = matching.match(requested, row, start_s)
        self.planned.states.late[kept.index] = former.late[kept.row]
        reused, cluster = self._former.bookings, self.planned.cluster
        if (self._candidates.terms.mode == Mode.CHECK).any():
            reused = None  # only counted rows may be overbooked, and the order matters
        if reused is not None:
            found = self._former.settle(reused, kept, former)
            if found is not None:
                self._take_settled(kept, former, found)
                return
        self._former.give_up()
        everyone = kept
        stands = kept.position >= 0
        self._candidates.requests(kept.candidate[stands], kept.position[stands])  # not under a mark
        counted = matching.only_count(kept)
        if counted.any() and stands.all():
            together = kept.take(np.argsort(counted, kind="stable"))
            mark = self.planned.cluster.mark()
            if self._former.book(together, former) == len(together):
                kept = together
            self.planned.cluster.undo(mark)
        moved = self._keep_in_order(kept, former)
        if reused is not None:
            stays = everyone.take(np.flatnonzero(~np.isin(everyone.index, moved)))
            self._former.refill(reused, cluster, stays, former, moved)

    def _keep_in_order(self, kept: KeptRows, former: PlacementColumns) -> NDArray[np.intp]:
        """Books each row at its placement, or on other nodes then; returns which were not kept.

        So a row gives way only to rows before it.
        """
        all_ = self._candidates
        moved = np.zeros(len(kept), dtype=bool)
        stands, movable = kept.position >= 0, all_.simple[kept.index]
        known = np.flatnonzero(stands | movable)
        if not len(known):
            self.plan(kept.index, not_before=kept.start_s, latest=kept.start_s)
            return kept.index
        columns = self._former.columns(kept, former, known)
        first = 0
        while first < len(kept):
            found = self.planned.book.keep_many(
                **columns, stands=stands, movable=movable, first=first
            )
            part = slice(first, found.done)
            moved[part] = self._take_settled(kept, former, found, part)
            if found.done < len(kept):  # a row with a choice
                one = slice(found.done, found.done + 1)
                self.plan(kept.index[one], not_before=kept.start_s[one], latest=kept.start_s[one])
                moved[one] = True
            first = found.done + 1
        return kept.index[moved]

    def _take_settled(
        self, kept: KeptRows, former: PlacementColumns, found: Kept, part: slice = slice(None)
    ) -> NDArray[np.bool_]:
        """Records where some rows were booked; returns which are not where they were."""
        booked, stay = self.planned.states, found.kept[part]
        if stay.all():
            self._take_kept(kept.take(part), former)
            return ~stay
        self._take_kept(kept.take(part).take(np.flatnonzero(stay)), former)
        rows = kept.index[part][~stay]
        booked.start_s[rows] = found.start[part][~stay]
        booked.blocked[rows] = found.blocked_by[part][~stay]
        booked.constraint[rows] = found.blocked_constraint[part][~stay]
        return ~stay

    def _take_kept(self, kept: KeptRows, former: PlacementColumns) -> None:
        """Records the rows that were booked unchanged."""
        booked, requested, number = (
            self.planned.states,
            kept.index,
            self.planned.cluster.constraint_of_key,
        )
        known = np.array([number.get(key, -1) for key in former.constraint_keys], dtype=np.int32)
        constraint = known[former.constraint[kept.row]]
        result = former.blocked[kept.row]
        lapsed = (result == Blocked.COUNTER) & (constraint < 0)
        result = np.where(lapsed, Blocked.NODES_BUSY, result)
        now = kept.start_s == self._now_s
        booked.start_s[requested] = kept.start_s
        booked.alternative[requested] = kept.candidate - self._candidates.first[requested]
        booked.position[requested] = kept.position
        booked.blocked[requested] = np.where(now, Blocked.STARTS_NOW, result)
        booked.constraint[requested] = constraint

    def hand_over(self, requested: NDArray[np.intp]) -> Handover:
        """Hands the book over to the next cycle; this object must not be used afterwards.

        Args:
            requested: booked rows that are announced, in the order in which they are kept.
        """
        self._former.give_up()
        planned, booked = self.planned, self.planned.states
        rows = self._candidates.record(
            planned.number[requested],
            planned.candidates_of(requested),
            booked.position[requested],
            booked.start_s[requested],
        )
        other = booked.start_s != NEVER
        other[requested] = False
        last = int(planned.number.max(initial=-1))
        return Handover(planned.cluster.hand_over(rows, planned.number[other], last + 1))

    def revoke(self, requested: NDArray[np.intp]) -> None:
        """Removes booked rows from the book."""
        for number in self.planned.number[requested].tolist():
            self.planned.book.revoke(number)
        self.planned.states.start_s[requested] = NEVER
        self.planned.states.position[requested] = 0

    def replan(self, requested: NDArray[np.intp]) -> None:
        """Moves booked rows to earlier placements if there are any, in the order given."""
        all_, booked = self._candidates, self.planned.states
        simple = all_.simple[requested]
        for part in _alike(simple):
            rows = requested[part]
            if simple[part[0]]:
                moved = self.planned.book.replan_many(
                    self.planned.number[rows], all_.not_before_s[rows]
                )
                booked.start_s[rows] = moved
                booked.blocked[rows[moved == self._now_s]] = Blocked.STARTS_NOW
            else:
                for at in rows.tolist():
                    self._replan_one(at)

    def start_now(self, requested: NDArray[np.intp]) -> None:
        """Moves booked rows to a start now if they fit beside all others, in the order given."""
        for at in requested.tolist():
            self._replan_one(at, self._now_s)
            self.planned.late[at] &= self.planned.states.start_s[at] != self._now_s

    def _replan_one(self, requested: int, latest_s: int = NEVER) -> None:
        booked = self.planned.states
        columns: tuple[NDArray[Any], ...] = (
            booked.start_s, booked.alternative, booked.position, booked.blocked, booked.constraint,
        )  # fmt: skip
        before = [column[requested] for column in columns]
        begin_s = max(self.planned.not_before_s(requested), self._now_s)
        latest_s = min(latest_s, int(booked.start_s[requested]) - 1)
        if latest_s < begin_s:
            return
        self._candidates.name_requests(requested)
        mark = self.planned.cluster.mark()
        self.planned.book.revoke(int(self.planned.number[requested]))
        booked.start_s[requested] = NEVER
        self._plan_one(requested, begin_s, latest_s)
        if booked.start_s[requested] == NEVER:
            self.planned.cluster.undo(mark)
            for column, value in zip(columns, before, strict=True):
                column[requested] = value
        else:
            self.planned.cluster.keep(mark)


def _alike(simple: NDArray[np.bool_]) -> Iterator[NDArray[np.intp]]:
    """Runs of rows that are all simple, or all not."""
    cuts = np.flatnonzero(np.diff(simple.astype(np.int8))) + 1
    return (part for part in np.split(np.arange(len(simple)), cuts) if len(part))
