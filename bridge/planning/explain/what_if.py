# SPDX-License-Identifier: Apache-2.0
"""Finds changes that would let a waiting job start earlier, with a book of all other jobs.

    for change in what_if(snapshot, plan, row, conditions):
        change.start_s, change.options, change.text

Terms
    present     the start that the job has in the plan, or could have unchanged. A change must
                improve on it.
    change      a shorter time limit, a smaller size, another partition; see
                `bridge.planning.explain.changes`.

Rules
    1. All other rows of the plan keep their placements. A reported change is feasible at that
       second on nodes and under licences, limits and FreePools.
    2. Reported are the longest time limit and the largest size with an earlier start, the longest
       and the largest with a start now, and each other partition with an earlier start. Time
       limits are whole steps (minutes).
    3. Combinations of two changes are tried only if no single one helps.
    4. Only starts that the policy keeps are reported. For a job beyond the reservation depth, or
       without any placement, that is a start now. Where jobs start at the ends of periods, it is a
       start in the next window, and none if a window may reject jobs that fit.
    5. All tasks of an array change alike; the start is that of the first one.
    6. A held job has no changes.
    7. FreePools of nodes that keep the job from an earlier start come last, as users cannot change
       their access.

Best first: the earliest start; of equal ones another partition, then the time limit, then the size.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bridge.dialect import dialect_of
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.planning.explain.changes import JobChange, describe, let_in
from bridge.planning.explain.variant_search import VariantSearch
from bridge.planning.prediction.apply_predictions import as_planned
from bridge.planning.queue.rows import plannable
from bridge.ports import Conditions

MAX_CHANGES = 5


def can_change(snapshot: Snapshot, plan: Plan, row: int) -> bool:
    """Whether a row of a plan waits for something that a change of the job could avoid."""
    jobs, job = snapshot.jobs, int(plan.job[row])
    return int(plan.start_s[row]) != snapshot.now_s and bool(plannable(jobs)[job])


def what_if(
    snapshot: Snapshot,
    plan: Plan,
    row: int,
    conditions: Conditions | None = None,
    *,
    step_s: int | None = None,
) -> tuple[JobChange, ...]:
    """Looks for the smallest changes that let a job start earlier.

    Args:
        row: the row of the plan; for an array that of its earliest task.
        conditions: conditions of the plan; None: nodes and licences only.
        step_s: new time limits are multiples of this; None: as users state them.

    Returns:
        At most `MAX_CHANGES`, best first, and FreePools; empty: none helps, or none is searched.
    """
    if not can_change(snapshot, plan, row):
        return ()
    snapshot = as_planned(snapshot, plan)
    step_s = step_s or dialect_of(snapshot).words.time_step_s
    search = VariantSearch(snapshot, plan, int(plan.job[row]), conditions or Conditions())
    below_s = search.present_s(int(plan.start_s[row]))
    changes = _single(search, below_s, step_s) or _pairs(search, below_s, step_s)
    ordered = sorted(changes, key=lambda c: (c.start_s, c.partition < 0, c.size, -c.time_limit_s))
    start_s, pools = search.pools(below_s)
    return (*ordered[:MAX_CHANGES], *((let_in(start_s, pools),) if pools else ()))


def _single(search: VariantSearch, below_s: int, step_s: int) -> list[JobChange]:
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


def _limits(search: VariantSearch, row: int, below_s: int, step_s: int) -> list[tuple[int, int]]:
    """The longest time limits that bring an earlier start, and a start now; with the starts.

    Args:
        below_s: the start to improve on.
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


def _pairs(search: VariantSearch, below_s: int, step_s: int) -> list[JobChange]:
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
