# SPDX-License-Identifier: Apache-2.0
"""Lends idle nodes to running malleable jobs, and takes them back before the plan needs them.

Words
    base, lent  as in `bridge.planning.malleable.bases`.
    used from   of a node: when the plan first starts a waiting job on it.

Rules
    1. Lent nodes that the plan uses before they could be given back in another cycle are given back
       now, those that are used first before others. A job gives back more only where its rule
       allows no wider width.
    2. An idle node is lent if the plan does not use it for `between_s`.
    3. A job grows only while it gains speed, and only if the gain within `between_s` is more than
       the cost of the change. So no loan makes a job end later than at its base, even if it is
       called back right after that time.
    4. Idle nodes go, step by step, to the job that gains most speed for each node, weighed by the
       square root of its remaining work. The remaining work of a job that has less than it
       requested counts `fairness` times less.
    5. The nodes that are used last are lent first.
"""

import heapq
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.bases import Costs, Elastic, allowed
from bridge.planning.malleable.expand_shrink import growable, idle_nodes
from bridge.planning.malleable.speed import speed, speeds, widths_for
from bridge.units import NEVER, UNPLANNED

NONE: Final = 1 << 40

_STEP: Final = 8
"""A step is at least one of so many parts of a job's width, so that there are few."""


def used_from_s(plan: Plan, n_nodes: int) -> NDArray[np.int64]:
    """(n_nodes,) when the plan first starts a job on each node; NEVER: it does not."""
    found = np.full(n_nodes, NEVER, dtype=np.int64)
    has = (plan.start_s != NEVER) & (plan.start_s != UNPLANNED)
    start_s = np.where(has, plan.start_s, NEVER).repeat(np.diff(plan.indptr))
    np.minimum.at(found, plan.nodes, start_s)
    return found


def kept_now(job: Elastic, used_s: NDArray[np.int64], by_s: int) -> NDArray[np.int32]:
    """What a job keeps that gives nodes back in this cycle (rule 1).

    Args:
        job: one with lent nodes that are used by then, and not adapting.
        used_s: (n_nodes,) when each node is used.
        by_s: when nodes that are given back now are free.
    """
    lent = job.lent
    width = len(job.nodes) - int(np.count_nonzero(used_s[lent] <= by_s))
    while not job.rule.allows(width) and width > job.base:
        width -= 1
    last_used = lent[np.argsort(-used_s[lent], kind="stable")]
    return np.concatenate((job.nodes[: job.base], last_used[: width - job.base]))


def first_used_s(lent: Sequence[NDArray[np.int32]], used_s: NDArray[np.int64]) -> list[int]:
    """When the plan uses any of each set of nodes; NEVER: it does not, or the set is empty."""
    sizes = np.array([len(each) for each in lent], dtype=np.int64)
    found = np.full(len(lent), NEVER, dtype=np.int64)
    some = sizes > 0
    if some.any():
        first = np.concatenate(([0], sizes[some].cumsum()[:-1]))
        found[some] = np.minimum.reduceat(used_s[np.concatenate(lent)], first)
    times: list[int] = found.tolist()
    return times


def growths(
    snapshot: Snapshot,
    jobs: Sequence[Elastic],
    plan: Plan,
    used_s: NDArray[np.int64],
    costs: Costs,
) -> list[tuple[Elastic, NDArray[np.int32]]]:
    """The jobs that grow, and what each is lent (rules 2 to 5).

    Args:
        snapshot: the world.
        jobs: those that neither adapt nor shrink, nor changed their width lately.
        plan: starts of waiting jobs.
        used_s: (n_nodes,) when the plan uses each node.
        costs: of a change.
    """
    idle = idle_nodes(snapshot, plan) & (used_s >= snapshot.now_s + costs.between_s)
    if not idle.any():
        return []
    free = np.flatnonzero(idle).astype(np.int32)
    free = free[np.argsort(-used_s[free], kind="stable")]
    usable = Usable(snapshot, free)
    steps: list[tuple[float, int, int, int]] = []
    growing: dict[int, Elastic] = {}
    taken = 0
    for job, least in zip(jobs, least_growths(jobs, costs), strict=True):
        if least <= job.most and least - len(job.nodes) <= len(free):
            growing[job.row] = job
            steps.append(_step(job, len(job.nodes), least, costs.fairness))
    heapq.heapify(steps)
    wider: dict[int, int] = {}
    while steps and taken < len(free):
        _, row, before, width = heapq.heappop(steps)
        job = growing[row]
        if width - before > len(free) - taken or width - len(job.nodes) > usable.by(row)[1]:
            continue
        taken += width - before
        wider[row] = width
        after = job.rule.next_width(width + max(width // _STEP, 1))
        if after <= job.most:
            heapq.heappush(steps, _step(job, width, after, costs.fairness))
    found, left = [], np.ones(len(free), dtype=bool)
    for row, width in wider.items():
        job = growing[row]
        added = np.flatnonzero(left & usable.by(row)[0])[: width - len(job.nodes)]
        if len(added) < width - len(job.nodes):  # others took what it alone could use
            continue
        left[added] = False
        found.append((job, free[added]))
    return found


class Usable:
    """Which of the idle nodes each job could use; found once for jobs that could use the same."""

    def __init__(self, snapshot: Snapshot, free: NDArray[np.int32]) -> None:
        self._snapshot, self._free = snapshot, free
        self._known: dict[object, tuple[NDArray[np.bool_], int]] = {}

    def by(self, job: int) -> tuple[NDArray[np.bool_], int]:
        """Which of them a job (row of `Snapshot.running`) could use, and how many."""
        running = self._snapshot.running
        key: object = job
        if not self._snapshot.reservations and running.exclusive[job]:
            key = int(running.partition[job]), str(running.features[job])
        if key not in self._known:
            may = growable(self._snapshot, job)[self._free]
            self._known[key] = may, int(np.count_nonzero(may))
        return self._known[key]


def least_growths(jobs: Sequence[Elastic], costs: Costs) -> list[int]:
    """The next width of each that makes good the cost of a change (rule 3); very large: none."""
    counted_s = costs.between_s - 2 * costs.adaptation_s
    if counted_s <= 0:
        return [NONE] * len(jobs)
    serial = np.array([job.serial for job in jobs], dtype=np.float64)
    width = np.array([len(job.nodes) for job in jobs], dtype=np.int64)
    rule = np.array([job.rule for job in jobs], dtype=np.int8)
    soon = np.array([job.left_s <= costs.between_s for job in jobs], dtype=bool)
    wanted = speeds(serial, width) * (1 + 2 * costs.adaptation_s / counted_s)
    least = allowed(rule, np.maximum(widths_for(serial, wanted), width + 1))
    found: list[int] = np.where(soon, NONE, least).tolist()
    return found


def _step(job: Elastic, before: int, after: int, fairness: float) -> tuple[float, int, int, int]:
    """An entry of the heap: what a step is worth, negative, the job, and both widths."""
    gained = (speed(job.serial, after) - speed(job.serial, before)) / (after - before)
    work = max(job.left_s, 1) * speed(job.serial, len(job.nodes))
    if before < job.asked:
        work /= fairness
    return (-gained / work**0.5, job.row, before, after)
