# SPDX-License-Identifier: Apache-2.0
"""Frees nodes for the first waiting job by shrinking others, and gives idle nodes to running ones.

Terms
    first waiting job   the first one in the plan's order that waits for nodes.
    needed nodes        the nodes it needs beyond the idle ones that it could use.

Rules
    1. While any job is adapting, nothing is decided. Jobs that end soon (`MIN_LEFT`) keep their
       nodes.
    2. Jobs are shrunk in the order given, each to the next allowed width that frees the rest of the
       needed nodes, or as far as it allows. Nothing is shrunk unless all together free enough; the
       first waiting job then starts on the freed nodes.
    3. Afterwards jobs are grown in the order given, each to the largest allowed width that the idle
       nodes permit, but not those that shrink, and not onto nodes for the first waiting job.
    4. A job keeps its head. Nodes that the first waiting job could use are released first, starting
       with the last one.
    5. Shrinking and growing jobs adapt at the same time, each in one direction.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bridge.model.decisions.resizes import NO_RESIZES, Resize, Resizes
from bridge.model.job import RunningTable
from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.alternatives import Eligibility
from bridge.planning.malleable.usable import Usable
from bridge.planning.malleable.widths import allowed_widths, grown_width, shrunk_width
from bridge.ports import Planned, Replan

_WAITS_FOR_NODES = (ReasonCode.RESOURCES, ReasonCode.PRIORITY)

MIN_LEFT = 2
"""A job that ends within this multiple of the duration of a change is left alone."""


@dataclass(frozen=True)
class Malleables:
    """The running jobs that may be resized now.

    Attributes:
        rows: (k,) of `Snapshot.running`; none while any job is adapting.
    """

    snapshot: Snapshot
    rows: NDArray[np.intp]

    @staticmethod
    def of(snapshot: Snapshot, adaptation_s: int) -> "Malleables":
        """Finds them.

        Args:
            adaptation_s: expected duration of a change of width.
        """
        running = snapshot.running
        free = (running.max_nodes > 0) & ~running.releasing & (np.diff(running.indptr) > 0)
        free &= running.end_s > snapshot.now_s + MIN_LEFT * max(adaptation_s, 1)
        if running.adapting.any():
            free = np.zeros_like(free)
        return Malleables(snapshot, np.flatnonzero(free))

    def nodes(self, job: int) -> NDArray[np.int32]:
        running = self.snapshot.running
        return running.nodes[running.indptr[job] : running.indptr[job + 1]]


def expand_shrink(
    snapshot: Snapshot,
    planned: Planned,
    replan: Replan,
    *,
    shrink_order: Sequence[int],
    expand_order: Sequence[int],
    adaptation_s: int,
) -> Planned:
    """Resizes running jobs by the rules above.

    Args:
        replan: plans around other widths.
        shrink_order: rows of `snapshot.running`, shrunk first to last.
        expand_order: rows of `snapshot.running`, grown first to last.
        adaptation_s: how long a change of width is expected to take.
    """
    malleables = Malleables.of(snapshot, adaptation_s)
    if not len(malleables.rows):
        return planned
    by_s = snapshot.now_s + max(adaptation_s, 1)
    idle = idle_nodes(snapshot, planned.plan)
    resizes: list[Resize] = []
    waiting = first_waiting(planned)
    if waiting is not None:
        resizes = _shrinks(malleables, waiting, idle, shrink_order, by_s)
        if resizes:
            tried = replan(Resizes.of(resizes))
            taken = _taken_by(tried, waiting, by_s, len(snapshot.nodes))
            if taken.any():
                planned, idle = tried, idle_nodes(snapshot, tried.plan) & ~taken
            else:  # nodes would be freed, but this job would not get them
                resizes = []
    grown = _growths(malleables, idle, expand_order, {job for job, *_ in resizes}, by_s)
    if not grown:
        return planned
    if not len(snapshot.jobs):  # no waiting job could be planned otherwise
        return replan.around(planned, Resizes.of(grown), NO_RESIZES)
    return replan(Resizes.of([*resizes, *grown]))


def rank_of_ids(running: RunningTable) -> NDArray[np.int64]:
    """(n_running,) the place of each job by its id: 9 before 10.

    To break ties: the order of the rows is the controller's, and has no meaning.
    """
    return _rank(tuple(running.id.tolist()))


@lru_cache(maxsize=16)
def _rank(ids: tuple[str, ...]) -> NDArray[np.int64]:
    """Cached, as the same jobs run in most cycles; must not be changed."""
    rank = np.empty(len(ids), dtype=np.int64)
    rank[sorted(range(len(ids)), key=lambda row: (len(ids[row]), ids[row]))] = np.arange(len(ids))
    rank.setflags(write=False)
    return rank


def idle_nodes(snapshot: Snapshot, plan: Plan) -> NDArray[np.bool_]:
    """(n_nodes,) usable nodes with power that are idle and on which the plan starts no job now."""
    idle: NDArray[np.bool_] = snapshot.nodes.usable & ~snapshot.closed
    idle[snapshot.running.nodes] = False
    starts = plan.start_s == plan.now_s
    if starts.any():
        idle[plan.nodes[starts.repeat(plan.indptr[1:] - plan.indptr[:-1])]] = False
    return idle


def first_waiting(planned: Planned) -> int | None:
    """Row of `snapshot.jobs` of the first waiting job; None: no job waits for nodes."""
    plan = planned.plan
    for row in np.flatnonzero(plan.start_s != plan.now_s).tolist():
        reason = plan.reasons[row]
        if reason is not None and reason.code in _WAITS_FOR_NODES:
            return int(plan.job[row])
    return None


def usable_by(snapshot: Snapshot, job: int) -> NDArray[np.bool_]:
    """(n_nodes,) the nodes that a waiting job could run on."""
    eligibility = Eligibility(snapshot)
    (found,) = eligibility.alternatives(np.array([job]))
    usable = np.zeros(len(snapshot.nodes), dtype=bool)
    if not isinstance(found, Reason):
        for alternative in found:
            usable |= eligibility.classes.mask(alternative.class_)
    return usable


def _taken_by(planned: Planned, job: int, by_s: int, n_nodes: int) -> NDArray[np.bool_]:
    """(n_nodes,) the nodes of the rows of a job that start by then."""
    plan = planned.plan
    soon = (plan.job == job) & (plan.start_s <= by_s)
    taken = np.zeros(n_nodes, dtype=bool)
    taken[plan.nodes[np.repeat(soon, np.diff(plan.indptr))]] = True
    return taken


def _shrinks(
    malleables: Malleables,
    waiting: int,
    idle: NDArray[np.bool_],
    order: Sequence[int],
    by_s: int,
) -> list[Resize]:
    """Rule 2; empty if too little can be freed."""
    snapshot = malleables.snapshot
    usable = usable_by(snapshot, waiting)
    needed = int(snapshot.jobs.min_nodes[waiting]) - int((idle & usable).sum())
    if needed <= 0:  # it does not wait for whole nodes
        return []
    found: list[Resize] = []
    reason = f"job {snapshot.jobs.id[waiting]} waits for its nodes"
    may = set(malleables.rows.tolist())
    for job in order:
        if job not in may:
            continue
        nodes = malleables.nodes(job)
        free = nodes[usable[nodes] & (nodes != snapshot.running.head_of(job))]
        width = shrunk_width(allowed_widths(snapshot, job), len(nodes), min(needed, len(free)))
        released = free[len(free) - (len(nodes) - width) :] if width < len(nodes) else free[:0]
        if not 0 < len(nodes) - width <= len(free):
            continue
        found.append((job, by_s, np.setdiff1d(nodes, released), reason))
        needed -= len(released)
        if needed <= 0:
            return found
    return []


def _growths(
    malleables: Malleables,
    idle: NDArray[np.bool_],
    order: Sequence[int],
    shrinking: set[int],
    by_s: int,
) -> list[Resize]:
    """Grows jobs in the given order, as far as idle nodes permit (rule 3)."""
    snapshot, found = malleables.snapshot, []
    rows = malleables.rows
    free = np.flatnonzero(idle).astype(np.int32)
    left = np.ones(len(free), dtype=bool)
    usable = Usable(snapshot, free)
    group_of = dict(zip(rows.tolist(), usable.groups(rows), strict=True)) if len(free) else {}
    for job in order:
        if not left.any():
            break
        if job not in group_of or job in shrinking:
            continue
        nodes = malleables.nodes(job)
        own = np.flatnonzero(left & usable.masks[group_of[job]])
        width = grown_width(allowed_widths(snapshot, job), len(nodes), len(own))
        if width == len(nodes):
            continue
        taken = own[: width - len(nodes)]
        left[taken] = False
        wider = np.union1d(nodes, free[taken]).astype(np.int32)
        found.append((job, by_s, wider, "nodes are idle"))
    return found
