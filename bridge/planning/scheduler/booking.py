# SPDX-License-Identifier: Apache-2.0
"""Books the rows of a cycle, in any number of passes, and gives the plan that comes of it.

Words
    candidate   one alternative of an asked row: where, how long, and its layouts.
    simple      a row with one candidate that has only one layout: booked in bulk.

Rules
    1. Of several candidates and layouts the earliest start wins, ties go to the first.
    2. A row that starts now takes the widest of its layouts that fits now and keeps all rules so.
    3. A row counts what the layout it has comes to (`bridge.planning.scheduler.layout_choices`).
       One whose limits refuse all its candidates is not booked; the refusal is its reason.
    4. No row is booked where its deadline or fixed start does not allow it
       (`bridge.planning.queue.time_windows`).
    5. A late row is booked at its latest start, `SPARE_S` before its deadline left free; if there
       is none, at its earliest start.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from bridge.core import UNLIMITED, Blocked
from bridge.model.plan import Plan
from bridge.model.site import Protection
from bridge.planning.queue.layouts import Layout, LayoutOptions, layouts_of
from bridge.planning.queue.rows import Rows, gather
from bridge.planning.queue.time_windows import SPARE_S, asked_limit_s
from bridge.planning.scheduler.book_placements import BookPlacements
from bridge.planning.scheduler.booked import Placement, WaitingRow
from bridge.planning.scheduler.cluster_book import BookTerms, ClusterBook
from bridge.planning.scheduler.layout_choices import LayoutChoice, LayoutChoices
from bridge.planning.site_rules.capacity_constraints import Mode
from bridge.planning.site_rules.freepools import Closure, Gates
from bridge.planning.site_rules.lowered_rules import LoweredRules
from bridge.ports import Preference
from bridge.units import NEVER, UNPLANNED

_IMPOSSIBLE = (Blocked.NEVER_NODES, Blocked.NEVER_SIZE, Blocked.NEVER_COUNTER)
_Found = tuple[int, NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]  # of Book.find
_KeptRow = tuple[int, LayoutChoice | None, Placement]


class Booking:
    """The rows of one cycle on their way into the plan.

    Attributes:
        cluster: the book they are written into; rows are booked under their position in
            `Rows.asked`.
        late: (n_asked,) rows that are booked at their latest start.
    """

    def __init__(
        self,
        rows: Rows,
        preference: Preference,
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
        self.layouts: list[LayoutOptions] = layouts_of(rows, self._job[owner])
        self.cluster = ClusterBook(
            snapshot,
            rows.eligibility,
            preference.rank,
            lowered=lowered,
            protect=protect,
            selection=preference.selection,
        )
        self._book = self.cluster.book
        job = self._job[owner]
        self.choices = LayoutChoices(
            self.layouts,
            snapshot,
            rows.eligibility,
            lowered,
            job=job,
            partition=alternatives.partition,
            time_limit_s=asked_limit_s(snapshot.jobs, job, alternatives.time_limit_s),
        )
        wants = job[self.choices.owner]
        self._terms = self.cluster.licences.add_terms(
            self.choices.terms,
            snapshot.jobs.licences[wants],
            Mode.BOTH,
            snapshot.jobs.reservation[wants],
        )
        self._refusals = self.choices.refusals
        self._judged: dict[tuple[int, tuple[Gates, ...], int], tuple[Closure, ...] | None] = {}
        refused = np.array([reason is not None for reason in self._refusals], dtype=bool)
        self._refused = np.ones(n_asked, dtype=bool)
        self._refused[owner[~refused]] = False
        self._simple = np.diff(alternatives.indptr) == 1
        self._simple[owner[~self.choices.simple | refused]] = False
        self._request = np.full(len(self.layouts), -1, dtype=np.int32)  # of the first choices
        self._not_before = rows.not_before_s()
        self._last = rows.latest_s()
        self._mark: int | None = None
        self._forget()

    def _forget(self) -> None:
        """No row is planned."""
        n_asked = len(self.rows.asked)
        self.late = np.zeros(n_asked, dtype=bool)
        self._start = np.full(n_asked, NEVER, dtype=np.int64)
        self._chosen = np.zeros(n_asked, dtype=np.int32)
        self._choice: dict[int, LayoutChoice] = {}  # where it is not the first of the candidate
        self._blocked = np.full(n_asked, Blocked.NEVER_NODES, dtype=np.int8)
        self._constraint = np.full(n_asked, -1, dtype=np.int32)
        self._passed_over = np.zeros(n_asked, dtype=bool)

    def restart(self) -> None:
        """Takes every row out again; what runs stays. To be called before the first pass, too."""
        if self._mark is None:
            for at in np.flatnonzero(~self._refused).tolist():
                self._name_requests(at)
        else:
            self.cluster.undo(self._mark)
        self._mark = self.cluster.mark()
        self._forget()

    def chosen(self, *, beyond: bool = False) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """(n_asked,) starts, and which of the row's own alternatives (-1: none).

        Args:
            beyond: rows without a start are beyond the horizon: they are UNPLANNED, not NEVER,
                unless they can never run.
        """
        never = (self._blocked <= Blocked.NEVER_FREED) & (self._blocked > 0)
        unplanned = (self._start == NEVER) & ~never & ~self._refused
        if not beyond:
            unplanned &= self._passed_over
        start = np.where(unplanned, UNPLANNED, self._start)
        return start, np.where(self._start != NEVER, self._chosen, -1).astype(np.int32)

    def has_start(self, asked: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which of these asked rows are booked."""
        booked: NDArray[np.bool_] = self._start[asked] != NEVER
        return booked

    def candidate(self, asked: int) -> int:
        """Which of all candidates a booked row has; a position in `layouts`."""
        return int(self._first[asked] + self._chosen[asked])

    def length_s(self, asked: int) -> int:
        """How long a booked row lasts."""
        return self._length(self.candidate(asked))

    def not_before_s(self, asked: int) -> int:
        """What the row says of its earliest start, s; 0: any."""
        return int(self._not_before[asked])

    def start_s(self, asked: NDArray[np.intp]) -> NDArray[np.int64]:
        """Where asked rows are booked; NEVER: they are not."""
        found: NDArray[np.int64] = self._start[asked]
        return found

    def simple(self, asked: int) -> bool:
        """Whether the row has only one layout, on one kind of nodes, for one time."""
        return bool(self._simple[asked])

    def bound(self, asked: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which rows limits, FreePools or licences bind, as they are booked."""
        at = self.choices.number(self._first[asked] + self._chosen[asked])
        for position, row in enumerate(asked.tolist()):
            if row in self._choice:
                at[position] = self._choice[row].number
        some = np.diff(self._terms.indptr)[at] > 0
        gated = np.fromiter(
            (bool(self.choices.gates[choice]) for choice in at.tolist()), bool, len(at)
        )
        bound: NDArray[np.bool_] = some | gated
        return bound

    def revoke(self, asked: NDArray[np.intp]) -> None:
        """Takes rows out of the book that are booked."""
        for at in asked.tolist():
            self._book.revoke(at)
        self._start[asked] = NEVER
        for at in asked.tolist():
            self._choice.pop(at, None)

    def _choice_of(self, asked: int) -> LayoutChoice:
        """How a booked row lies."""
        return self._choice.get(asked) or self.choices.first(self.candidate(asked))

    def layout_choice(self, asked: int) -> tuple[int, Layout]:
        """Which of its layouts a booked row has, and the layout; see `LayoutChoice.index`."""
        choice = self._choice.get(asked)
        if choice is None:
            return 0, self.choices.least[self.candidate(asked)][0]
        return choice.index, choice.layout

    def later(self) -> NDArray[np.bool_]:
        """(n_asked,) which rows are booked at a later start than now."""
        later: NDArray[np.bool_] = (self._start != NEVER) & (self._start > self.rows.snapshot.now_s)
        return later

    # ------------------------------------------------------------------ passes

    def keep(
        self, asked: NDArray[np.intp], former: Sequence[Placement], start: NDArray[np.int64]
    ) -> None:
        """Books rows at their placements in a former plan, in the order given, as far as they fit.

        A row that fits there no more gets other nodes at the same time, before those behind it.
        Who may use what a FreePool keeps may be placed there beside others who had to fit first: if
            all
        rows fit with those others first, they are booked so.

        Args:
            asked: positions in `Rows.asked`, none of them booked.
            former: theirs.
            start: (n,) when, s.
        """
        rows: list[_KeptRow] = []
        begin = []
        for at, lay, start_s in zip(asked.tolist(), former, start.tolist(), strict=True):
            kept = self._renumbered(at, lay)
            candidate = int(self._first[at]) + kept.alternative
            if candidate >= self._first[at + 1] or self._refusals[candidate] is not None:
                continue
            if start_s > self._last[candidate]:
                continue
            self.late[at] = kept.late
            choice = self._still(candidate, kept)
            if choice is not None:
                self._request_of(choice)  # closed times that are written under a mark are undone
            rows.append((at, choice, kept))
            begin.append(start_s)
        counted = [choice is not None and self._only_counts(choice) for _, choice, _ in rows]
        if any(counted) and all(choice is not None for _, choice, _ in rows):
            order = sorted(range(len(rows)), key=counted.__getitem__)
            together, when_s = [rows[at] for at in order], [begin[at] for at in order]
            mark = self.cluster.mark()
            usable = [(at, choice, kept) for at, choice, kept in together if choice is not None]
            if self._book_kept(usable, when_s).all():
                rows, begin = together, when_s
            self.cluster.undo(mark)
        while rows:
            failed = self._keep_all(rows, begin)
            if failed is None:
                return
            # It gives way to those before it only: on other nodes if need be.
            at = np.array([rows[failed][0]])
            when = np.array(begin[failed : failed + 1], dtype=np.int64)
            self.plan(at, not_before=when, latest=when)
            rows, begin = rows[failed + 1 :], begin[failed + 1 :]

    def _only_counts(self, choice: LayoutChoice) -> bool:
        """Whether a constraint that others must stay under does not bind it."""
        return bool((self._terms.mode[self._terms.of(choice.number)] == Mode.COUNT).any())

    def _keep_all(self, rows: list[_KeptRow], begin: list[int]) -> int | None:
        """Books all rows, or those before the first that does not fit; returns its position."""
        mark = self.cluster.mark()
        usable = [(at, choice, kept) for at, choice, kept in rows if choice is not None]
        failed = next((at for at, row in enumerate(rows) if row[1] is None), len(rows))
        done = self._book_kept(usable[:failed], begin[:failed])
        if not done.all():
            failed = int(np.argmin(done))
            self.cluster.undo(mark)
            mark = self.cluster.mark()
            self._book_kept(usable[:failed], begin[:failed])
        self.cluster.keep(mark)
        now_s = self.rows.snapshot.now_s
        for (asked, choice, kept), start_s in zip(usable[:failed], begin, strict=False):
            self._start[asked], self._chosen[asked] = start_s, kept.alternative
            self._choice[asked] = choice
            known = self.cluster.constraint_of_key.get(kept.constraint_key, -1)
            lapsed = kept.blocked == Blocked.COUNTER and known < 0
            verdict = Blocked.NODES_BUSY if lapsed else kept.blocked
            self._blocked[asked] = Blocked.STARTS_NOW if start_s == now_s else verdict
            self._constraint[asked] = known
        return failed if failed < len(rows) else None

    def _book_kept(
        self, rows: list[tuple[int, LayoutChoice, Placement]], begin: list[int]
    ) -> NDArray[np.bool_]:
        if not rows:
            return np.ones(0, dtype=bool)
        placements = [kept for _, _, kept in rows]
        at = np.array([choice.number for _, choice, _ in rows], dtype=np.int64)
        candidate = np.array([choice.candidate for _, choice, _ in rows], dtype=np.int64)
        indptr, take = gather(self._terms.indptr, at)
        sizes = [len(kept.nodes) for kept in placements]
        done: NDArray[np.bool_] = self._book.book_many(
            job=np.array([asked for asked, _, _ in rows], dtype=np.int64),
            request=np.array([self._request_of(choice) for _, choice, _ in rows], dtype=np.int32),
            start=np.array(begin, dtype=np.int64),
            length=self.rows.alternatives.time_limit_s[candidate],
            indptr=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            nodes=np.concatenate([kept.nodes for kept in placements]),
            groups=np.concatenate([kept.groups for kept in placements]),
            chunks=np.concatenate([kept.chunks for kept in placements]),
            term_indptr=indptr,
            term_constraint=self._terms.constraint[take],
            term_amount=self._terms.amount[take],
            term_mode=self._terms.mode[take],
        )
        return done

    def _renumbered(self, at: int, kept: Placement) -> Placement:
        """The placement with the alternative that has its nodes now: switches are chosen anew."""
        first, opens_s = int(self._first[at]), self.rows.eligibility.opens_s
        for number in sorted(range(int(self._first[at + 1]) - first), key=kept.alternative.__ne__):
            now = self._still(first + number, kept)
            if now and all(opens_s(group.class_) <= kept.start_s for group in now.layout.groups):
                return replace(kept, alternative=number)
        return kept

    def _still(self, candidate: int, kept: Placement) -> LayoutChoice | None:
        """The layout choice that a kept placement has now, if its nodes are still there for it."""
        choice = self.choices.at(candidate, kept.layout_index)
        if (
            choice is not None
            and choice.layout.alike(kept.layout)
            and all(
                self.rows.eligibility.class_mask(group.class_)[kept.nodes[kept.groups == at]].all()
                for at, group in enumerate(choice.layout.groups)
            )
        ):
            return choice
        return None

    def placements_of(self, asked: NDArray[np.intp]) -> list[Placement]:
        """The placements of booked rows, to be kept."""
        found = self._book.bookings(job=asked.astype(np.int64))
        offsets, starts = found.indptr.tolist(), found.start.tolist()
        return [
            Placement(
                starts[at],
                int(self._chosen[row]),
                *self.layout_choice(row),
                found.nodes[offsets[at] : offsets[at + 1]],
                found.groups[offsets[at] : offsets[at + 1]],
                found.chunks[offsets[at] : offsets[at + 1]],
                bool(self.late[row]),
                int(self._blocked[row]),
                self.cluster.constraint_key(int(self._constraint[row])),
            )
            for at, row in enumerate(asked.tolist())
        ]

    def plan(
        self,
        asked: NDArray[np.intp],
        *,
        not_before: NDArray[np.int64] | None,
        latest: NDArray[np.int64],
        late: NDArray[np.bool_] | None = None,
        depth: int | None = None,
    ) -> None:
        """Books rows at their earliest starts, in the order given.

        Args:
            asked: positions in `Rows.asked`, none of them booked.
            not_before: (n,) s; None: what the jobs say.
            latest: (n,) the latest start, s.
            late: (n,) rows with a deadline to be booked at their latest starts; None: none.
            depth: once so many of them start later than now, the others start now or are passed
                over; None: no bound.
        """
        late = np.zeros(len(asked), dtype=bool) if late is None else late
        begin = self._not_before[asked] if not_before is None else not_before
        begin = np.maximum(begin, self.rows.snapshot.now_s)
        wanted = ~self._refused[asked]
        asked, begin, latest, late = asked[wanted], begin[wanted], latest[wanted], late[wanted]
        simple = self._simple[asked] & ~late
        cuts = np.flatnonzero(np.diff(simple.astype(np.int8))) + 1
        left = UNLIMITED if depth is None else depth
        now_s = self.rows.snapshot.now_s
        for part in np.split(np.arange(len(asked)), cuts):
            if len(part) == 0:
                continue
            if simple[part[0]]:
                left -= self._plan_simple(asked[part], begin[part], latest[part], left)
                continue
            for at in part.tolist():
                one = int(asked[at]), int(begin[at])
                until = int(latest[at])
                if left <= 0:
                    until = min(until, now_s)
                    self._passed_over[one[0]] = True
                if not late[at] or not self._plan_late(*one, until):
                    self._plan_one(*one, until)
                left -= now_s < self._start[one[0]] < NEVER
        self._passed_over[asked] &= self._could_start(asked, begin)

    def _could_start(self, asked: NDArray[np.intp], begin: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows have no start yet, but could have one that is not too late."""
        if not len(asked):
            return np.zeros(0, dtype=bool)
        last = np.maximum.reduceat(self._last, self._first[:-1])[asked]
        could: NDArray[np.bool_] = (self._start[asked] == NEVER) & (begin <= last)
        return could

    def _plan_simple(
        self,
        asked: NDArray[np.intp],
        begin: NDArray[np.int64],
        latest: NDArray[np.int64],
        depth: int,
    ) -> int:
        """Books rows in bulk; how many of them start later than now."""
        at = self._first[asked]
        fresh, least, gates = at[self._request[at] < 0], self.choices.least, self.choices.gates
        numbers = self.choices.number(fresh).tolist()
        for candidate, number in zip(fresh.tolist(), numbers, strict=True):
            self._request[candidate] = self.cluster.request(least[candidate][0], gates[number])
        indptr, take = gather(self._terms.indptr, self.choices.number(at))
        found = self._book.plan_many(
            job=asked.astype(np.int64),
            request=self._request[at],
            length=self.rows.alternatives.time_limit_s[at],
            not_before=begin,
            latest=np.minimum(latest, self._last[at]),
            last=np.zeros(len(asked), dtype=bool),
            term_indptr=indptr,
            term_constraint=self._terms.constraint[take],
            term_amount=self._terms.amount[take],
            term_mode=self._terms.mode[take],
            depth=max(depth, 0),
        )
        later = (found.start > self.rows.snapshot.now_s) & (found.start != NEVER)
        self._passed_over[asked] = np.cumsum(later) >= depth
        self._start[asked] = found.start
        self._blocked[asked] = found.blocked_by
        self._constraint[asked] = found.blocked_constraint
        return int(np.count_nonzero(later))

    def _plan_late(self, asked: int, begin_s: int, latest_s: int) -> bool:
        """Books a row with a deadline at its latest start (rule 5); False: there is none."""
        best_s, best = -1, None
        first, end = int(self._first[asked]), int(self._first[asked + 1])
        deadline_s = int(self.rows.snapshot.jobs.deadline_s[self._job[asked]])
        for candidate in range(first, end):
            length = self._length(candidate)
            until = min(deadline_s - length - SPARE_S, latest_s)
            if self._refusals[candidate] is not None:
                continue
            for choice in self.choices.to_plan(candidate):
                after = max(begin_s, best_s + 1)
                if until < after:
                    break
                request, terms = self._request_of(choice), self._terms_of(choice)
                found = self._book.find(request, length, terms, after, until, last=True)
                if found is not None:
                    best_s, best = found[0], (choice, found)
        if best is None:
            return False
        self._put(asked, *best)
        self.late[asked] = True
        now = best_s == self.rows.snapshot.now_s
        self._blocked[asked] = Blocked.STARTS_NOW if now else Blocked.NODES_BUSY
        return True

    def _plan_one(self, asked: int, begin_s: int, latest_s: int) -> None:
        best_s, best = NEVER, None
        first, end = int(self._first[asked]), int(self._first[asked + 1])
        for candidate in range(first, end):
            if self._refusals[candidate] is not None:
                continue
            length = self._length(candidate)
            for choice in self.choices.to_plan(candidate):
                until = min(latest_s, best_s - 1, int(self._last[candidate]))
                if until < begin_s:
                    break
                request, terms = self._request_of(choice), self._terms_of(choice)
                found = self._book.find(request, length, terms, begin_s, until)
                if found is not None:
                    best_s, best = found[0], (choice, found)
        now_s = self.rows.snapshot.now_s
        if best is None or best_s != now_s:
            candidates = [best[0].candidate] if best else range(first, end)
            self._judge(asked, candidates, begin_s, latest_s)
        if best is None:
            return
        if best_s == now_s:
            best = self._widest(best[0].candidate) or best
            self._blocked[asked] = Blocked.STARTS_NOW
        self._put(asked, *best)

    def _put(self, asked: int, choice: LayoutChoice, found: _Found) -> None:
        """Books a row where it was found to fit."""
        length, terms = self._length(choice.candidate), self._terms_of(choice)
        self._book.book(asked, self._request_of(choice), found[0], length, terms, *found[1:])
        self._start[asked] = found[0]
        self._chosen[asked] = choice.candidate - int(self._first[asked])
        self._choice[asked] = choice

    def _judge(self, asked: int, candidates: Iterable[int], begin_s: int, latest_s: int) -> None:
        """Says why a row does not start now: by the first candidate that it could have some day."""
        verdicts = []
        for candidate in candidates:
            if self._refusals[candidate] is None:
                choice = self.choices.first(candidate)
                request, length = self._request_of(choice), self._length(candidate)
                verdict = self._book.why(request, length, self._terms_of(choice), begin_s, latest_s)
                verdicts.append((candidate, *verdict))
                if verdict[0] not in _IMPOSSIBLE:
                    break
        told = verdicts[0] if verdicts[-1][1] in _IMPOSSIBLE else verdicts[-1]
        candidate, self._blocked[asked], self._constraint[asked] = told
        self._chosen[asked] = candidate - self._first[asked]

    def _widest(self, candidate: int) -> tuple[LayoutChoice, _Found] | None:
        """The widest layout that fits now and its mapping; None: none but those for any start."""
        now_s = self.rows.snapshot.now_s
        for choice in self.choices.to_start(candidate):
            request, terms = self._request_of(choice), self._terms_of(choice)
            found = self._book.find(request, self._length(candidate), terms, now_s, now_s)
            if found is not None:
                return choice, found
        return None

    def replan(self, asked: NDArray[np.intp]) -> None:
        """Moves booked rows to earlier placements where there are any, in the order given."""
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

    def start_now(self, asked: NDArray[np.intp]) -> None:
        """Moves booked rows that can start now, beside all that is booked, in the order given."""
        now_s = self.rows.snapshot.now_s
        for at in asked.tolist():
            self._replan_one(at, now_s)
            self.late[at] &= self._start[at] != now_s

    def earliest(self, asked: int) -> tuple[int, int]:
        """Looks where an unbooked row would start if no deadline or fixed start bound it.

        Returns:
            The start, NEVER if there is none, and the time limit there.
        """
        best_s, length_s = NEVER, 0
        begin_s = max(int(self._not_before[asked]), self.rows.snapshot.now_s)
        for candidate in range(int(self._first[asked]), int(self._first[asked + 1])):
            if self._refusals[candidate] is not None:
                continue
            length = self._length(candidate)
            for choice in self.choices.to_plan(candidate):
                request, terms = self._request_of(choice), self._terms_of(choice)
                found = self._book.find(request, length, terms, begin_s, best_s - 1)
                if found is not None:
                    best_s, length_s = found[0], length
        return best_s, length_s

    def _replan_one(self, asked: int, latest_s: int = NEVER) -> None:
        before_s, chosen = int(self._start[asked]), int(self._chosen[asked])
        verdict = int(self._blocked[asked]), int(self._constraint[asked])
        choice = self._choice_of(asked)
        begin_s = max(int(self._not_before[asked]), self.rows.snapshot.now_s)
        latest_s = min(latest_s, before_s - 1)
        if latest_s < begin_s:
            return
        self._name_requests(asked)
        mark = self.cluster.mark()
        self._book.revoke(asked)
        self._start[asked] = NEVER
        self._plan_one(asked, begin_s, latest_s)
        if self._start[asked] == NEVER:
            self.cluster.undo(mark)
            self._start[asked], self._chosen[asked] = before_s, chosen
            self._choice[asked] = choice
            self._blocked[asked], self._constraint[asked] = verdict
        else:
            self.cluster.keep(mark)

    # ------------------------------------------------------------------ candidates

    def _length(self, candidate: int) -> int:
        return int(self.rows.alternatives.time_limit_s[candidate])

    def _terms_of(self, choice: LayoutChoice) -> BookTerms:
        own = self._terms.of(choice.number)
        return self._terms.constraint[own], self._terms.amount[own], self._terms.mode[own]

    def _request_of(self, choice: LayoutChoice) -> int:
        gates = self.choices.gates[choice.number]
        if choice.index:
            return self.cluster.request(choice.layout, gates)
        if self._request[choice.candidate] < 0:
            self._request[choice.candidate] = self.cluster.request(choice.layout, gates)
        return int(self._request[choice.candidate])

    def _name_requests(self, asked: int) -> None:
        """Makes all requests of a row before a mark: each undoing would write them anew."""
        for candidate in range(int(self._first[asked]), int(self._first[asked + 1])):
            for choice in (*self.choices.to_plan(candidate), *self.choices.to_start(candidate)):
                self._request_of(choice)

    # ------------------------------------------------------------------ what came of it

    def waiting(self) -> Iterator[tuple[int, WaitingRow]]:
        """The asked rows that do not start now, and where they stand."""
        now_s = self.rows.snapshot.now_s
        for asked in np.flatnonzero(self._start != now_s).tolist():
            candidate = int(self._first[asked] + self._chosen[asked])
            yield (
                asked,
                WaitingRow(
                    int(self._start[asked]),
                    int(self._blocked[asked]),
                    int(self._constraint[asked]),
                    int(self.rows.alternatives.partition[candidate]),
                    self._nodes_asked(asked, candidate),
                    self._refusals[candidate] if self._refused[asked] else None,
                    bool(self._passed_over[asked]),
                ),
            )

    def kept_out(self, asked: int) -> tuple[Closure, ...]:
        """The FreePools of nodes without which a row that has no placement could have one.

        Mostly none. A row that has a placement, if only beyond the horizon, is not kept out;
        constraints are no matter. One that is kept out never starts, whatever the horizon.
        """
        found: tuple[Closure, ...] = ()
        for candidate in range(int(self._first[asked]), int(self._first[asked + 1])):
            if self._refusals[candidate] is None:
                closures = self._kept_out(candidate)
                if closures is None:
                    return ()
                found = found or closures
        if found:
            self._blocked[asked] = Blocked.NEVER_NODES
        return found

    def _kept_out(self, candidate: int) -> tuple[Closure, ...] | None:
        """The same for one candidate; None: no pool keeps it out. Those alike are judged once."""
        choices = list(self.choices.to_plan(candidate))
        gates, length = (
            [self.choices.gates[choice.number] for choice in choices],
            self._length(candidate),
        )
        if not all(gates):
            return None
        key = id(self.layouts[candidate]), tuple(gates), length
        if key not in self._judged:
            now_s = self.rows.snapshot.now_s

            def fits(shut: Iterable[Gates]) -> bool:
                layouts = [choice.layout for choice in choices]
                requests = map(self.cluster.request, layouts, shut)
                finds = (self._book.find(r, length, None, now_s, NEVER - 1) for r in requests)
                return any(found is not None for found in finds)

            closures = tuple(self.cluster.closures[gate.closure] for gate in gates[0])
            open_ = repeat((), len(choices))
            self._judged[key] = None if fits(gates) else closures if fits(open_) else ()
        return self._judged[key]

    def _nodes_asked(self, asked: int, candidate: int) -> int:
        return self.layouts[candidate].least[0].nodes if not self._refused[asked] else 0

    def result(self, policy: str, *, beyond: bool = False) -> Plan:
        """The plan.

        Args:
            policy: who planned.
            beyond: see `chosen`.
        """
        booked = np.flatnonzero(self._start != NEVER)
        found = self._book.bookings(job=booked.astype(np.int64))
        placed = BookPlacements([self.layout_choice(row)[1] for row in booked.tolist()], found)
        width = np.zeros(len(self._start), dtype=np.int64)
        width[booked] = placed.width
        start, alternative = self.chosen(beyond=beyond)
        return self.rows.plan(
            policy,
            start=start,
            alternative=alternative,
            indptr=np.concatenate(([0], np.cumsum(width))).astype(np.int64),
            nodes=placed.nodes,
            tasks=placed.tasks,
            groups=placed.groups,
        )
