# SPDX-License-Identifier: Apache-2.0
"""Moves jobs that start now to cheaper nodes that no other job needs while they run.

This finds what swaps of nodes of one type (`bridge.planning.placement.node_swap`) cannot:
sets of nodes of several types, and room on shared nodes.

Rules
    1. A job moves to nodes that are open to it until its end, on a switch, idle now, and without a
       planned start before its end. A job that shares nodes moves to nodes that can hold its
       maximum on any node, instead of idle ones. So no other job's nodes or starts change.
    2. Jobs that hold whole nodes and can use the same ones are first tried together, on nodes that
       are free until the last of them ends; then one by one, widest first.
    3. Only cheaper sets are used, and none on more leaf switches than a job waits for and has.
    4. Fewer hops must not cost expensive or empty nodes. A job never moves to nodes of more weight
       than its heaviest, or with more generic resources that it does not request than its own
       have; a job that shares nodes never to more idle ones than it has.
       Where limits or FreePools count CPUs or memory, a job on whole nodes never moves to nodes
       with more of these in total, as it would count more. Where bounds have weights of nodes,
       it moves between nodes of equal weights only.
    5. Jobs on one node, jobs that require nodes, and jobs with chunks of several kinds stay. No job
       moves to nodes that FreePools or protections name.
"""

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.model.hop_tree import csr
from bridge.model.node import MEMORY_MIB
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.alternatives import Eligibility
from bridge.planning.placement.node_swap import NodeSwapper, SwapContext
from bridge.units import NEVER


def relocate(
    context: SwapContext,
    swapper: NodeSwapper,
    shut: NDArray[np.bool_],
    *,
    weighed: bool = False,
    kinds: NDArray[np.int64] | None = None,
) -> None:
    """Moves jobs of a plan that start now.

    Args:
        context: the constants of the cycle.
        swapper: the current nodes of all jobs; jobs are moved there.
        shut: (n_nodes,) nodes that FreePools or protections name.
        weighed: limits or FreePools count CPUs or memory.
        kinds: (n_nodes,) equal for nodes on which any job adds the same to bounds; None: no bound.
    """
    plan, snapshot = swapper.given, context.snapshot
    rows = plan.starts_now[_movable(snapshot, plan)]
    if not len(rows):
        return
    state = _NodeState(context, swapper)
    candidates = _candidates(context, swapper, rows, shut, weighed=weighed, kinds=kinds)
    together: dict[bytes, list[_Candidate]] = {}
    for candidate in candidates:
        if candidate.whole:
            together.setdefault(candidate.open.tobytes(), []).append(candidate)
    for window in together.values():
        if len(window) > 1:
            _try(context, swapper, state, window)
    for candidate in candidates:
        _try(context, swapper, state, [candidate])


@dataclass(frozen=True)
class _Candidate:
    """A job that can move.

    Attributes:
        open: (n_nodes,) bool: eligible, not closed before its end, on a switch, large enough, and
            of no more weight.
        whole: it holds whole nodes.
        use: (R,) its maximum on one of its nodes.
        maximum: maximum number of leaf switches; 0: any number.
        had: (R,) what its nodes have of the generic resources that it does not request and of the
            counted resources; of others a bound that never binds.
    """

    row: int
    open: NDArray[np.bool_]
    whole: bool
    use: NDArray[np.int64]
    end_s: int
    maximum: int
    had: NDArray[np.int64]


def _movable(snapshot: Snapshot, plan: Plan) -> NDArray[np.bool_]:
    """Which of the rows that start now may move by rule 5."""
    jobs, starting = snapshot.jobs, plan.starts_now
    job = plan.job[starting]
    movable: NDArray[np.bool_] = np.diff(plan.indptr)[starting] > 1
    movable &= ~jobs.required[job].astype(bool)
    for at in np.flatnonzero(movable & jobs.chunks[job].astype(bool)).tolist():
        movable[at] = len(jobs.chunks[job[at]].request.kinds) == 1
    return movable


def _candidates(
    context: SwapContext,
    swapper: NodeSwapper,
    rows: NDArray[np.intp],
    shut: NDArray[np.bool_],
    *,
    weighed: bool,
    kinds: NDArray[np.int64] | None,
) -> list[_Candidate]:
    """The jobs that can move, widest first."""
    snapshot, plan = context.snapshot, swapper.given
    eligibility = Eligibility(snapshot)
    enterable = (context.hop_tree.topology.leaf_of_node >= 0) & ~shut
    found = []
    answers = eligibility.alternatives(plan.job[rows].astype(np.int64))
    for row, answer in zip(rows.tolist(), answers, strict=True):
        assert isinstance(answer, tuple), "a job without alternatives starts"
        held, end_s = swapper.nodes_of(row), int(plan.end_s[row])
        for alternative in answer:
            mask = eligibility.classes.mask(alternative.class_)
            if alternative.partition == plan.partition[row] and mask[held].all():
                break
        else:  # planned under another constraint than it seems: leave it alone
            continue
        open_ = mask & enterable
        if kinds is not None:
            if (kinds[held] != kinds[held[0]]).any():
                continue  # it may add more on nodes of one kind
            open_ = open_ & (kinds == kinds[held[0]])
        for start_s, until_s, closed in eligibility.classes.closed(alternative.class_):
            if start_s < end_s and until_s > plan.now_s:
                open_ = open_ & ~closed
        use, weight = _use(snapshot, plan, row), snapshot.nodes.weight
        capacity = snapshot.nodes.capacity
        unwanted = (use == 0) & (np.arange(len(use)) > MEMORY_MIB)
        if weighed and _whole(snapshot, plan, row):
            unwanted[: MEMORY_MIB + 1] = True
        had = np.where(unwanted, capacity[held].sum(axis=0), NEVER)
        open_ = open_ & (weight <= weight[held].max())
        open_ = open_ & (capacity >= use).all(axis=1) & (capacity <= had).all(axis=1)
        whole, maximum = _whole(snapshot, plan, row), int(swapper.maximum[row])
        if whole and not _differ(context.node_type[open_]) and open_[held].all():
            continue  # it has already swapped with all of them
        found.append(_Candidate(row, open_, whole, use, end_s, maximum, had))
    width = np.diff(plan.indptr)
    return sorted(found, key=lambda candidate: (-int(width[candidate.row]), candidate.row))


def _differ(node_type: NDArray[np.int64]) -> bool:
    return bool((node_type != node_type[:1]).any())


def _whole(snapshot: Snapshot, plan: Plan, row: int) -> bool:
    """Whether a row holds whole nodes."""
    alone = snapshot.partitions[int(plan.partition[row])].exclusive
    return bool(snapshot.jobs.exclusive[plan.job[row]]) or alone


def _use(snapshot: Snapshot, plan: Plan, row: int) -> NDArray[np.int64]:
    """The most that a job has on one of its nodes."""
    jobs, job = snapshot.jobs, int(plan.job[row])
    tasks = plan.tasks[plan.indptr[row] : plan.indptr[row + 1]].max(initial=0)
    use: NDArray[np.int64] = jobs.per_node[job] + jobs.per_task[job] * int(tasks)
    return use


def _try(
    context: SwapContext, swapper: NodeSwapper, state: "_NodeState", candidates: list[_Candidate]
) -> None:
    """Moves some jobs that can use the same nodes, if there are cheaper ones."""
    hop_tree, rows = context.hop_tree, [candidate.row for candidate in candidates]
    capacity = context.snapshot.nodes.capacity
    held = [swapper.nodes_of(row) for row in rows]
    old = hop_tree.costs(csr(held)).sum()
    state.leave(candidates, held)
    last_s = max(candidate.end_s for candidate in candidates)
    free = candidates[0].open & state.holds(candidates[0], last_s)
    if len(candidates) == 1:
        if not candidates[0].whole and not state.idle(held[0]):
            free &= ~state.is_idle
        free[held[0]] = candidates[0].open[held[0]]  # its own are free as long as it needs them
    idle = np.flatnonzero(free).astype(np.int32)
    sizes = np.array([len(nodes) for nodes in held], dtype=np.int32)
    sets = held
    if len(idle) >= sizes.sum():
        indptr, found = context.place.place_jobs(hop_tree, idle, sizes, context.rng)
        proposed = [found[a:b] for a, b in itertools.pairwise(indptr)]
        if (
            np.array_equal(np.diff(indptr), sizes)
            and hop_tree.costs((indptr, found)).sum() < old
            and all(
                hop_tree.within(candidate.maximum, new, had)
                and (candidate.whole or state.idle(new) <= state.idle(had))
                and (capacity[new].sum(axis=0) <= candidate.had).all()
                for candidate, new, had in zip(candidates, proposed, held, strict=True)
            )
        ):
            sets = proposed
            for row, nodes in zip(rows, sets, strict=True):
                swapper.put(row, nodes)
    state.enter(candidates, sets)


class _NodeState:
    """The free resources of every node now, and until when they are free."""

    def __init__(self, context: SwapContext, swapper: NodeSwapper) -> None:
        snapshot, plan = context.snapshot, swapper.given
        n_nodes, running = len(snapshot.nodes), snapshot.running
        self._free = snapshot.nodes.capacity.astype(np.int64).copy()
        self._holders = np.zeros(n_nodes, dtype=np.int64)
        self._whole = np.zeros(n_nodes, dtype=np.int64)
        np.subtract.at(self._free, running.nodes, running.use)
        np.add.at(self._holders, running.nodes, 1)
        whole = np.repeat(running.exclusive, np.diff(running.indptr))
        np.add.at(self._whole, running.nodes[whole], 1)
        for row in plan.starts_now.tolist():
            nodes = swapper.nodes_of(row)
            self._hold(nodes, _use(snapshot, plan, row), _whole(snapshot, plan, row), 1)
        self._until_s = np.full(n_nodes, NEVER, dtype=np.int64)
        nodes, start_s = swapper.later()
        np.minimum.at(self._until_s, nodes, start_s)

    def holds(self, candidate: _Candidate, until_s: int) -> NDArray[np.bool_]:
        """(n_nodes,) which nodes have room for a job until an instant."""
        room = self._until_s >= until_s
        if candidate.whole:
            room &= self.is_idle
        else:
            room &= (self._whole == 0) & (self._free >= candidate.use).all(axis=1)
        return room

    @property
    def is_idle(self) -> NDArray[np.bool_]:
        """(n_nodes,) which nodes are idle now."""
        idle: NDArray[np.bool_] = self._holders == 0
        return idle

    def idle(self, nodes: NDArray[np.int32]) -> int:
        """How many of these nodes are idle now."""
        return int(np.count_nonzero(self._holders[nodes] == 0))

    def leave(self, candidates: list[_Candidate], held: list[NDArray[np.int32]]) -> None:
        """Removes jobs from nodes."""
        for candidate, nodes in zip(candidates, held, strict=True):
            self._hold(nodes, candidate.use, candidate.whole, -1)

    def enter(self, candidates: list[_Candidate], held: list[NDArray[np.int32]]) -> None:
        """Puts jobs on nodes."""
        for candidate, nodes in zip(candidates, held, strict=True):
            self._hold(nodes, candidate.use, candidate.whole, 1)

    def _hold(self, nodes: NDArray[np.int32], use: NDArray[np.int64], whole: bool, by: int) -> None:
        self._free[nodes] -= by * use
        self._holders[nodes] += by
        self._whole[nodes] += by * whole
