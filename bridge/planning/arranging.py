# SPDX-License-Identifier: Apache-2.0
"""Which nodes the jobs of a plan get, all of them together.

Words
    window    jobs of two nodes or more that start now, and may be placed on the same idle nodes.

Rules
    1. The plan stage has said who starts when. First jobs trade nodes that are alike, which changes
       no start (`bridge.planning.trading`).
    2. What trading cannot reach is proposed: sets across nodes of several kinds, and on nodes that
       other jobs share. Jobs of one node, tasks of arrays, and jobs that named their nodes or asked
       for chunks stay where they are here.
    3. A window's nodes are those it has in the plan, and all others that are idle now, open to its
       jobs until their end, and on a switch. Jobs that hold whole nodes and may use the same ones
       form one window; each job that shares nodes is one of its own, on nodes that can hold what it
       has on each.
    4. Windows of more nodes go first. A window whose new sets cost no less keeps what it has, and
       so does one in which a job would sit on more leaf switches than it allows, and than it does.
    5. The new sets are handed to the plan stage as nodes that the jobs require, and everything is
       planned again around them, and trades again. If any job then started later than it would
       have, or the jobs that start now paid no less, the first plan stays: nobody waits for
       somebody else's hops.
"""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.model.limits import FreePool
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.model.topology import Arranged
from bridge.planning.eligibility import Eligibility
from bridge.planning.fabric import Arranger, Fabric, csr
from bridge.planning.kept_plan import KeptPlan
from bridge.planning.trading import Ground, kinds, trade
from bridge.ports import Memory
from bridge.units import NEVER, UNPLANNED


def arrange(
    snapshot: Snapshot,
    plan: Plan,
    place: Arranger,
    memory: Memory,
    rng: np.random.Generator,
    *,
    free_pools: Sequence[FreePool],
    again: Callable[[Snapshot], Plan],
) -> Plan:
    """Gives the jobs of a plan cheaper nodes; nobody starts later.

    Args:
        snapshot: the world as it is believed.
        plan: who starts when, and where so far.
        place: finds node sets.
        memory: what was made of it is noted there; the plan that is kept follows.
        rng: chance.
        free_pools: that the plan stage obeys.
        again: plans everything again.
    """
    assert snapshot.topology is not None, "who arranges has switches"
    fabric = Fabric.of(snapshot.topology)
    ground = Ground(snapshot, fabric, kinds(snapshot, fabric, free_pools), place, rng)
    rows = plan.starts_now[np.diff(plan.indptr)[plan.starts_now] > 1]
    before = _paid(fabric, plan, rows)
    source, best = plan, trade(ground, plan)
    after = _paid(fabric, best.plan, rows)
    proposal = propose(ground, best.plan)
    refused = False
    if proposal.rows:
        kept, promised = memory.kept_plan, memory.planned_start_s
        other = again(require(snapshot, best.plan, proposal))
        refused = delays(plan, other)
        if not refused:
            traded = trade(ground, other)
            paid = _paid(fabric, traded.plan, rows)
            if _sum(paid) < _sum(after):
                source, best, after = other, traded, paid
        if source is plan:
            memory.kept_plan, memory.planned_start_s = kept, promised
    if isinstance(memory.kept_plan, KeptPlan):
        ids = snapshot.jobs.id[source.job]
        memory.kept_plan = memory.kept_plan.moved(ids, source, best.image)
    counted = np.isfinite(before) & np.isfinite(after)
    memory.arranged = Arranged(
        len(rows), float(before[counted].sum()), float(after[counted].sum()), refused
    )
    return best.plan


def _paid(fabric: Fabric, plan: Plan, rows: NDArray[np.intp]) -> NDArray[np.float64]:
    """What some rows pay for their nodes."""
    return fabric.costs(csr([plan.nodes_of(row) for row in rows.tolist()]))


def _sum(paid: NDArray[np.float64]) -> tuple[int, float]:
    """Jobs across fabrics first, then what the others pay."""
    finite = np.isfinite(paid)
    return int(np.count_nonzero(~finite)), float(paid[finite].sum())


@dataclass(frozen=True)
class Proposal:
    """New nodes for some of the jobs that start now.

    Attributes:
        rows: of the plan.
        nodes: for each of them, ascending.
    """

    rows: tuple[int, ...]
    nodes: tuple[NDArray[np.int32], ...]


def propose(ground: Ground, plan: Plan) -> Proposal:
    """Finds cheaper nodes for the jobs that start now, beyond what trading finds."""
    snapshot, kind = ground.snapshot, ground.kind
    rows: list[int] = []
    nodes: list[NDArray[np.int32]] = []
    if not _movable(snapshot, plan).any():
        return Proposal((), ())
    room = _Room(snapshot, plan)
    for window in _windows(snapshot, plan, ground.fabric):
        now = [plan.nodes_of(row) for row in window.rows]
        room.leave(window.rows)
        idle = np.flatnonzero(room.holds(window) & window.open).astype(np.int32)
        sets = now
        if window.use is not None or (kind[idle] != kind[idle[:1]]).any():
            most = snapshot.jobs.switches[plan.job[list(window.rows)]]
            sets = _cheaper(ground, most, now, idle)
            if sets is not now:
                rows += window.rows
                nodes += sets
        room.enter(window.rows, sets)
    return Proposal(tuple(rows), tuple(nodes))


def _cheaper(
    ground: Ground, most: NDArray[np.int32], now: list[NDArray[np.int32]], idle: NDArray[np.int32]
) -> list[NDArray[np.int32]]:
    """New sets for a window whose jobs may sit on so many leaf switches, or those it has."""
    fabric = ground.fabric
    old = fabric.costs(csr(now)).sum()
    sizes = np.array([len(held) for held in now], dtype=np.int32)
    indptr, found = ground.place.arrange(fabric, idle, sizes, ground.rng)
    if not np.array_equal(np.diff(indptr), sizes) or fabric.costs((indptr, found)).sum() >= old:
        return now
    sets = [found[a:b] for a, b in itertools.pairwise(indptr)]
    legal = all(
        fabric.within(int(bound), new, held)
        for bound, new, held in zip(most, sets, now, strict=True)
    )
    return sets if legal else now


def require(snapshot: Snapshot, plan: Plan, proposal: Proposal) -> Snapshot:
    """The snapshot in which the jobs that were moved require their new nodes, and no others."""
    jobs = snapshot.jobs
    required, least, most = jobs.required.copy(), jobs.min_nodes.copy(), jobs.max_nodes.copy()
    for row, nodes in zip(proposal.rows, proposal.nodes, strict=True):
        job = int(plan.job[row])
        required[job] = tuple(nodes.tolist())
        least[job] = most[job] = len(nodes)
    changed = dataclasses.replace(jobs, required=required, min_nodes=least, max_nodes=most)
    return dataclasses.replace(snapshot, jobs=changed)


def delays(before: Plan, after: Plan) -> bool:
    """Whether a job would start later under the second of two plans of the same rows."""
    if not np.array_equal(before.job, after.job):
        return True
    had = (before.start_s != UNPLANNED) & (before.start_s != NEVER)
    now = np.where(after.start_s == UNPLANNED, NEVER, after.start_s)
    return bool((now[had] > before.start_s[had]).any())


@dataclass(frozen=True)
class _Window:
    """Rows of the plan with the nodes open to them.

    Attributes:
        open: (n_nodes,) bool: eligible, not closed before they end, and on a switch.
        use: (R,) what a job has on each of its nodes; None: it holds them whole.
    """

    rows: tuple[int, ...]
    open: NDArray[np.bool_]
    use: NDArray[np.int64] | None


def _movable(snapshot: Snapshot, plan: Plan) -> NDArray[np.bool_]:
    """Which of the rows that start now rule 2 leaves."""
    jobs, starting = snapshot.jobs, plan.starts_now
    job = plan.job[starting]
    movable: NDArray[np.bool_] = np.diff(plan.indptr)[starting] > 1
    movable &= (jobs.array_tasks[job] == 0) & ~jobs.chunks[job].astype(bool)
    movable &= ~jobs.required[job].astype(bool)
    return movable


def _windows(snapshot: Snapshot, plan: Plan, fabric: Fabric) -> list[_Window]:
    jobs, widths = snapshot.jobs, np.diff(plan.indptr)
    starting = plan.starts_now[_movable(snapshot, plan)]
    eligibility = Eligibility(snapshot)
    on_switch = fabric.topology.leaf_of_node >= 0
    together: dict[tuple[bytes, int], tuple[list[int], NDArray[np.bool_]]] = {}
    windows: list[_Window] = []
    answers = eligibility.alternatives(plan.job[starting].astype(np.int64))
    for row, answer in zip(starting.tolist(), answers, strict=True):
        assert isinstance(answer, tuple), "a job without alternatives starts"
        held, end_s = plan.nodes_of(row), int(plan.end_s[row])
        for alternative in answer:
            mask = eligibility.class_mask(alternative.class_)
            if alternative.partition == plan.partition[row] and mask[held].all():
                break
        else:  # planned under another constraint than it seems: leave it alone
            continue
        open_ = mask & on_switch
        for start_s, until_s, shut in eligibility.closed(alternative.class_):
            if start_s < end_s and until_s > plan.now_s:
                open_ = open_ & ~shut
        if not open_[held].all():
            continue
        which = int(plan.job[row])
        whole = bool(jobs.exclusive[which]) or snapshot.partitions[alternative.partition].exclusive
        if whole:
            large = (snapshot.nodes.capacity >= _use(snapshot, plan, row)).all(axis=1)
            open_ = open_ & large
            key = (open_.tobytes(), 0)
            together.setdefault(key, ([], open_))[0].append(row)
        else:
            windows.append(_Window((row,), open_, _use(snapshot, plan, row)))
    windows += [_Window(tuple(rows), open_, None) for rows, open_ in together.values()]
    return sorted(windows, key=lambda w: (-sum(int(widths[row]) for row in w.rows), w.rows))


def _use(snapshot: Snapshot, plan: Plan, row: int) -> NDArray[np.int64]:
    """The most that a job has on one of its nodes."""
    jobs, job = snapshot.jobs, int(plan.job[row])
    tasks = plan.tasks[plan.indptr[row] : plan.indptr[row + 1]].max(initial=0)
    use: NDArray[np.int64] = jobs.per_node[job] + jobs.per_task[job] * int(tasks)
    return use


class _Room:
    """What is free on every node now, beside all that starts now."""

    def __init__(self, snapshot: Snapshot, plan: Plan) -> None:
        self._snapshot, self._plan = snapshot, plan
        n_nodes = len(snapshot.nodes)
        running = snapshot.running
        self._free = snapshot.nodes.capacity.astype(np.int64).copy()
        self._holders = np.zeros(n_nodes, dtype=np.int64)
        self._whole = np.zeros(n_nodes, dtype=np.int64)
        np.subtract.at(self._free, running.nodes, running.use)
        np.add.at(self._holders, running.nodes, 1)
        whole = np.repeat(running.exclusive, np.diff(running.indptr))
        np.add.at(self._whole, running.nodes[whole], 1)
        for row in plan.starts_now.tolist():
            self._hold(row, plan.nodes_of(row), 1)

    def holds(self, window: _Window) -> NDArray[np.bool_]:
        """(n_nodes,) which nodes have room for a job of the window."""
        if window.use is None:
            idle: NDArray[np.bool_] = self._holders == 0
            return idle
        fits: NDArray[np.bool_] = (self._whole == 0) & (self._free >= window.use).all(axis=1)
        return fits

    def leave(self, rows: tuple[int, ...]) -> None:
        """Takes rows from the nodes they have in the plan."""
        for row in rows:
            self._hold(row, self._plan.nodes_of(row), -1)

    def enter(self, rows: tuple[int, ...], sets: list[NDArray[np.int32]]) -> None:
        """Puts rows on nodes."""
        for row, nodes in zip(rows, sets, strict=True):
            self._hold(row, nodes, 1)

    def _hold(self, row: int, nodes: NDArray[np.int32], sign: int) -> None:
        snapshot, plan = self._snapshot, self._plan
        job, partition = int(plan.job[row]), int(plan.partition[row])
        self._free[nodes] -= sign * _use(snapshot, plan, row)
        self._holders[nodes] += sign
        if snapshot.jobs.exclusive[job] or snapshot.partitions[partition].exclusive:
            self._whole[nodes] += sign
