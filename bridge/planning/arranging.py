# SPDX-License-Identifier: Apache-2.0
"""Which nodes the jobs that start in one cycle get, all of them together.

Words
    window    jobs of two nodes or more that start now, and may be placed on the same idle nodes.

Rules
    1. The plan stage has said who starts now. Jobs of one node, tasks of arrays, and jobs that
       named their nodes or asked for chunks stay where it put them.
    2. A window's nodes are those it has in the plan, and all others that are idle now, open to its
       jobs until their end, and on a switch. Jobs that hold whole nodes and may use the same ones
       form one window; each job that shares nodes is one of its own, on nodes that can hold what it
       has on each.
    3. Windows of more nodes go first. A window whose new sets cost no less keeps what it has.
    4. The new sets are handed to the plan stage as nodes that the jobs require, and everything is
       planned again around them. If any job then started later than it would have, the first plan
       stays: nobody waits for somebody else's hops.
"""

import dataclasses
import itertools
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility import Eligibility
from bridge.planning.fabric import Fabric, NodeSets
from bridge.units import NEVER, UNPLANNED


@runtime_checkable
class Arranger(Protocol):
    """A place policy that also places the jobs that start together, on a tree of switches."""

    def arrange(
        self,
        fabric: Fabric,
        idle: NDArray[np.int32],
        sizes: NDArray[np.int32],
        rng: np.random.Generator,
    ) -> NodeSets:
        """Finds node sets for a window of jobs.

        Args:
            fabric: the switches, and what hops across them cost.
            idle: nodes on switches, ascending.
            sizes: (n_jobs,) nodes that each job wants.
            rng: the only source of chance.

        Returns:
            Sets of idle nodes, none twice, none across two fabrics; a job that found no place has
            none.
        """


@dataclass(frozen=True)
class Proposal:
    """New nodes for some of the jobs that start now.

    Attributes:
        rows: of the plan.
        nodes: for each of them, ascending.
        before, after: what the windows cost in the plan, and with these nodes.
        jobs: in windows, moved or not.
    """

    rows: tuple[int, ...]
    nodes: tuple[NDArray[np.int32], ...]
    before: float
    after: float
    jobs: int


def propose(
    snapshot: Snapshot, plan: Plan, fabric: Fabric, place: Arranger, rng: np.random.Generator
) -> Proposal:
    """Finds cheaper nodes for the jobs that start now.

    Args:
        snapshot: the world as it is believed.
        plan: who starts now, and where so far.
        fabric: the switches.
        place: finds node sets.
        rng: its chance.
    """
    windows = _windows(snapshot, plan, fabric)
    rows: list[int] = []
    nodes: list[NDArray[np.int32]] = []
    before = after = 0.0
    jobs = 0
    room = _Room(snapshot, plan)
    for window in windows:
        now = [plan.nodes_of(row) for row in window.rows]
        old = float(fabric.costs(_csr(now)).sum())
        room.leave(window.rows)
        idle = np.flatnonzero(room.holds(window) & window.open).astype(np.int32)
        sizes = np.array([len(held) for held in now], dtype=np.int32)
        indptr, found = place.arrange(fabric, idle, sizes, rng)
        new = float(fabric.costs((indptr, found)).sum())
        placed = bool(np.array_equal(np.diff(indptr), sizes))
        sets = [found[a:b] for a, b in itertools.pairwise(indptr)]
        better = placed and new < old
        if better:
            rows += window.rows
            nodes += sets
        room.enter(window.rows, sets if better else now)
        before += old
        after += new if better else old
        jobs += len(window.rows)
    return Proposal(tuple(rows), tuple(nodes), before, after, jobs)


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


def _windows(snapshot: Snapshot, plan: Plan, fabric: Fabric) -> list[_Window]:
    jobs = snapshot.jobs
    starting = plan.starts_now
    widths = np.diff(plan.indptr)
    job = plan.job[starting]
    movable = (widths[starting] > 1) & (jobs.array_tasks[job] == 0)
    movable &= ~jobs.chunks[job].astype(bool) & ~jobs.required[job].astype(bool)
    starting = starting[movable]
    if not len(starting):
        return []
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


def _csr(sets: list[NDArray[np.int32]]) -> NodeSets:
    indptr = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    return indptr, np.concatenate(sets) if sets else np.zeros(0, dtype=np.int32)
