# SPDX-License-Identifier: Apache-2.0
"""Lends idle nodes to running malleable jobs, and takes them back before the plan needs them.

Terms
    base, lent  as in `bridge.planning.malleable.bases`.
    used from   of a node: when the plan first starts a waiting job on it.

Rules
    1. Lent nodes that the plan uses before a later cycle could take them back are given back now,
       in the order of their use. A job gives back more only if its rule allows no wider width.
    2. An idle node is lent if the plan does not use it for `between_s`.
    3. A job grows only while it gains speed, and only if the gain within `between_s` exceeds the
       cost of the change. So no loan makes a job end later than at its base, even if it is taken
       back right after that time.
    4. Idle nodes go, step by step, to the job that gains most speed per node, weighted by the
       square root of its remaining work. The remaining work of a job that has fewer nodes than
       requested is divided by `fairness`.
    5. The nodes that are used last are lent first.
"""

import heapq
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import WidthRule
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.bases import Costs, allowed
from bridge.planning.malleable.elastic import RULES, ElasticJobs, MalleableJob
from bridge.planning.malleable.expand_shrink import idle_nodes
from bridge.planning.malleable.speed import speed, speeds, widths_for
from bridge.planning.malleable.usable import Usable
from bridge.units import NEVER, UNPLANNED

NONE: Final = 1 << 40

_STEP: Final = 8
"""A step is at least this fraction of a job's width, so that there are few steps."""


def used_from_s(plan: Plan, n_nodes: int) -> NDArray[np.int64]:
    """(n_nodes,) when the plan first starts a job on each node; NEVER: it does not."""
    found = np.full(n_nodes, NEVER, dtype=np.int64)
    has = (plan.start_s != NEVER) & (plan.start_s != UNPLANNED)
    widths = plan.indptr[1:] - plan.indptr[:-1]
    start_s = np.where(has, plan.start_s, NEVER).repeat(widths)
    np.minimum.at(found, plan.nodes, start_s)
    return found


def kept_now(job: MalleableJob, used_s: NDArray[np.int64], by_s: int) -> NDArray[np.int32]:
    """The nodes that a job keeps if it gives nodes back in this cycle (rule 1).

    Args:
        job: one with lent nodes that are used by then, and not adapting.
        used_s: (n_nodes,) when each node is used.
        by_s: when nodes that are given back now will be free.
    """
    lent = job.lent
    width = len(job.nodes) - int(np.count_nonzero(used_s[lent] <= by_s))
    while not job.rule.allows(width) and width > job.base:
        width -= 1
    last_used = lent[np.argsort(-used_s[lent], kind="stable")]
    return np.concatenate((job.nodes[: job.base], last_used[: width - job.base]))


def growths(
    snapshot: Snapshot,
    jobs: ElasticJobs,
    worth: NDArray[np.int64],
    plan: Plan,
    used_s: NDArray[np.int64],
    *,
    costs: Costs,
) -> list[tuple[int, NDArray[np.int32]]]:
    """The jobs that grow (of `jobs`), and the nodes lent to each (rules 2 to 5).

    Args:
        jobs: the running ones.
        worth: (n,) the next width of each that is worth a change; `NONE` for those that adapt or
            shrink, or changed their width within the last hour.
        plan: starts of waiting jobs.
        used_s: (n_nodes,) when the plan uses each node.
        costs: costs of a change.
    """
    idle = idle_nodes(snapshot, plan) & (used_s >= snapshot.now_s + costs.between_s)
    free = np.flatnonzero(idle).astype(np.int32)
    may = np.flatnonzero((worth <= jobs.maximum) & (worth - jobs.width <= len(free)))
    if not len(free) or not len(may):
        return []
    free = free[np.argsort(-used_s[free], kind="stable")]
    usable = Usable(snapshot, free)
    group = dict(zip(may.tolist(), usable.groups(jobs.row[may]), strict=True))
    held, maximum, serial = jobs.width.tolist(), jobs.maximum.tolist(), jobs.serial.tolist()
    rules = jobs.rule.tolist()
    roots = _Roots(jobs, costs.fairness)
    steps = roots.first_steps(may, worth[may])
    heapq.heapify(steps)
    taken = 0
    wider: dict[int, int] = {}
    while steps and taken < len(free):
        _, at, before, width, fast = heapq.heappop(steps)
        if width - before > len(free) - taken or width - held[at] > usable.counts[group[at]]:
            continue
        taken += width - before
        wider[at] = width
        after = width + max(width // _STEP, 1)
        if (rule := rules[at]) != WidthRule.ANY:
            after = RULES[rule].next_width(after)
        if after <= maximum[at]:
            faster = speed(serial[at], after)
            gained = (faster - fast) / (after - width)
            heapq.heappush(steps, (-gained / roots.of(at, width), at, width, after, faster))
    found, left = [], np.ones(len(free), dtype=bool)
    for at, width in wider.items():
        added = (left & usable.masks[group[at]]).nonzero()[0][: width - held[at]]
        if len(added) < width - held[at]:  # other jobs took the nodes that it could use
            continue
        left[added] = False
        found.append((at, free[added]))
    return found


def min_growths(jobs: ElasticJobs, costs: Costs) -> NDArray[np.int64]:
    """(n,) the next width of each that recovers the cost of a change (rule 3); `NONE`: none."""
    counted_s = costs.between_s - 2 * costs.adaptation_s
    if counted_s <= 0:
        return np.full(len(jobs), NONE)
    wanted = speeds(jobs.serial, jobs.width) * (1 + 2 * costs.adaptation_s / counted_s)
    minimum = allowed(jobs.rule, np.maximum(widths_for(jobs.serial, wanted), jobs.width + 1))
    return np.where(jobs.left_s <= costs.between_s, NONE, minimum)


class _Roots:
    """The weights of the jobs' gains (rule 4): square roots of their remaining work."""

    def __init__(self, jobs: ElasticJobs, fairness: float) -> None:
        self._jobs, self._requested = jobs, jobs.requested.tolist()
        work = np.maximum(jobs.left_s, 1) * speeds(jobs.serial, jobs.width)
        self._wide, self._narrow = work.tolist(), (work / fairness).tolist()

    def of(self, at: int, width: int) -> float:
        """The weight of a job at a width."""
        work: float = (self._narrow if width < self._requested[at] else self._wide)[at]
        return float(work**0.5)

    def first_steps(
        self, which: NDArray[np.intp], after: NDArray[np.int64]
    ) -> list[tuple[float, int, int, int, float]]:
        """Entries of the heap: the negative value of a step, the job, both widths, the speed."""
        before, serial = self._jobs.width[which], self._jobs.serial[which]
        fast = speeds(serial, after)
        gained = (fast - speeds(serial, before)) / (after - before)
        roots = [
            self.of(at, width) for at, width in zip(which.tolist(), before.tolist(), strict=True)
        ]
        columns = (-gained / np.array(roots), which, before, after, fast)
        return list(zip(*map(np.ndarray.tolist, columns), strict=True))
