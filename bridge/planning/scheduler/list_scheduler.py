# SPDX-License-Identifier: Apache-2.0
"""Plans jobs in a given order: the common core of plan policies.

    scheduler = ListScheduler(snapshot, order, preference, conditions)
    schedule = scheduler.schedule()                 # in the stage order
    schedule = scheduler.schedule(other)            # in any other order, from scratch
    plan = scheduler.plan("search")               # the plan of the last one, with reasons
    scheduler.decode()                            # only for `plan`, in the stage order

Terms
    position    of a row among those that can be planned, 0 to `len(scheduler) - 1`, in the stage
                order; arrays are rows of one task each (`bridge.planning.queue.rows`).
    to decode   to give each row in turn its earliest start, given the running jobs and the rows
                before it, so that a permutation of positions represents a schedule.

Rules
    1. All constraints on a job hold under every policy: chunks of any kinds and their place,
       required and excluded nodes, reservations, licences, begin times, deadlines, fixed starts,
       and the limits, FreePools and protections of the site.
    2. Rows with a fixed start come before all others and do not count in the depth: they start at
       their time or not at all, so rows with a choice must not take their slots.
    3. A row that can only start too late for its deadline, its fixed start, or the end of its
       reservation is not booked.
    4. Rows of jobs that are not yet eligible come after all others, in any order
       (`bridge.planning.queue.time_windows`, rule 5).
    5. Decoding the same order always gives the same schedule.

There are two kernels. `plan_nodes` (`bridge.planning.scheduler.single_pass_planner`) plans
snapshots in which no job requests chunks of several kinds or a licence held by a reservation, and
no rule binds a job; the book (`bridge.planning.scheduler.book_planner`) plans all others.
docs/design/0005-kernels.md says why, and where their schedules may differ.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bridge.core import NodeProblem
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.planning.queue.rows import Rows, expand_arrays
from bridge.planning.queue.time_windows import end_s as ends
from bridge.planning.queue.time_windows import not_yet_eligible, requested_time_limit_s
from bridge.planning.scheduler.book_planner import BookPlanner
from bridge.planning.scheduler.single_pass_planner import SinglePassPlanner
from bridge.planning.scheduler.wait_reasons import explain
from bridge.planning.site_rules.capacity_constraints import Mode
from bridge.planning.site_rules.lowered_rules import Extent, LoweredRules, lower
from bridge.ports import Conditions, Preference
from bridge.units import NEVER, UNPLANNED


@dataclass(frozen=True)
class Schedule:
    """The result of decoding an order, by position.

    Attributes:
        start_s: NEVER: none; UNPLANNED: beyond the depth.
        alternative: index among the row's own (`Rows.alternatives`); -1: none.
    """

    rows: Rows
    start_s: NDArray[np.int64]
    alternative: NDArray[np.int32]

    @cached_property
    def end_s(self) -> NDArray[np.int64]:
        """The latest end of each row; 0 without a start."""
        rows, end_s = self.rows, np.zeros_like(self.start_s)
        at = np.flatnonzero((self.start_s != NEVER) & (self.start_s != UNPLANNED))
        chosen = rows.alternatives.chosen(self.alternative)[at]
        limit_s = rows.alternatives.time_limit_s[chosen]
        end_s[at] = ends(
            rows.snapshot.jobs, rows.job[rows.plannable[at]], self.start_s[at], limit_s
        )
        return end_s


class ListScheduler:
    """One cycle's rows, to be planned in any order, any number of times.

    Attributes:
        rows: the rows of the cycle; `rows.plannable` are those with a position.
        by_book: whether the book plans them, not `plan_nodes`.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        preference: Preference,
        conditions: Conditions,
        *,
        array_depth: int = 1000,
        by_book: bool = False,
    ) -> None:
        """Separates the rows that can be planned from the others, and chooses the kernel.

        Args:
            order: (n_jobs,) rows of `snapshot.jobs`, as the stage order gives them.
            conditions: that the plan must meet.
            array_depth: tasks of one array planned at a time.
            by_book: use the book even if `plan_nodes` could plan them.

        Raises:
            ValueError: a kernel refuses a column of the snapshot; the text names it.
        """
        self.rows = Rows(snapshot, expand_arrays(snapshot.jobs, order, array_depth))
        self._preference, self._conditions = preference, conditions
        fixed = snapshot.jobs.fixed
        self._fixed = fixed[self.rows.job[self.rows.plannable]] if np.count_nonzero(fixed) else None
        early = not_yet_eligible(snapshot.jobs, snapshot.now_s)
        self._early = early[self.rows.job[self.rows.plannable]] if np.count_nonzero(early) else None
        site = conditions.site
        rules = site.rules
        bound = bool(rules.limits or rules.free_pools or site.binds_starts)
        self.by_book = bool(
            by_book
            or site.protect
            or conditions.horizon_s is not None
            or _several_kinds(self.rows)
            or _reserved_licences(self.rows)
            or (bound and _binds(self._lowered, self.rows))
        )
        self._single_pass = SinglePassPlanner(self.rows, preference)
        self._book_planner = self._new_book_planner() if self.by_book else None
        self._decoded = 0
        self._planned = False

    def __len__(self) -> int:
        """How many rows can be planned."""
        return len(self.rows.plannable)

    @cached_property
    def job(self) -> NDArray[np.int64]:
        """(n,) row of `snapshot.jobs`, by position."""
        return self.rows.job[self.rows.plannable]

    @cached_property
    def length_s(self) -> NDArray[np.int64]:
        """(n,) predicted run time on the first alternative, by position."""
        alternatives = self.rows.alternatives
        return alternatives.time_limit_s[alternatives.indptr[:-1]]

    @cached_property
    def min_nodes(self) -> NDArray[np.int64]:
        """(n,) the smallest width on the first alternative, by position."""
        alternatives = self.rows.alternatives
        return alternatives.min_nodes[alternatives.indptr[:-1]]

    def schedule(
        self, order: NDArray[np.int64] | None = None, *, depth: int | None = None
    ) -> Schedule:
        """Plans all rows from scratch.

        Args:
            order: a permutation of the positions, first planned first; None: the stage order.
            depth: how many rows may hold a planned start later than now. Later rows start now or
                are UNPLANNED. None: all.
        """
        order = self._in_rank(order)
        if self._book_planner is None:
            start, alternative = self._single_pass.solve(order, depth)
        else:
            start, alternative = self._book(order, depth)
        return Schedule(self.rows, start, alternative)

    def decode(self, *, depth: int | None = None) -> None:
        """Plans all rows in the stage order, for callers that only need `plan`."""
        order = self._in_rank(None)
        if self._book_planner is None:
            self._single_pass.decode(order, depth)
        else:
            self._book(order, depth)

    def _in_rank(self, order: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
        """The order with rules 2 and 4 applied; None: the stage order, which already obeys them."""
        if self._fixed is None and self._early is None:
            return order
        rank = np.ones(len(self), dtype=np.int8)
        if self._fixed is not None:
            rank[self._fixed] = 0
        if self._early is not None:
            rank[self._early] = 2
        ranked = rank if order is None else rank[order]
        if (ranked[1:] >= ranked[:-1]).all():
            return order
        by_rank = np.argsort(ranked, kind="stable")
        return by_rank if order is None else order[by_rank]

    def problem(self, order: NDArray[np.int64]) -> NodeProblem:
        """What `plan_nodes` plans for some positions in this order, for similar kernels.

        It describes every constraint on these rows, unless the book plans (`by_book`).
        """
        return self._single_pass.problem(order)

    def plan(self, policy: str) -> Plan:
        """The plan of the last order decoded, with the reason of every row that waits."""
        if self._planned:
            for row in self.rows.plannable.tolist():
                self.rows.reasons[row] = None  # of an order decoded before
        self._planned = True
        if self._book_planner is None:
            return self._single_pass.plan(policy)
        horizon_s = self._conditions.horizon_s
        planned = self._book_planner.planned
        explain(planned, horizon_s)
        return planned.result(policy, beyond=horizon_s is not None)

    @cached_property
    def _lowered(self) -> LoweredRules:
        return lower(self._conditions.site, self.rows.snapshot)

    def _new_book_planner(self) -> BookPlanner:
        return BookPlanner(
            self.rows,
            self._preference,
            lowered=self._lowered,
            protect=self._conditions.site.protect,
        )

    def _book(
        self, order: NDArray[np.int64] | None, depth: int | None
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        if self._decoded == 1:  # the first one has no mark, as most policies decode only one
            self._book_planner = self._new_book_planner()
        planner = self._book_planner
        assert planner is not None
        if self._decoded:
            planner.restart()
        self._decoded += 1
        horizon_s, now_s = self._conditions.horizon_s, self.rows.snapshot.now_s
        order = np.arange(len(self)) if order is None else order
        latest = np.full(len(order), NEVER - 1 if horizon_s is None else now_s + horizon_s)
        fixed = 0 if self._fixed is None else int(np.count_nonzero(self._fixed))
        planner.plan(order[:fixed], not_before=None, latest=latest[:fixed])
        planner.plan(order[fixed:], not_before=None, latest=latest[fixed:], depth=depth)
        return planner.planned.chosen(beyond=horizon_s is not None)


def _several_kinds(rows: Rows) -> bool:
    """Whether a row asks for chunks of several kinds."""
    chunks = rows.snapshot.jobs.chunks
    if not np.count_nonzero(chunks):
        return False
    several = [
        job for job in np.flatnonzero(chunks.astype(bool)) if len(chunks[job].request.kinds) > 1
    ]
    return bool(several) and bool(np.isin(rows.job[rows.plannable], several).any())


def _reserved_licences(rows: Rows) -> bool:
    """Whether a row requests a licence that a reservation holds."""
    kept = [r.licences > 0 for r in rows.snapshot.reservations if len(r.licences)]
    if not kept:
        return False
    wanted = rows.snapshot.jobs.licences[rows.job[rows.plannable]].any(axis=0)
    return bool((wanted & np.any(kept, axis=0)).any())


def _binds(lowered: LoweredRules, rows: Rows) -> bool:
    """Whether a limit or a FreePool can bind any of the rows, on any number of nodes."""
    if not len(lowered.constraints) and not lowered.closures:
        return False
    if lowered.bounds:
        return True
    alternatives = rows.alternatives
    jobs = rows.snapshot.jobs
    job = np.repeat(rows.job[rows.plannable], np.diff(alternatives.indptr))
    limit_s = requested_time_limit_s(jobs, job, alternatives.time_limit_s)
    # Amounts grow with the nodes: if neither the fewest nor the most are bound, no number is.
    minimum = alternatives.min_nodes
    maximum = np.maximum(np.minimum(alternatives.max_nodes, len(rows.snapshot.nodes)), minimum)
    shared = (jobs.tasks[job] > 0) | jobs.chunks[job].astype(bool)
    for extent in (Extent(minimum, np.where(shared, 1, minimum)), Extent(maximum)):
        requested = (job, alternatives.partition, limit_s, extent)
        terms = lowered.terms(*requested)
        if (
            bool((terms.mode != Mode.COUNT).any())
            or any(reason is not None for reason in terms.reasons)
            or any(lowered.closed_to(*requested))
        ):
            return True
    return False
