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
    3. A job grows only if it makes good what the change costs within `between_s`, and while it
       gains speed. So no loan, however early it is called back after that time, makes a job end
       later than at its base.
    4. Idle nodes go, step by step, to the job that gains most speed for each node, weighed by the
       square root of what is left of it. What is left of a job that has less than it asked for
       counts `fairness` times less.
    5. The nodes that are used last are lent first.
"""

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.bases import Costs, Elastic
from bridge.planning.malleable.expand_shrink import growable, idle_nodes
from bridge.planning.malleable.speed import speed, width_for
from bridge.units import NEVER, UNPLANNED

_STEP = 8
"""A step is at least one of so many parts of a job's width, so that there are few."""


def used_from_s(plan: Plan, n_nodes: int) -> NDArray[np.int64]:
    """(n_nodes,) when the plan first starts a job on each node; NEVER: it does not."""
    found = np.full(n_nodes, NEVER, dtype=np.int64)
    has = (plan.start_s != NEVER) & (plan.start_s != UNPLANNED)
    start_s = np.where(has, plan.start_s, NEVER).repeat(np.diff(plan.indptr))
    np.minimum.at(found, plan.nodes, start_s)
    return found


def kept_now(job: Elastic, used_s: NDArray[np.int64], by_s: int) -> NDArray[np.int32]:
    """What a job keeps in this cycle (rule 1); all its nodes, if none is used by then.

    Args:
        job: one that is not adapting.
        used_s: (n_nodes,) when each node is used.
        by_s: when nodes that are given back now are free.
    """
    lent = job.lent
    needed = int(np.count_nonzero(used_s[lent] <= by_s))
    if not needed:
        return job.nodes
    width = len(job.nodes) - needed
    while not job.rule.allows(width) and width > job.base:
        width -= 1
    last_used = lent[np.argsort(-used_s[lent], kind="stable")]
    return np.concatenate((job.nodes[: job.base], last_used[: width - job.base]))


@dataclass(frozen=True)
class _Growing:
    """A job and the nodes that it could use."""

    job: Elastic
    may: NDArray[np.bool_]
    least: int


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
    masks: dict[object, NDArray[np.bool_]] = {}
    steps: list[tuple[float, int, int, int]] = []
    growing: dict[int, _Growing] = {}
    taken = 0
    for job in jobs:
        least = _least_growth(job, costs)
        if least <= job.most and least - len(job.nodes) <= len(free):
            may = _growable(snapshot, job.row, masks)[free]
            growing[job.row] = _Growing(job, may, least)
            heapq.heappush(steps, _step(job, len(job.nodes), least, costs.fairness))
    wider: dict[int, int] = {}
    while steps:
        _, row, before, width = heapq.heappop(steps)
        one = growing[row]
        wanted = width - len(one.job.nodes)
        if width - before > len(free) - taken or wanted > np.count_nonzero(one.may):
            continue
        taken += width - before
        wider[row] = width
        after = one.job.rule.next_width(width + max(width // _STEP, 1))
        if after <= one.job.most:
            heapq.heappush(steps, _step(one.job, width, after, costs.fairness))
    found, left = [], np.ones(len(free), dtype=bool)
    for row, width in wider.items():
        one = growing[row]
        added = np.flatnonzero(left & one.may)[: width - len(one.job.nodes)]
        if len(added) < width - len(one.job.nodes):  # others took what it alone could use
            continue
        left[added] = False
        found.append((one.job, free[added]))
    return found


def _growable(
    snapshot: Snapshot, job: int, masks: dict[object, NDArray[np.bool_]]
) -> NDArray[np.bool_]:
    """`growable`, once for jobs for which it is the same."""
    running = snapshot.running
    key: object = job
    if not snapshot.reservations and running.exclusive[job]:
        key = int(running.partition[job]), str(running.features[job])
    if key not in masks:
        masks[key] = growable(snapshot, job)
    return masks[key]


def _least_growth(job: Elastic, costs: Costs) -> int:
    """The next width that makes good the cost of a change (rule 3); beyond `most` if none does."""
    width = len(job.nodes)
    if job.left_s <= costs.between_s:
        return job.most + 1
    now = speed(job.serial, width)
    counted_s = costs.between_s - 2 * costs.adaptation_s
    if counted_s <= 0:
        return job.most + 1
    wanted = now * (1 + 2 * costs.adaptation_s / counted_s)
    return job.rule.next_width(max(width_for(job.serial, wanted), width + 1))


def _step(job: Elastic, before: int, after: int, fairness: float) -> tuple[float, int, int, int]:
    """An entry of the heap: what a step is worth, negative, the job, and both widths."""
    gained = (speed(job.serial, after) - speed(job.serial, before)) / (after - before)
    work = max(job.left_s, 1) * speed(job.serial, len(job.nodes))
    if before < job.asked:
        work /= fairness
    return (-gained / work**0.5, job.row, before, after)
