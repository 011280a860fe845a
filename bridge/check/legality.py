# SPDX-License-Identifier: Apache-2.0
"""Checks whether a plan is legal, from the snapshot alone and without code of the planners.

Rules
    1. Every pending job has at least one row; no array starts more tasks than its limit allows.
    2. No start is in the past, of a job that the controller holds, or before the job's begin time
       (with a fixed start it is less than a minute after it). It lasts exactly as long as the job
       and its partition say, unless the limit is cut to end at the job's deadline. No job ends
       after its deadline.
    3. The nodes are usable, distinct, of the right number and of a partition that the job named;
       they match its constraint, include the required and avoid the excluded ones.
    4. Nodes of a reservation are used only by jobs that run in it, during its time.
    5. At no second is a node or a licence used beyond its capacity, or an exclusively held node
       shared. Oversubscription by running jobs is not a fault of the plan, but nothing may be added
       to it.
    6. A job with chunks of several kinds has exactly the requested number of each, on nodes that
       match the kind's constraint, all on one node (pack) or one on each (scatter).
    7. Several nodes of one job are on switches of one fabric. Until its maximum wait for leaf
       switches has passed, counted from when it became eligible, they are on no more of them than
       it requested.
    8. Running jobs are resized within their own rules (`bridge.check.resizes`), also if they give
       nodes back later, and all of the above holds with their new nodes.
    9. The parts of extensions keep the rules of their own checks (`bridge.extensions.port`). An
       extension may state in which other snapshots the rows must be legal instead.
   10. The rules of the site hold: limits, FreePools, protections, and licences that
       reservations hold (`bridge.check.site_rules`).
   11. A moldable job is planned on a number of nodes that it allows
       (`bridge.check.start_widths`); it counts as one that requests exactly these.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from operator import is_

import numpy as np
from numpy.typing import NDArray

from bridge.check.fabrics import fabrics
from bridge.check.features import alternatives, matching
from bridge.check.resizes import added_nodes, broken_resizes, broken_returns
from bridge.check.site_rules import broken_rules
from bridge.check.start_widths import broken_start_widths
from bridge.core import Fault, judge
from bridge.errors import RequestError
from bridge.extension_packages import broken_parts, counted, other_worlds
from bridge.model.decisions.resizes import NO_RESIZES, Resizes, resized
from bridge.model.decisions.start_widths import StartWidths
from bridge.model.job import WidthRule
from bridge.model.plan import Plan, planned_world
from bridge.model.resources import Arrangement
from bridge.model.rules.resize_limits import ResizeBounds
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.units import NEVER, UNPLANNED


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule broken by one row of a plan (-1: by the plan as a whole)."""

    row: int
    job_id: str
    text: str

    def __str__(self) -> str:
        return f"job {self.job_id}: {self.text}" if self.job_id else self.text


_OF_JOBS = frozenset({Fault.NO_ROW, Fault.TOO_MANY_STARTS})
_TEXTS: dict[Fault, str | Callable[[Snapshot, int, int], str]] = {
    Fault.NO_ROW: "has no row in the plan",
    Fault.TOO_MANY_STARTS: lambda _, found, maximum: f"started {found} times, {maximum} allowed",
    Fault.NODES_WITHOUT_START: "has nodes but no start",
    Fault.NO_REASON: "waits without a reason",
    Fault.IN_THE_PAST: "starts in the past",
    Fault.HELD_BACK: "is held, but planned",
    Fault.BEFORE_BEGIN: "starts before its begin time",
    Fault.NO_PARTITION: "starts in no partition",
    Fault.BEFORE_FIXED: "starts before its fixed start",
    Fault.AFTER_FIXED: "starts after its fixed start",
    Fault.AFTER_DEADLINE: "would end after its deadline",
    Fault.WRONG_LENGTH: "is not planned for its time limit",
    Fault.PARTITION_TIME: "exceeds the partition's time limit",
    Fault.WRONG_WIDTH: "has the wrong number of nodes",
    Fault.WIDTH_RULE: lambda _, found, rule: (
        f"has {found} nodes, not {WidthRule(rule).name.lower()}"
    ),
    Fault.OUT_OF_ORDER: "names a node twice or out of order",
    Fault.UNUSABLE: "uses a node that is not usable",
    Fault.PARTITION_DOWN: lambda world, at, _: (
        f"starts in partition {world.partitions[at].name}, which is down"
    ),
    Fault.PARTITION_WIDTH: lambda world, at, _: (
        f"has a node count outside partition {world.partitions[at].name}'s"
    ),
    Fault.PARTITION_UNNAMED: lambda world, at, _: (
        f"did not name partition {world.partitions[at].name}"
    ),
    Fault.OUTSIDE: "uses a node outside partition or constraint",
    Fault.MISSES_REQUIRED: "misses a required node",
    Fault.WRONG_TASKS: "does not hold its tasks",
    Fault.TASKS_ON_NODE: "has too few or too many tasks on a node",
    Fault.TOO_LARGE: "requests more than a node has",
    Fault.NODE_OVERSUBSCRIBED: "oversubscribes a node",
    Fault.LICENCE_OVERSUBSCRIBED: "oversubscribes a licence",
}


def check(snapshot: Snapshot, site: Site, plan: Plan) -> tuple[Violation, ...]:
    """Returns the violations of a plan, empty if it is legal. O(n log n) in nodes planned."""
    if plan.groups is not None and (plan.groups.ndim != 2 or len(plan.groups) != len(plan.nodes)):
        return (Violation(-1, "", "chunks do not match the nodes"),)
    snapshot = snapshot.with_running(counted(snapshot.running))
    if plan.only_rows:
        return _rows(snapshot, site, plan)
    broken = broken_parts(snapshot, site, plan)
    found = [*_resizes(snapshot, site, plan.resizes), *(Violation(-1, *each) for each in broken)]
    if not found and (worlds := other_worlds(snapshot, site, plan)):
        return tuple(each for world, its in worlds for each in check(world, site, its))
    after = snapshot if found else resized(snapshot, plan.resizes)
    found = found or _later(after, plan)
    if found:  # the rows were planned around them
        return tuple(found)
    world = planned_world(after, NO_RESIZES, plan.returns, plan.start_widths)
    return _rows(world, site, plan)


def _rows(world: Snapshot, site: Site, plan: Plan) -> tuple[Violation, ...]:
    """The rules for rows, 1 to 7 and 10."""
    bench = _Bench(world, plan)
    if problem := bench.columns():
        return (Violation(-1, "", problem),)
    if bench.has_mixed:
        bench.chunks()
    if world.topology is not None:
        bench.switches()
    if world.reservations:
        bench.reservations()
    bench.rules(site)
    return tuple(bench.found)


def permitted(
    snapshot: Snapshot,
    site: Site,
    resizes: Resizes,
    *,
    by_limits: bool = False,
    order: bool = False,
) -> Resizes:
    """The resizes without those that break a rule by themselves.

    Args:
        by_limits: as if all jobs ended at their time limits.
        order: an administrator asks for them.
    """
    while bad := {
        one.job_id for one in _resizes(snapshot, site, judged(resizes, by_limits), order=order)
    }:
        ids = snapshot.running.id
        jobs = resizes.job.tolist() if "" not in bad else []
        resizes = resizes.only([row for row, job in enumerate(jobs) if ids[job] not in bad])
    return resizes


def permitted_later(
    snapshot: Snapshot, resizes: Resizes, returns: Resizes, widths: StartWidths
) -> tuple[Resizes, StartWidths]:
    """Later resizes, and the widths of waiting jobs, without those that break a rule."""
    bad = {job_id for job_id, _ in broken_returns(resized(snapshot, resizes), returns)}
    if bad:
        ids = snapshot.running.id[returns.job].tolist() if "" not in bad else []
        returns = returns.only([row for row, job_id in enumerate(ids) if job_id not in bad])
    bad = {job_id for job_id, _ in broken_start_widths(snapshot, widths)}
    if bad:
        ids = snapshot.jobs.id[widths.job].tolist() if "" not in bad else []
        widths = widths.only([row for row, job_id in enumerate(ids) if job_id not in bad])
    return returns, widths


def judged(resizes: Resizes, by_limits: bool) -> Resizes:
    """The resizes, or the same of jobs that end at their limits."""
    return replace(resizes, end_s=np.zeros_like(resizes.end_s)) if by_limits else resizes


def _resizes(
    snapshot: Snapshot, site: Site, resizes: Resizes, *, order: bool = False
) -> list[Violation]:
    """What is wrong with the resizes and their later returns (rule 8)."""
    if not len(resizes):
        return []
    requested = (snapshot, site, resizes)
    if _judged and _judged[0][1] == order and all(map(is_, _judged[0][0], requested)):
        return [*_judged[0][2]]
    bounds = ResizeBounds(snapshot, site.resizes, order=order)
    broken = broken_resizes(snapshot, resizes, bounds)
    found = [Violation(-1, job_id, text) for job_id, text in broken]
    if not found and (added := added_nodes(snapshot, site, resizes)) is not None:
        refused = check(*added)
        found = [Violation(-1, one.job_id, f"is given nodes, but {one.text}") for one in refused]
    _judged[:] = [(requested, order, tuple(found))]
    return found


_judged: list[tuple[tuple[Snapshot, Site, Resizes], bool, tuple[Violation, ...]]] = []
"""The last verdict: a cycle asks for it when it decides the resizes, and for the whole plan."""


def _later(after: Snapshot, plan: Plan) -> list[Violation]:
    """Later resizes, and the widths of waiting jobs: rules 8 and 11."""
    broken = [*broken_returns(after, plan.returns), *broken_start_widths(after, plan.start_widths)]
    return [Violation(-1, job_id, text) for job_id, text in broken]


class _Bench:
    """Checks by columns, in one call, the rules for every row; other rules only where needed.

    Attributes:
        found: the violations so far.
        has_mixed: whether any job requests chunks of several kinds.
    """

    def __init__(self, snapshot: Snapshot, plan: Plan) -> None:
        self.snapshot, self.plan = snapshot, plan
        self.found: list[Violation] = []
        self.has_mixed = bool(
            np.count_nonzero(snapshot.jobs.chunks) and np.count_nonzero(self._mixed)
        )

    @cached_property
    def _groups(self) -> NDArray[np.int32]:
        """(nnz, G) chunks of each kind."""
        none = np.zeros((len(self.plan.nodes), 0), dtype=np.int32)
        return self.plan.groups if self.plan.groups is not None else none

    @cached_property
    def rows(self) -> NDArray[np.intp]:
        start_s = self.plan.start_s
        return np.flatnonzero((start_s != NEVER) & (start_s != UNPLANNED))

    @cached_property
    def width(self) -> NDArray[np.int64]:
        """(n_rows,) how many nodes each row has."""
        return np.diff(self.plan.indptr)

    @cached_property
    def row_of(self) -> NDArray[np.intp]:
        """(nnz,) the row of each node entry."""
        return np.repeat(np.arange(len(self.plan)), self.width)

    @cached_property
    def job(self) -> NDArray[np.int64]:
        """(n_rows,) the job of each row."""
        return self.plan.job.astype(np.int64)

    @cached_property
    def _mixed(self) -> NDArray[np.bool_]:
        """(n_jobs,) which jobs request chunks of several kinds."""
        requested = self.snapshot.jobs.chunks
        mixed = requested.astype(bool)
        for at in np.flatnonzero(mixed).tolist():
            mixed[at] = len(requested[at].request.kinds) > 1
        return mixed

    def columns(self) -> str:
        """Rules 1 to 3 and 5; returns the problem if columns are inconsistent."""
        demand = self._node_demand if self.has_mixed else None
        results = judge(self.snapshot, self.plan, self._matching, demand)
        if isinstance(results, str):
            return results
        ids = self.snapshot.jobs.id
        for fault, row, found, allowed in results:
            text_of = _TEXTS[fault]
            text = text_of if isinstance(text_of, str) else text_of(self.snapshot, found, allowed)
            of_job = fault in _OF_JOBS
            job = row if of_job else int(self.plan.job[row])
            self.found.append(Violation(-1 if of_job else row, str(ids[job]), text))
        return ""

    def _of_several_kinds(self) -> list[int]:
        """Rows with a start whose jobs request chunks of several kinds."""
        if not self.has_mixed:
            return []
        rows: list[int] = self.rows[self._mixed[self.job[self.rows]]].tolist()
        return rows

    def blame(self, rows: NDArray[np.intp] | NDArray[np.int64], text: str) -> None:
        for row in np.unique(rows).tolist() if len(rows) else ():
            self.found.append(Violation(row, str(self.snapshot.jobs.id[self.job[row]]), text))

    def chunks(self) -> None:
        """Chunks of several kinds: rule 6."""
        plan, jobs = self.plan, self.snapshot.jobs
        for row in self._of_several_kinds():
            requested = jobs.chunks[self.job[row]]
            kinds, place = requested.request.kinds, requested.request.place
            own = slice(int(plan.indptr[row]), int(plan.indptr[row + 1]))
            placed = self._groups[own]
            counts = [kind.count for kind in kinds]
            problem = ""
            if (
                placed.shape[1] < len(kinds)
                or placed[:, : len(kinds)].sum(axis=0).tolist() != counts
            ):
                problem = "does not have its chunks"
            elif (
                placed[:, len(kinds) :].any() or (placed < 0).any() or not placed.any(axis=1).all()
            ):
                problem = "has a node without a chunk, or chunks of no kind"
            elif place.arrangement is Arrangement.PACK and len(placed) != 1:
                problem = "does not have all chunks on one node"
            elif place.arrangement is Arrangement.SCATTER and (placed.sum(axis=1) > 1).any():
                problem = "has several chunks on a node"
            elif not self._kinds_match(requested.features, plan.nodes[own], placed):
                problem = "has a chunk on a node that does not match its constraint"
            if problem:
                self.blame(np.array([row]), problem)

    def switches(self) -> None:
        """Fabrics and leaf switches: rule 7."""
        topology, plan, jobs = self.snapshot.topology, self.plan, self.snapshot.jobs
        assert topology is not None
        several = self.rows[self.width[self.rows] > 1]
        if not len(several):
            return
        fabric = fabrics(topology)
        if (fabric < 0).any() or (fabric != fabric[0]).any():
            nodes, owner = self._nodes_of(several)
            first = fabric[plan.nodes[plan.indptr[several]]]
            alone = fabric[nodes] < 0
            self.blame(several[owner[alone]], "has several nodes, one on no switch")
            apart = ~alone & (first[owner] >= 0) & (fabric[nodes] != first[owner])
            self.blame(several[owner[apart]], "has nodes of two fabrics")
        job = self.job[several]
        since_s = np.maximum(jobs.eligible_s[job], jobs.begin_s[job])
        since_s = np.where(since_s > 0, since_s, jobs.submit_s[job])
        waits = plan.start_s[several] < since_s + jobs.switches_wait_s[job]
        for row in several[(jobs.switches[job] > 0) & waits].tolist():
            held = len(np.unique(topology.leaf_of_node[plan.nodes_of(row)]))
            maximum = int(jobs.switches[self.job[row]])
            if held > maximum:
                text = f"is on {held} leaf switches before it has waited for {maximum}"
                self.blame(np.array([row]), text)

    def _kinds_match(
        self, features: tuple[str, ...], nodes: NDArray[np.int32], placed: NDArray[np.int32]
    ) -> bool:
        """Whether one alternative of the kinds' constraints holds for all chunks."""
        masks = [self._matching(text) for text in features]
        return any(
            all(masks[k][choice][nodes[placed[:, k] > 0]].all() for k in range(len(features)))
            for choice in range(len(masks[0]))
        )

    def _node_demand(self) -> NDArray[np.int64]:
        """(nnz, R) what each row takes of each of its nodes."""
        plan, jobs = self.plan, self.snapshot.jobs
        job = self.job[self.row_of]
        want: NDArray[np.int64] = jobs.per_node[job] + jobs.per_task[job] * plan.tasks[:, None]
        for row in self._of_several_kinds():
            requested = jobs.chunks[self.job[row]]
            own = slice(int(plan.indptr[row]), int(plan.indptr[row + 1]))
            n_kinds = min(len(requested.wants), self._groups.shape[1])
            each = np.array(requested.wants[:n_kinds], dtype=np.int64)
            want[own] = self._groups[own, :n_kinds] @ each + np.array(requested.per_node)
        return want

    def _nodes_of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.intp]]:
        """The nodes of all these rows one after the other, and the row of each."""
        width = self.width[rows]
        owner = np.repeat(np.arange(len(rows)), width)
        first = self.plan.indptr[rows] - (np.cumsum(width) - width)
        return self.plan.nodes[first[owner] + np.arange(len(owner))], owner

    def _matching(self, text: str) -> list[NDArray[np.bool_]]:
        features = self.snapshot.nodes.features
        if not text:
            return [np.ones(len(features), dtype=bool)]
        try:
            return [matching(one, features) for one in alternatives(text)]
        except RequestError:
            return []

    def reservations(self) -> None:
        plan, snapshot, jobs = self.plan, self.snapshot, self.snapshot.jobs
        own = jobs.reservation[self.job[self.row_of]]
        elsewhere = [at for at, one in enumerate(snapshot.reservations) if one.anywhere]
        at_home = (own >= 0) & ~np.isin(own, elsewhere)
        start_s, end_s = plan.start_s[self.row_of], plan.end_s[self.row_of]
        for index, reservation in enumerate(snapshot.reservations):
            inside = np.zeros(len(snapshot.nodes), dtype=bool)
            inside[reservation.nodes] = True
            within = inside[plan.nodes]
            mine = own == index
            overlap = (start_s < reservation.end_s) & (end_s > reservation.start_s)
            self.blame(
                self.row_of[~at_home & within & overlap],
                f"uses nodes of reservation {reservation.name}",
            )
            within |= reservation.anywhere
            wrong = ~within | (start_s < reservation.start_s) | (start_s >= reservation.end_s)
            self.blame(self.row_of[mine & wrong], f"leaves its reservation {reservation.name}")

    def rules(self, site: Site) -> None:
        """The rules of the site: rule 10."""
        for row, text in broken_rules(self.snapshot, site, self.plan):
            self.blame(np.array([row]), text)
