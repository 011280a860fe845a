# SPDX-License-Identifier: Apache-2.0
"""Where the rows of a cycle are booked: their placements, reasons, and the plan."""

import numpy as np
from numpy.typing import NDArray

from bridge.core import Blocked, Book, Bookings
from bridge.model.plan import Plan
from bridge.model.reasons import Reason
from bridge.planning.queue.columns import by_appearance, gather
from bridge.planning.queue.layout_options import Layout, LayoutOptions
from bridge.planning.queue.layouts import CandidateLayouts
from bridge.planning.queue.rows import Rows
from bridge.planning.scheduler.candidates import Candidates
from bridge.planning.scheduler.cluster_book import ClusterBook
from bridge.planning.scheduler.placements import PlacementColumns, RowStates, WaitingRows
from bridge.planning.scheduler.plan_columns import PlanColumns
from bridge.planning.scheduler.start_search import StartSearch
from bridge.planning.site_rules.freepools import Closure
from bridge.units import NEVER, UNPLANNED


class PlannedRows:
    """The plannable rows of a cycle as booked so far; `BookPlanner` books them.

    Attributes:
        search: finds starts of single rows in the book.
        now_s: the time of the cycle.
        states: where each row is booked, and why it waits.
        number: (n_plannable,) under which each row is booked.
    """

    def __init__(self, rows: Rows, candidates: Candidates) -> None:
        """No row is booked."""
        self.rows, self.candidates = rows, candidates
        self.search = StartSearch(candidates)
        self.now_s = rows.snapshot.now_s
        self.states = RowStates(len(rows.plannable))
        self.number = np.arange(len(rows.plannable), dtype=np.int64)

    @property
    def cluster(self) -> ClusterBook:
        """The book that the rows are written into."""
        return self.candidates.cluster

    @property
    def book(self) -> Book:
        """The same, as the kernel has it."""
        return self.cluster.book

    def move_to(self, cluster: ClusterBook) -> None:
        """Continues with another book."""
        self.candidates.move_to(cluster)

    @property
    def layouts(self) -> CandidateLayouts:
        return self.candidates.layouts

    def chosen(self, *, beyond: bool = False) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """(n_plannable,) starts, and which of the row's own alternatives (-1: none).

        Args:
            beyond: rows without a start are beyond the horizon: they are UNPLANNED, not NEVER,
                unless they can never run.
        """
        booked = self.states
        never = (booked.blocked <= Blocked.NEVER_FREED) & (booked.blocked > 0)
        unplanned = (booked.start_s == NEVER) & ~never & ~self.candidates.refused
        if not beyond:
            unplanned &= booked.passed_over
        start = np.where(unplanned, UNPLANNED, booked.start_s)
        none = np.int32(-1)
        return start, np.where(booked.start_s != NEVER, booked.alternative, none)

    @property
    def late(self) -> NDArray[np.bool_]:
        """(n_plannable,) rows that are booked at their latest start; may be written to."""
        return self.states.late

    def has_start(self, requested: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which of these plannable rows are booked."""
        booked: NDArray[np.bool_] = self.states.start_s[requested] != NEVER
        return booked

    def candidate(self, requested: int) -> int:
        """Which of all candidates a booked row has; a position in `layouts`."""
        return int(self.candidates_of(np.array([requested]))[0])

    def candidates_of(self, requested: NDArray[np.intp]) -> NDArray[np.int64]:
        """The candidates of rows: the booked ones, or those that the verdicts are about."""
        found: NDArray[np.int64] = (
            self.candidates.first[requested] + self.states.alternative[requested]
        )
        return found

    def options(self, requested: int) -> LayoutOptions:
        """The possible layouts of a booked row in its alternative."""
        return self.layouts[self.candidate(requested)]

    def length_s(self, requested: int) -> int:
        """How long a booked row lasts."""
        return int(self.candidates.length_s[self.candidate(requested)])

    def not_before_s(self, requested: int) -> int:
        """The row's own earliest start, s; 0: any."""
        return int(self.candidates.not_before_s[requested])

    def start_s(self, requested: NDArray[np.intp]) -> NDArray[np.int64]:
        """The booked starts of plannable rows, s; NEVER: not booked."""
        found: NDArray[np.int64] = self.states.start_s[requested]
        return found

    def simple(self, requested: int) -> bool:
        """Whether the row has only one layout, on one kind of nodes, for one time."""
        return bool(self.candidates.simple[requested])

    def bound(self, requested: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which rows are bound by limits, FreePools or licences, as booked."""
        choices, indptr = self.candidates.choices, self.candidates.terms.indptr
        at = choices.numbers(self.candidates_of(requested), self.states.position[requested])
        closed = [bool(choices.job_closures[choice]) for choice in at.tolist()]
        bound: NDArray[np.bool_] = (np.diff(indptr)[at] > 0) | np.array(closed, dtype=bool)
        return bound

    def layout_choice(self, requested: int) -> tuple[int, Layout]:
        """The layout of a booked row, and which of those for any start; one past the last: none."""
        candidate, position = self.candidate(requested), int(self.states.position[requested])
        choices = self.candidates.choices
        return choices.index(candidate, position), choices.layouts[
            choices.which[candidate] + position
        ]

    def later(self) -> NDArray[np.bool_]:
        """(n_plannable,) which rows are booked at a later start than now."""
        start_s = self.states.start_s
        later: NDArray[np.bool_] = (start_s != NEVER) & (start_s > self.now_s)
        return later

    def earliest(self, requested: int) -> tuple[int, int]:
        """Finds where an unbooked row would start without its deadline or fixed start.

        Returns:
            The start, NEVER if there is none, and the time limit there.
        """
        begin_s = max(self.not_before_s(requested), self.now_s)
        found = self.search.earliest(requested, begin_s, NEVER - 1, bound=False)
        if found is None:
            return NEVER, 0
        return found.start_s, int(self.candidates.length_s[found.choice.candidate])

    def waiting(self) -> WaitingRows:
        """The plannable rows that do not start now, and where they stand."""
        booked, refused = self.states, self.candidates.refused
        requested = np.flatnonzero(booked.start_s != self.now_s)
        candidate = self.candidates_of(requested)
        nodes = self.candidates.requested_nodes(candidate)
        return WaitingRows(
            index=requested,
            candidate=candidate,
            start_s=booked.start_s[requested],
            blocked=booked.blocked[requested],
            constraint=booked.constraint[requested],
            partition=self.rows.alternatives.partition[candidate],
            nodes=np.where(refused[requested], 0, nodes),
            refused=refused[requested],
            passed_over=booked.passed_over[requested],
        )

    def refusal(self, candidate: int) -> Reason | None:
        """Why limits refuse a candidate."""
        return self.candidates.choices.refusal(candidate)

    def kept_out(self, requested: int) -> tuple[Closure, ...]:
        """The FreePools of nodes that keep a row out; see `StartSearch.kept_out`."""
        found = self.search.kept_out(requested)
        if found:
            self.states.blocked[requested] = Blocked.NEVER_NODES
        return found

    def counts_on(self, candidate: NDArray[np.int64], constraint: int) -> NDArray[np.int64]:
        """(n, 2) what the first layouts of candidates count on a constraint, and how long, s.

        Args:
            candidate: (n,) none of them refused.
        """
        terms, choices = self.candidates.terms, self.candidates.choices
        number = choices.numbers(candidate).copy()
        for at in np.flatnonzero(choices.hopeless[number]).tolist():
            number[at] = choices.first(int(candidate[at])).number
        indptr, take = gather(terms.indptr, number)
        amounts = np.where(terms.constraint[take] == constraint, terms.amount[take], 0)
        before = np.concatenate(([0], np.cumsum(amounts)))[indptr]
        return np.column_stack((np.diff(before), self.candidates.length_s[candidate]))

    def counted_on(
        self, constraint: int
    ) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The booked rows that count on a constraint, their starts, ends, and amounts."""
        requested, terms = np.flatnonzero(self.states.start_s != NEVER), self.candidates.terms
        candidate = self.candidates_of(requested)
        number = self.candidates.choices.numbers(candidate, self.states.position[requested])
        indptr, take = gather(terms.indptr, number)
        mine = np.flatnonzero(terms.constraint[take] == constraint)
        row = np.repeat(np.arange(len(requested)), np.diff(indptr))[mine]
        start_s = self.states.start_s[requested[row]]
        end_s = start_s + self.candidates.length_s[candidate[row]]
        return requested[row], start_s, end_s, terms.amount[take[mine]]

    def bookings(self) -> tuple[NDArray[np.intp], Bookings]:
        """The booked rows, and where; for `result` and `placements_of`, after all passes."""
        booked = np.flatnonzero(self.states.start_s != NEVER)
        return booked, self.book.bookings(job=self.number[booked])

    def placements_of(
        self,
        requested: NDArray[np.intp],
        known: tuple[NDArray[np.intp], Bookings] | None = None,
    ) -> PlacementColumns:
        """The placements of booked rows, to be kept.

        Args:
            known: what `bookings` returns, if the caller has it.
        """
        booked, choices = self.states, self.candidates.choices
        if known is not None and np.array_equal(requested, known[0]):
            found = known[1]
        else:
            found = self.book.bookings(job=self.number[requested])
        candidate, position = self.candidates_of(requested), booked.position[requested]
        layout_at, layout = by_appearance(choices.which[candidate] + position)
        layouts = (choices.which[candidate] + position)[layout_at].tolist()
        constraint = booked.constraint[requested]
        key_at, key = by_appearance(constraint)
        return PlacementColumns(
            start_s=found.start,
            alternative=booked.alternative[requested],
            layout_index=np.minimum(position, choices.n_min[candidate]).astype(np.int32),
            layout=layout,
            late=booked.late[requested],
            blocked=booked.blocked[requested],
            constraint=key,
            indptr=found.indptr,
            nodes=found.nodes,
            groups=found.groups,
            chunks=found.chunks,
            layouts=tuple(choices.layouts[at] for at in layouts),
            constraint_keys=tuple(
                self.cluster.constraint_key(at) for at in constraint[key_at].tolist()
            ),
        )

    def result(
        self,
        policy: str,
        *,
        beyond: bool = False,
        known: tuple[NDArray[np.intp], Bookings] | None = None,
    ) -> Plan:
        """The plan.

        Args:
            beyond: see `chosen`.
            known: what `bookings` returns, if the caller has it.
        """
        booked, found = self.bookings() if known is None else known
        choices = self.candidates.choices
        layout = choices.which[self.candidates_of(booked)] + self.states.position[booked]
        placed = PlanColumns(choices.layouts, layout, found)
        width = np.zeros(len(self.rows.plannable), dtype=np.int64)
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
