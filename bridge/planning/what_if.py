# SPDX-License-Identifier: Apache-2.0
"""What would let a waiting job start earlier: asked of a book that holds everything but this job.

    for change in what_if(snapshot, plan, row, conditions):
        change.start_s, change.options, change.text

Words
    present     the start that the job has in the plan, or could have as it is. Earlier than that
                is what helps.
    change      a shorter time limit, a smaller size, another partition; see
                `bridge.planning.changes`.

Rules
    1. All other rows of the plan stay where they are. A change that is told holds at that second
       on nodes and under licences, limits and FreePools.
    2. Told are the longest time limit and the largest size that bring an earlier start, the
       longest and the largest that bring a start now, and each other partition that brings an
       earlier start. Time limits are whole steps (minutes).
    3. Two changes together are looked for only if no single one helps.
    4. A job beyond the reservation depth has no place in the plan, and others may come before it:
       only a start now is told, for that is taken at once.
    5. Of an array all tasks change alike; what is told is the start of its first one.
    6. A job that is held, or that the policy cannot plan, is not looked at.

Best first: the earliest start; of equal ones another partition, then the time limit, then the size.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import Hold
from bridge.model.limits import Rules
from bridge.model.plan import Plan
from bridge.model.reasons import Reason
from bridge.model.snapshot import Snapshot
from bridge.planning.ceilings import Mode
from bridge.planning.changes import Change, Variants, describe
from bridge.planning.cluster_book import BookTerms, ClusterBook, Protection
from bridge.planning.eligibility import Alternative, Eligibility
from bridge.planning.kinds import latest_start_s
from bridge.planning.layouts import Layout, layouts
from bridge.planning.plan_book import book_plan
from bridge.planning.rows import MIXED, plannable
from bridge.planning.rules import lower
from bridge.units import DAY_S, NEVER, UNPLANNED

MOST_CHANGES = 5
STEP_S = 60
"""Time limits are told in Slurm's own steps."""


@dataclass(frozen=True)
class Conditions:
    """What a policy holds its plans to, beyond nodes and licences.

    Attributes:
        rules: limits and FreePools.
        cron_s: how far repeated validities are looked at.
        horizon_s: no start later than so many seconds from now; None: no bound.
        protect: what nodes keep for jobs with a protected resource.
        whole_queue: every row that can have a place has one, however low its priority.
    """

    rules: Rules = field(default_factory=Rules)
    cron_s: int = DAY_S
    horizon_s: int | None = None
    protect: Protection | None = None
    whole_queue: bool = False


@runtime_checkable
class HasConditions(Protocol):
    """A plan stage that says under which conditions it plans."""

    @property
    def conditions(self) -> Conditions:
        """The same for as long as the stage lives."""


def can_change(snapshot: Snapshot, plan: Plan, row: int) -> bool:
    """Whether a row of a plan waits for something that a change of the job could spare it."""
    jobs, job = snapshot.jobs, int(plan.job[row])
    return (
        int(plan.start_s[row]) != snapshot.now_s
        and bool(plannable(jobs)[job])
        and plan.reasons[row] != MIXED
    )


def what_if(
    snapshot: Snapshot,
    plan: Plan,
    row: int,
    conditions: Conditions | None = None,
    *,
    step_s: int = STEP_S,
) -> tuple[Change, ...]:
    """Looks for the nearest changes that let a job start earlier.

    Args:
        snapshot: the world.
        plan: made for it.
        row: of the plan; for an array that of its earliest task.
        conditions: of the policy that planned; None: nodes and licences only.
        step_s: of time limits.

    Returns:
        At most `MOST_CHANGES`, best first; empty: none helps, or none is looked for.
    """
    if not can_change(snapshot, plan, row):
        return ()
    search = Search(snapshot, plan, int(plan.job[row]), conditions or Conditions())
    below_s = search.present_s(int(plan.start_s[row]))
    changes = _single(search, below_s, step_s) or _pairs(search, below_s, step_s)
    ordered = sorted(changes, key=lambda c: (c.start_s, c.partition < 0, c.size, -c.time_limit_s))
    return tuple(ordered[:MOST_CHANGES])


@dataclass(frozen=True, slots=True)
class Place:
    """Where a variant could lie.

    Attributes:
        start_s, length_s: when.
        alternative, layout: how.
        nodes, groups, chunks: as the book has them.
    """

    start_s: int
    length_s: int
    alternative: Alternative
    layout: Layout
    nodes: NDArray[np.int32]
    groups: NDArray[np.int32]
    chunks: NDArray[np.int32]


class Search:
    """One job's variants against a book of everything else.

    Attributes:
        snapshot: the world, without the variants.
        job: row of its jobs.
        variants: what could be asked instead.
    """

    def __init__(self, snapshot: Snapshot, plan: Plan, job: int, conditions: Conditions) -> None:
        self.snapshot, self.job = snapshot, job
        self.variants = Variants(snapshot, job)
        self._with = self.variants.snapshot
        self._eligibility = Eligibility(self._with)
        self._lowered = lower(conditions.rules, self._with, conditions.cron_s)
        self._whole_queue = conditions.whole_queue
        self._cluster = ClusterBook(
            self._with,
            self._eligibility,
            np.zeros(len(snapshot.nodes), dtype=np.int32),
            lowered=self._lowered,
            protect=conditions.protect,
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
        self._layouts: dict[tuple[int, int], tuple[Layout, ...]] = {}

    def present_s(self, planned_s: int) -> int:
        """What is to be beaten (rule 4).

        Args:
            planned_s: the job's start in the plan.
        """
        refused = isinstance(self._alternatives(self.variants.plain()), Reason)
        if planned_s == UNPLANNED:
            beyond = not refused and not self._whole_queue
            planned_s = self.snapshot.now_s + 1 if beyond else NEVER
        return min(planned_s, self.start_s(self.variants.plain(), planned_s))

    def limit_s(self) -> int:
        """The time limit that the job has, by its own words or its partitions'."""
        own = int(self.snapshot.jobs.time_limit_s[self.job])
        found = self._alternatives(self.variants.plain())
        if own or isinstance(found, Reason):
            return own
        return max(alternative.time_limit_s for alternative in found)

    def start_s(self, row: int, below_s: int, limit_s: int = 0) -> int:
        """The earliest start of a variant before `below_s`; NEVER: none. Arguments as `place`."""
        found = self.place(row, below_s, limit_s)
        return NEVER if found is None else found.start_s

    def place(self, row: int, below_s: int, limit_s: int = 0) -> Place | None:
        """Where a variant starts earliest.

        Args:
            row: of a variant; with `limit_s` a short one.
            below_s: from then on is too late.
            limit_s: its time limit; 0: as it stands there.
        """
        alternatives = self._alternatives(row)
        if isinstance(alternatives, Reason):
            return None
        best: Place | None = None
        for at, alternative in enumerate(alternatives):
            most_s = self.snapshot.partitions[alternative.partition].max_time_s
            if limit_s and most_s and limit_s > most_s:
                continue
            length_s = limit_s or alternative.time_limit_s
            for layout in self._layouts_of(row, at, alternative):
                until_s = min(below_s - 1, self._latest_s(row, length_s))
                if best is not None:
                    until_s = min(until_s, best.start_s - 1)
                best = self._find(row, alternative, layout, length_s, until_s) or best
        return best

    def _alternatives(self, row: int) -> tuple[Alternative, ...] | Reason:
        return self._eligibility.alternatives(np.array([row], dtype=np.int64))[0]

    def _layouts_of(self, row: int, at: int, alternative: Alternative) -> tuple[Layout, ...]:
        found = self._layouts.get((row, at))
        if found is None:
            ways = layouts(self._with, self._eligibility, row, alternative)
            found = self._layouts[row, at] = ways.least
        return found

    def _latest_s(self, row: int, length_s: int) -> int:
        """The latest start that horizon, reservation, deadline and fixed start allow."""
        bound = latest_start_s(
            self._with.jobs, np.array([row]), np.array([length_s]), self.snapshot.now_s
        )
        return min(self.latest_s, int(bound[0]))

    def _find(
        self, row: int, alternative: Alternative, layout: Layout, length_s: int, until_s: int
    ) -> Place | None:
        if until_s < self.begin_s:
            return None
        asked = (
            np.array([row], dtype=np.int64),
            np.array([alternative.partition], dtype=np.int64),
            np.array([length_s], dtype=np.int64),
            np.array([layout.nodes], dtype=np.int64),
        )
        terms = self._lowered.terms(*asked)
        if terms.reasons[0] is not None:
            return None
        shut: tuple[int, ...] = ()
        if self._lowered.closures:
            shut = tuple(np.flatnonzero(self._lowered.closed_to(*asked)[0]).tolist())
        terms = self._cluster.with_licences(terms, self._with.jobs.licences[asked[0]], Mode.BOTH)
        own: BookTerms = (terms.ceiling, terms.amount, terms.mode)
        request = self._cluster.request(layout, shut)
        found = self._cluster.book.find(request, length_s, own, self.begin_s, until_s)
        return None if found is None else Place(found[0], length_s, alternative, layout, *found[1:])


def _single(search: Search, below_s: int, step_s: int) -> list[Change]:
    """One change each (rule 2)."""
    variants, snapshot, job = search.variants, search.snapshot, search.job
    changes = []
    for which, partition in enumerate(variants.partitions):
        start_s = search.start_s(variants.in_partition(which), below_s)
        if start_s < below_s:
            changes.append(describe(snapshot, job, start_s, partition=partition))
    row = variants.plain(short=True)
    for limit_s, start_s in _limits(search, row, below_s, step_s):
        changes.append(
            describe(snapshot, job, start_s, time_limit_s=limit_s, before_s=search.limit_s())
        )
    sizes = variants.sizes
    known: dict[int, int] = {}

    def start_of(at: int) -> int:
        if at not in known:
            known[at] = search.start_s(variants.of_size(at), below_s)
        return known[at]

    for at in _largest_two(len(sizes.values), start_of, below_s, snapshot.now_s):
        size = int(sizes.values[at])
        changes.append(describe(snapshot, job, start_of(at), sizes=sizes, size=size))
    return changes


def _limits(search: Search, row: int, below_s: int, step_s: int) -> list[tuple[int, int]]:
    """The longest time limits that bring an earlier start, and a start now; with the starts.

    Args:
        search: the book.
        row: of a short variant.
        below_s: what is to be beaten.
        step_s: of time limits.
    """
    known: dict[int, int] = {}

    def start_of(at: int) -> int:
        if at not in known:
            known[at] = search.start_s(row, below_s, (at + 1) * step_s)
        return known[at]

    count = max(search.limit_s() - 1, 0) // step_s
    best = _largest_two(count, start_of, below_s, search.snapshot.now_s)
    return [((at + 1) * step_s, start_of(at)) for at in best]


def _largest_two(count: int, start_of: Callable[[int], int], below_s: int, now_s: int) -> list[int]:
    """The largest of `count` ascending values that starts before `below_s`, and that starts now."""
    earlier = _largest(count, lambda at: start_of(at) < below_s)
    if earlier < 0:
        return []
    now = _largest(earlier + 1, lambda at: start_of(at) <= now_s)
    return [earlier] if now in (-1, earlier) else [earlier, now]


def _largest(count: int, helps: Callable[[int], bool]) -> int:
    """The largest position that helps and whose next one does not; -1: the first does not."""
    if count == 0 or not helps(0):
        return -1
    low, high = 0, count
    while high - low > 1:
        middle = (low + high) // 2
        if helps(middle):
            low = middle
        else:
            high = middle
    return low


def _pairs(search: Search, below_s: int, step_s: int) -> list[Change]:
    """Two changes together: a shorter time limit, and another partition or a halved size."""
    variants, snapshot, job = search.variants, search.snapshot, search.job
    before_s, changes = search.limit_s(), []
    for which, partition in enumerate(variants.partitions):
        row = variants.in_partition(which, short=True)
        for limit_s, start_s in _limits(search, row, below_s, step_s)[:1]:
            changes.append(
                describe(
                    snapshot, job, start_s,
                    time_limit_s=limit_s, before_s=before_s, partition=partition,
                )
            )  # fmt: skip
    sizes = variants.sizes
    for at in _halved(sizes.values, sizes.own):
        row = variants.of_size(at, short=True)
        found = _limits(search, row, below_s, step_s)[:1]
        for limit_s, start_s in found:
            changes.append(
                describe(
                    snapshot, job, start_s, time_limit_s=limit_s, before_s=before_s,
                    sizes=sizes, size=int(sizes.values[at]),
                )
            )  # fmt: skip
        if found:
            break
    return changes


def _halved(values: NDArray[np.int64], own: int) -> list[int]:
    """Positions of the largest values that are a half, a quarter ... of a job's own."""
    found: list[int] = []
    while own > 1:
        own //= 2
        at = int(np.searchsorted(values, own, side="right")) - 1
        if at >= 0 and at not in found:
            found.append(at)
    return found
