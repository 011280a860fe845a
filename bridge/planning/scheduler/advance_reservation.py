# SPDX-License-Identifier: Apache-2.0
"""Finds a slot for an advance reservation of whole nodes among running and planned jobs.

Terms
    request     a number of nodes, or chunks, from a start time on and for a duration.
    displaced   said of a job that is planned on one of the nodes during that time and loses its
                planned start.

Rules
    1. Running jobs, and jobs that start now, keep their nodes until their expected end.
    2. So do planned jobs, unless they may be displaced: then the nodes with the fewest planned
       jobs are taken.
    3. Nodes of other reservations are closed during their time; nodes that are not usable are not
       taken. Partitions bound which nodes are taken, not how many or for how long.
    4. Reserved licences must be free during that time, too; planned jobs that hold such a licence
       may be displaced like those on its nodes.
    5. Limits and FreePools do not apply: they bind jobs, not administrators.
"""

import dataclasses
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.dialect import dialect_of
from bridge.errors import ConfigError
from bridge.model.job import JobTable
from bridge.model.job_columns import objects
from bridge.model.node import MEMORY_MIB
from bridge.model.plan import Plan
from bridge.model.reasons import Reason
from bridge.model.resources import ChunkRequest, LoweredChunks
from bridge.model.rules.site import NO_RULES
from bridge.model.snapshot import Partition, Snapshot
from bridge.planning.eligibility.alternatives import Eligibility
from bridge.planning.queue.layouts import layouts
from bridge.planning.requests.chunk_groups import ClusterWords, chunk_columns, lower_chunks
from bridge.planning.scheduler.book_without_job import book_plan
from bridge.planning.scheduler.cluster_book import ClusterBook
from bridge.planning.site_rules.capacity_constraints import Mode, Terms
from bridge.planning.site_rules.lowered_rules import lower
from bridge.units import NEVER, UNPLANNED

_MARK = "(reservation)"
_NO_TERMS = Terms(
    np.zeros(2, dtype=np.int64), np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64),
    np.empty(0, dtype=np.int8), (None,),
)  # fmt: skip


@dataclass(frozen=True)
class ReservationRequest:
    """The request of an operator.

    Attributes:
        start_s: now or later.
        duration_s: at least 1.
        nodes: how many; 0: those that hold the chunks.
        chunks: None: `nodes` counts.
        partition: index into `Snapshot.partitions`; -1: nodes of any.
        licences: (L,) int64 that are reserved, too; None: none.
        displace: planned jobs may be displaced.
    """

    start_s: int
    duration_s: int
    nodes: int = 0
    chunks: ChunkRequest | None = None
    partition: int = -1
    licences: NDArray[np.int64] | None = None
    displace: bool = False


@dataclass(frozen=True)
class ReservationSlot:
    """The slot found, or the jobs in the way.

    Attributes:
        nodes: (n,) int32, ascending; empty: no slot at that time.
        planned: rows of the plan that are displaced or, without nodes, in the way.
        running: rows of `Snapshot.running` that are in the way; empty with nodes.
        next_start_s: without nodes: the earliest slot; NEVER: none.
    """

    nodes: NDArray[np.int32]
    planned: tuple[int, ...]
    running: tuple[int, ...]
    next_start_s: int


def find_slot(snapshot: Snapshot, plan: Plan, request: ReservationRequest) -> ReservationSlot:
    """Searches for a slot.

    Raises:
        ConfigError: the cluster has no such nodes, not even busy ones.
        RequestError: the cluster cannot hold such chunks.
    """
    world = _with(snapshot, request)
    end_s = request.start_s + request.duration_s
    overlaps = _overlapping(plan, request.start_s, end_s)
    staying = plan
    if request.displace:
        staying = dataclasses.replace(
            plan, start_s=np.where(plan.start_s == plan.now_s, plan.start_s, NEVER)
        )
        overlaps &= plan.start_s != plan.now_s
    each = np.diff(plan.indptr)
    load = np.bincount(plan.nodes[np.repeat(overlaps, each)], minlength=len(snapshot.nodes)).astype(
        np.int32
    )
    finder = _Finder(world, staying, rank=load)
    found = finder.find(request.start_s, request.start_s)
    if found is not None:
        nodes = found[1]
        displaced = _rows_on(plan, overlaps, nodes, _holders(snapshot, plan, request))
        displaced = displaced if request.displace else ()
        return ReservationSlot(nodes, displaced, (), NEVER)
    later = finder.find(request.start_s, NEVER - 1)
    members = world.partitions[-1].nodes
    in_the_way = _overlapping(staying, request.start_s, end_s)
    return ReservationSlot(
        np.empty(0, dtype=np.int32),
        _rows_on(plan, in_the_way, members, _holders(snapshot, plan, request)),
        _running_on(snapshot, request.start_s, members),
        NEVER if later is None else later[0],
    )


def _overlapping(plan: Plan, start_s: int, end_s: int) -> NDArray[np.bool_]:
    """Which rows of a plan overlap [start_s, end_s)."""
    there: NDArray[np.bool_] = (plan.start_s != NEVER) & (plan.start_s != UNPLANNED)
    there &= (plan.start_s < end_s) & (plan.end_s > start_s)
    return there


def _wanted(snapshot: Snapshot, request: ReservationRequest) -> NDArray[np.int64]:
    """(L,) licences that a request reserves."""
    none = np.zeros(len(snapshot.licences), dtype=np.int64)
    return none if request.licences is None else request.licences


def _holders(snapshot: Snapshot, plan: Plan, request: ReservationRequest) -> NDArray[np.bool_]:
    """Which rows of a plan hold a requested licence."""
    wanted = _wanted(snapshot, request) > 0
    held = snapshot.jobs.licences[plan.job][:, wanted]
    return np.asarray((held > 0).any(axis=1), dtype=bool)


def _rows_on(
    plan: Plan, rows: NDArray[np.bool_], nodes: NDArray[np.int32], holders: NDArray[np.bool_]
) -> tuple[int, ...]:
    """Those of some rows that are on these nodes or hold its licences, by start."""
    owner = np.repeat(np.arange(len(plan)), np.diff(plan.indptr))
    on = owner[np.isin(plan.nodes, nodes) & rows[owner]]
    found = np.union1d(on, np.flatnonzero(rows & holders))
    return tuple(found[np.argsort(plan.start_s[found], kind="stable")].tolist())


def _running_on(snapshot: Snapshot, start_s: int, nodes: NDArray[np.int32]) -> tuple[int, ...]:
    """Running jobs on these nodes that do not end before the start, last end first."""
    running = snapshot.running
    owner = np.repeat(np.arange(len(running)), np.diff(running.indptr))
    found = np.unique(owner[np.isin(running.nodes, nodes) & (running.end_s[owner] > start_s)])
    return tuple(found[np.argsort(-running.end_s[found], kind="stable")].tolist())


class _Finder:
    """A book of the jobs that stay, and the possible layouts of the request."""

    def __init__(self, world: Snapshot, plan: Plan, *, rank: NDArray[np.int32]) -> None:
        row = len(world.jobs) - 1
        eligibility = Eligibility(world)
        found = eligibility.alternatives(np.array([row], dtype=np.int64))[0]
        if isinstance(found, Reason):
            raise ConfigError("reservation", found.text)
        lowered = lower(NO_RULES, world)
        cluster = ClusterBook(world, eligibility, rank, lowered=lowered)
        book_plan(cluster, lowered, world, plan, without=row)
        self._book = cluster.book
        self._length_s = int(world.jobs.time_limit_s[row])
        wanted = world.jobs.licences[row : row + 1]
        terms = cluster.licences.add_terms(_NO_TERMS, wanted, Mode.BOTH)
        self._terms = terms.constraint, terms.amount, terms.mode
        self._requests = [
            cluster.request(layout)
            for alternative in found
            for layout in layouts(world, eligibility, row, alternative).minimum
        ]

    def find(self, earliest_s: int, latest_s: int) -> tuple[int, NDArray[np.int32]] | None:
        """The earliest start within these bounds, and the nodes."""
        best: tuple[int, NDArray[np.int32]] | None = None
        for request in self._requests:
            until_s = latest_s if best is None else best[0] - 1
            if until_s < earliest_s:
                break
            found = self._book.find(request, self._length_s, self._terms, earliest_s, until_s)
            if found is not None:
                best = found[0], np.unique(found[1]).astype(np.int32)
        return best


def _with(snapshot: Snapshot, request: ReservationRequest) -> Snapshot:
    """The snapshot, with a partition of the candidate nodes and a job of the requested shape."""
    nodes = (
        np.arange(len(snapshot.nodes), dtype=np.int32)
        if request.partition < 0
        else snapshot.partitions[request.partition].nodes
    )
    partition = Partition(_MARK, nodes)
    job = _job(snapshot, request, len(snapshot.partitions))
    return dataclasses.replace(
        snapshot,
        partitions=(*snapshot.partitions, partition),
        jobs=snapshot.jobs.followed_by(job),
        topology=None,  # a reservation may lie across fabrics: its jobs may not
    )


def _job(snapshot: Snapshot, request: ReservationRequest, partition: int) -> JobTable:
    """One job of the requested shape, on whole nodes, as a table of one row."""
    none, nothing = np.zeros(1, dtype=np.int64), np.zeros((1, len(snapshot.resources)), np.int64)
    nodes = np.array([max(request.nodes, 1)], dtype=np.int64)
    job = JobTable(
        id=objects([_MARK]),
        priority=none,
        submit_s=none,
        eligible_s=none,
        time_limit_s=np.array([request.duration_s], dtype=np.int64),
        partitions=objects([(partition,)]),
        min_nodes=nodes,
        max_nodes=nodes,
        per_node=nothing,
        per_task=nothing,
        exclusive=np.ones(1, dtype=bool),
        licences=_wanted(snapshot, request).reshape(1, -1),
    )
    if request.chunks is not None:
        lowered, hosts = _lowered(snapshot, request.chunks)
        job = job.rows(np.zeros(1, dtype=np.intp))  # with columns of its own
        job.required[0] = hosts
        job.chunks[0] = lowered
        for name, value in vars(chunk_columns(lowered)).items():
            getattr(job, name)[0] = value
    return job


def _lowered(snapshot: Snapshot, chunks: ChunkRequest) -> tuple[LoweredChunks, tuple[int, ...]]:
    """The chunks in the cluster's columns, and the node that they name."""
    cluster = ClusterWords(
        column={name: at for at, name in enumerate(snapshot.resources) if at > MEMORY_MIB},
        n_resources=len(snapshot.resources),
        features=frozenset().union(*snapshot.nodes.features),
        dialect=snapshot.dialect,
    )
    held = dialect_of(snapshot).controller_request(chunks, cluster.generic)
    if held.node and held.node not in snapshot.nodes.names:
        raise ConfigError("reservation", f"there is no node '{held.node}'")
    hosts = (snapshot.nodes.names.index(held.node),) if held.node else ()
    return lower_chunks(chunks, cluster, constraint=held.constraint), hosts
