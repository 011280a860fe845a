# SPDX-License-Identifier: Apache-2.0
"""Finds where a job's variants could start, with all other placements of a plan unchanged."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import Hold
from bridge.model.plan import Plan
from bridge.model.reasons import Reason
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.alternatives import Alternative, Eligibility
from bridge.planning.explain.changes import Variants
from bridge.planning.queue.layout_options import Layout
from bridge.planning.queue.layouts import layouts
from bridge.planning.queue.time_windows import latest_start_s
from bridge.planning.scheduler.book_without_job import book_plan
from bridge.planning.scheduler.cluster_book import BookTerms, ClusterBook
from bridge.planning.scheduler.layout_choices import (
    WholeNodes,
    extent_of,
    layouts_to_try,
    varied,
)
from bridge.planning.scheduler.layout_weights import LayoutAmounts
from bridge.planning.site_rules.capacity_constraints import Mode
from bridge.planning.site_rules.freepools import Closure
from bridge.planning.site_rules.lowered_rules import Extent, lower
from bridge.ports import Conditions
from bridge.units import NEVER, UNPLANNED

MAX_POOLS = 16
"""Maximum number of FreePools of nodes tried one by one."""


@dataclass(frozen=True, slots=True)
class VariantPlacement:
    start_s: int
    length_s: int
    alternative: Alternative
    layout: Layout
    nodes: NDArray[np.int32]
    groups: NDArray[np.int32]
    chunks: NDArray[np.int32]


class VariantSearch:
    """One job's variants against a book of all other jobs.

    Attributes:
        snapshot: the cluster, without the variants.
        variants: the alternative requests.
    """

    def __init__(self, snapshot: Snapshot, plan: Plan, job: int, conditions: Conditions) -> None:
        self.snapshot, self.job = snapshot, job
        self.variants = Variants(snapshot, job)
        self._with = self.variants.snapshot
        self._eligibility = Eligibility(self._with)
        self._lowered = lower(conditions.site, self._with)
        self._cluster = ClusterBook(
            self._with,
            self._eligibility,
            np.zeros(len(snapshot.nodes), dtype=np.int32),
            lowered=self._lowered,
            protect=conditions.site.protect,
        )
        book_plan(self._cluster, self._lowered, self._with, plan, without=job)
        jobs = snapshot.jobs
        self.begin_s = snapshot.now_s
        if jobs.hold[job] == Hold.BEGIN_TIME or jobs.fixed[job]:
            self.begin_s = max(self.begin_s, int(jobs.begin_s[job]))
        self.latest_s = NEVER - 1
        if conditions.horizon_s is not None:
            self.latest_s = snapshot.now_s + conditions.horizon_s
        if (reservation := int(jobs.reservation[job])) >= 0:
            self.latest_s = min(self.latest_s, snapshot.reservations[reservation].end_s - 1)
        if conditions.period_s is not None:
            self.begin_s, self.latest_s = self._window(conditions.period_s)
        if not conditions.sure:
            self.latest_s = self.begin_s - 1
        self._only_now = not conditions.whole_queue and conditions.period_s is None
        self._layouts: dict[tuple[int, int], tuple[Layout, ...]] = {}
        self._nodes = WholeNodes(self._with, self._eligibility, self._lowered)
        self._amounts = LayoutAmounts(self._with, self._eligibility, self._lowered.bounds)

    def present_s(self, planned_s: int) -> int:
        """The start that a change must improve on (rule 4).

        Args:
            planned_s: the job's start in the plan.
        """
        if planned_s in (NEVER, UNPLANNED):
            planned_s = self.snapshot.now_s + 1 if self._only_now else NEVER
        return min(planned_s, self.start_s(self.variants.plain(), planned_s))

    def _window(self, period_s: int) -> tuple[int, int]:
        """The earliest and the latest start in the next window; the present one has passed."""
        now_s = self.snapshot.now_s
        at_s = (now_s // period_s + 1) * period_s if period_s else now_s
        return max(self.begin_s, at_s), min(self.latest_s, at_s)

    def limit_s(self) -> int:
        """The job's time limit, its own or that of its partitions."""
        own = int(self.snapshot.jobs.time_limit_s[self.job])
        found = self._alternatives(self.variants.plain())
        if own or isinstance(found, Reason):
            return own
        return max(alternative.time_limit_s for alternative in found)

    def start_s(self, row: int, below_s: int, limit_s: int = 0) -> int:
        """The earliest start of a variant before `below_s`; NEVER: none. Arguments as `place`."""
        found = self.place(row, below_s, limit_s)
        return NEVER if found is None else found.start_s

    def pools(self, below_s: int) -> tuple[int, tuple[Closure, ...]]:
        """The FreePools of nodes that keep the unchanged job from an earlier start.

        Args:
            below_s: the start to improve on.

        Returns:
            The start with access, and as few pools as that takes. NEVER and none, if access
            brings no earlier start.
        """
        closures, row = self._lowered.closures, self.variants.plain()
        needed = frozenset(range(len(closures)))
        found = self.place(row, below_s, without=needed) if closures else None
        if found is None:
            return NEVER, ()
        for at in range(min(len(closures), MAX_POOLS)):
            fewer = self.place(row, below_s, without=needed - {at})
            if fewer is not None and fewer.start_s == found.start_s:
                needed -= {at}
        return found.start_s, tuple(closures[at] for at in sorted(needed))

    def place(
        self, row: int, below_s: int, limit_s: int = 0, *, without: frozenset[int] = frozenset()
    ) -> VariantPlacement | None:
        """The earliest placement of a variant.

        Args:
            row: the row of a variant; with `limit_s` a short one.
            below_s: starts from then on are too late.
            limit_s: its time limit; 0: as in the row.
            without: closures to ignore.
        """
        alternatives = self._alternatives(row)
        if isinstance(alternatives, Reason):
            return None
        best: VariantPlacement | None = None
        for at, alternative in enumerate(alternatives):
            max_s = self.snapshot.partitions[alternative.partition].max_time_s
            if limit_s and max_s and limit_s > max_s:
                continue
            length_s = limit_s or alternative.time_limit_s
            for layout in self._layouts_of(row, at, alternative):
                until_s = min(below_s - 1, self._latest_s(row, length_s))
                if best is not None:
                    until_s = min(until_s, best.start_s - 1)
                found = self._find(row, alternative, layout, length_s, until_s, without=without)
                best = found or best
        return best

    def _alternatives(self, row: int) -> tuple[Alternative, ...] | Reason:
        return self._eligibility.alternatives(np.array([row], dtype=np.int64))[0]

    def _layouts_of(self, row: int, at: int, alternative: Alternative) -> tuple[Layout, ...]:
        found = self._layouts.get((row, at))
        if found is None:
            options = layouts(self._with, self._eligibility, row, alternative)
            whole = self._whole_nodes(row, alternative)
            found = self._layouts[row, at] = layouts_to_try(options, self._lowered, whole)[0]
        return found

    def _whole_nodes(self, row: int, alternative: Alternative) -> WholeNodes | None:
        """The nodes of other sizes, if a rule counts what the job takes of them."""
        one = np.array([row]), np.array([alternative.partition])
        return self._nodes if bool(varied(self._lowered, *one)[0]) else None

    def _extent(self, row: int, alternative: Alternative, layout: Layout) -> Extent:
        one = np.array([row]), np.array([alternative.partition])
        whole = self._lowered.takes_whole(*one)
        weighed = self._nodes if self._lowered.weighs_nodes and whole[0] else None
        return extent_of([layout], weighed, self._amounts.maximum([layout], one[0], whole))

    def _latest_s(self, row: int, length_s: int) -> int:
        """The latest start that horizon, reservation, deadline and fixed start allow."""
        bound = latest_start_s(
            self._with.jobs, np.array([row]), np.array([length_s]), self.snapshot.now_s
        )
        return min(self.latest_s, int(bound[0]))

    def _find(
        self,
        row: int,
        alternative: Alternative,
        layout: Layout,
        length_s: int,
        until_s: int,
        *,
        without: frozenset[int],
    ) -> VariantPlacement | None:
        if until_s < self.begin_s:
            return None
        requested = (
            np.array([row], dtype=np.int64),
            np.array([alternative.partition], dtype=np.int64),
            np.array([length_s], dtype=np.int64),
            self._extent(row, alternative, layout),
        )
        terms = self._lowered.terms(*requested)
        if terms.reasons[0] is not None:
            return None
        job_closures = self._lowered.closed_to(*requested)[0]
        job_closures = tuple(each for each in job_closures if each.closure not in without)
        jobs = self._with.jobs
        terms = self._cluster.licences.add_terms(
            terms, jobs.licences[requested[0]], Mode.BOTH, jobs.reservation[requested[0]]
        )
        own: BookTerms = (terms.constraint, terms.amount, terms.mode)
        request = self._cluster.request(layout, job_closures)
        found = self._cluster.book.find(request, length_s, own, self.begin_s, until_s)
        return (
            None
            if found is None
            else VariantPlacement(found[0], length_s, alternative, layout, *found[1:])
        )
