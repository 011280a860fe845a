# SPDX-License-Identifier: Apache-2.0
"""Swaps nodes of one type between the jobs of a finished plan, so that each uses few switches.

Terms
    node type   nodes that are equal in everything that decides which jobs can use them when:
                capacity, features, weight, state, partitions, reservations, fabric, and the jobs
                and FreePools that name them.
    free        at an instant: no job holds the node both before and after it.
    to swap     to exchange everything that is planned on two nodes of one type from an instant at
                which both are free.

Rules
    1. No start changes, as everything planned on a node moves as a whole to an equivalent one. So
       no replanning is needed, and all rules for chunks, array tasks, shared nodes and limits still
       hold, whichever jobs move.
    2. Jobs that start now swap first, then those of the next `MAX_TIMES` announced starts.
    3. Jobs whose nodes are all free and of one type form a window with all others of that type, and
       the place policy finds sets for it. Only cheaper sets are used.
    4. One-node jobs take the remaining nodes, on the switch with the fewest idle nodes, to keep
       large gaps for large jobs. They cost no hops on any node.
    5. Jobs with nodes of several types, or with nodes shared with running jobs, exchange single
       nodes with all others as long as that gains (`bridge.core.Tree.exchange`).
    6. A job that waits for few leaf switches never ends up on more of them than it requests, or
       than it had. If a swap would do that to a job that starts later, everything planned for such
       jobs stays, and the swap is repeated without it.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.model.hop_tree import HopTree, csr
from bridge.model.job import JobTable
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.leaf_switches import waits_until_s
from bridge.ports import JointPlacer

MAX_TIMES = 3
"""Announced starts considered in one cycle."""
MAX_EXCHANGES = 50_000
"""Number of exchanges that are tried for jobs with nodes of several types."""
MAX_COUNTS = 1 << 26
"""Product of jobs and switches beyond which nothing is exchanged; the core has a count for each."""


def node_types(
    snapshot: Snapshot, hop_tree: HopTree, ruled: Sequence[NDArray[np.bool_]] = ()
) -> NDArray[np.int64]:
    """(n_nodes,) numbers that are equal for nodes of one type.

    Args:
        ruled: (n_nodes,) bool each, for rules of the site that name nodes.
    """
    nodes, jobs = snapshot.nodes, snapshot.jobs
    known: dict[frozenset[str], int] = {}
    features = [known.setdefault(each, len(known)) for each in nodes.features]
    leaf = hop_tree.topology.leaf_of_node
    columns = [
        *nodes.capacity.T,
        np.array(features, dtype=np.int64),
        nodes.weight,
        nodes.usable,
        np.where(leaf >= 0, hop_tree.tree.root[leaf], -1) if len(hop_tree.tree.root) else leaf,
        _named(jobs, len(nodes)),
    ]
    lists: list[NDArray[Any] | list[int]] = [
        *(part.nodes for part in snapshot.partitions),
        *(reservation.nodes for reservation in snapshot.reservations),
        *map(np.flatnonzero, ruled),
    ]
    inside = np.zeros((len(nodes), len(lists)), dtype=bool)
    for at, members in enumerate(lists):
        inside[members, at] = True
    columns.append(_rows_apart(np.packbits(inside, axis=1)))
    node_type = np.zeros(len(nodes), dtype=np.int64)
    for column in columns:
        if len(column) and (column != column[0]).any():
            values = np.unique(column, return_inverse=True)[1].astype(np.int64)
            both = node_type * (int(values.max()) + 1) + values
            node_type = np.unique(both, return_inverse=True)[1].astype(np.int64)
    return node_type


def _rows_apart(rows: NDArray[np.uint8]) -> NDArray[np.int64]:
    """(n,) numbers that are equal for equal rows."""
    if not rows.size:
        return np.zeros(len(rows), dtype=np.int64)
    whole = np.ascontiguousarray(rows).view(f"V{rows.shape[1]}").ravel()
    return np.unique(whole, return_inverse=True)[1].astype(np.int64)


def _named(jobs: JobTable, n_nodes: int) -> NDArray[np.int64]:
    """(n_nodes,) numbers that are equal for nodes that the same lists of jobs name."""
    lists: dict[int, list[int]] = {}
    for number, names in enumerate({*jobs.required, *jobs.excluded}):
        for node in names:
            lists.setdefault(node, []).append(number)
    known: dict[tuple[int, ...], int] = {}
    column = np.zeros(n_nodes, dtype=np.int64)
    for node, numbers in lists.items():
        column[node] = known.setdefault(tuple(numbers), len(known) + 1)
    return column


@dataclass(frozen=True)
class SwapContext:
    """The constants of one cycle of placement improvement.

    Attributes:
        snapshot: the cluster, with predictions.
        node_type: (n_nodes,) as `node_types` says.
        place: finds node sets.
        rng: its source of random numbers.
    """

    snapshot: Snapshot
    hop_tree: HopTree
    node_type: NDArray[np.int64]
    place: JointPlacer
    rng: np.random.Generator


class NodeSwapper:
    """A plan's node entries, and the current node of each.

    Attributes:
        given: the plan, legal.
        image: (nnz,) the node of each of its entries.
        maximum: (n_rows,) the most leaf switches that each may use; 0: any number.
    """

    def __init__(self, context: SwapContext, plan: Plan) -> None:
        self._context, self.given, self._hop_tree = context, plan, context.hop_tree
        snapshot, running = context.snapshot, context.snapshot.running
        self._leaf = context.hop_tree.topology.leaf_of_node
        self._n_nodes = len(snapshot.nodes)
        self.image = plan.nodes.copy()
        width = np.diff(plan.indptr)
        self._row = np.repeat(np.arange(len(plan)), width)
        self._start_s, self._end_s = plan.start_s[self._row], plan.end_s[self._row]
        wishes = (width > 1) & (plan.start_s < waits_until_s(snapshot.jobs)[plan.job])
        self.maximum = np.where(wishes, snapshot.jobs.switches[plan.job], 0).astype(np.int32)
        held_s = np.repeat(np.maximum(running.end_s, snapshot.now_s + 1), np.diff(running.indptr))
        self._running_s = np.zeros(self._n_nodes, dtype=np.int64)
        np.maximum.at(self._running_s, running.nodes, held_s)

    def plan(self) -> Plan:
        """The plan with the nodes as they are now."""
        plan = self.given
        if np.array_equal(self.image, plan.nodes):
            return plan
        order = np.lexsort((self.image, self._row))
        groups = None if plan.groups is None else plan.groups[order]
        return dataclasses.replace(
            plan, nodes=self.image[order], tasks=plan.tasks[order], groups=groups
        )

    def nodes_of(self, row: int) -> NDArray[np.int32]:
        given = self.given
        return np.sort(self.image[given.indptr[row] : given.indptr[row + 1]])

    def later(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The nodes of starts later than now, and these starts."""
        later = self._start_s > self.given.now_s
        return self.image[later], self._start_s[later]

    def put(self, row: int, nodes: NDArray[np.int32]) -> None:
        """Moves only this row to other nodes; its holdings on a node move as a whole."""
        own = slice(int(self.given.indptr[row]), int(self.given.indptr[row + 1]))
        image = self.image[own]
        gone = ~np.isin(image, nodes)
        image[gone] = nodes[~np.isin(nodes, image)]

    def swap_all(self) -> None:
        """Swaps nodes of jobs that start now, then of those at the next announced starts."""
        given = self.given
        wide_s = np.unique(given.start_s[np.diff(given.indptr) > 1])
        if len(given.starts_now):
            self.swap_at(given.now_s)
        for at_s in wide_s[wide_s > given.now_s][:MAX_TIMES].tolist():
            self.swap_at(at_s)

    def swap_at(self, at_s: int) -> None:
        """Swaps nodes of the jobs that start at an instant."""
        image = self.image.copy()
        self._swap_at(at_s, ())
        wishing = np.flatnonzero((self.maximum > 0) & (self.given.start_s > at_s))
        if any(self._scattered(row, image) for row in wishing.tolist()):
            self.image = image
            self._swap_at(at_s, image[np.isin(self._row, wishing)])

    def _scattered(self, row: int, image: NDArray[np.int32]) -> bool:
        """Whether a row is on too many leaf switches, and on more than with the nodes `image`."""
        own = slice(int(self.given.indptr[row]), int(self.given.indptr[row + 1]))
        return not self._hop_tree.within(int(self.maximum[row]), self.image[own], image[own])

    def _swap_at(self, at_s: int, stay: Sequence[int] | NDArray[np.int32]) -> None:
        """Swaps nodes of the jobs that start at an instant, except the nodes `stay`."""
        free = (self._running_s <= at_s) & (self._leaf >= 0)
        free[self.image[(self._start_s < at_s) & (self._end_s > at_s)]] = False
        free[list(stay)] = False
        here = np.flatnonzero(self._start_s == at_s)
        nodes = self.image[here]
        free[np.bincount(nodes, minlength=self._n_nodes) > 1] = False  # a shared node is not free
        holder = np.full(self._n_nodes, -1, dtype=np.int32)
        movable = here[free[nodes]]
        if not len(movable):
            return
        holder[self.image[movable]] = self._row[movable]
        before = holder.copy()
        mixed = self._mixed(here, free)
        for node_type in np.unique(self._context.node_type[self.image[movable]]).tolist():
            self._window(
                np.flatnonzero(free & (self._context.node_type == node_type)).astype(np.int32),
                holder,
                mixed,
            )
        if mixed & set(self._row[movable].tolist()):
            self._exchange(here, free, holder)
        self._move(before, holder, free, at_s)

    def _mixed(self, here: NDArray[np.intp], free: NDArray[np.bool_]) -> set[int]:
        """Rows of two or more nodes that are not all free and of one type."""
        nodes = self.image[here]
        node_type = np.where(free[nodes], self._context.node_type[nodes], -1)
        row = self._row[here]  # ascending: entries stand row by row
        unlike = (row[1:] == row[:-1]) & ((node_type[1:] != node_type[:-1]) | (node_type[1:] < 0))
        return set(row[1:][unlike].tolist())

    def _window(self, idle: NDArray[np.int32], holder: NDArray[np.int32], mixed: set[int]) -> None:
        """Finds sets for all jobs on free nodes of one type; `holder` is changed."""
        there = holder[idle]
        held: dict[int, NDArray[np.int32]] = {}
        for row in np.unique(there[there >= 0]).tolist():
            if row not in mixed:
                held[row] = idle[there == row]
        wide = [row for row in held if len(held[row]) > 1]
        pinned = [row for row in np.unique(there).tolist() if row in mixed]
        left = idle[~np.isin(there, pinned)] if pinned else idle
        sets = self._sets(left, [held[row] for row in wide], self.maximum[wide]) if wide else []
        single = [row for row in held if len(held[row]) == 1]
        holder[left] = -1
        for row, nodes in zip(wide, sets, strict=True):
            holder[nodes] = row
        if single:
            rest = left[holder[left] < 0]
            leaf = self._leaf[rest]
            size = np.bincount(leaf, minlength=len(self._hop_tree.topology))[leaf]
            holder[rest[np.lexsort((rest, leaf, size))[: len(single)]]] = single

    def _sets(
        self, idle: NDArray[np.int32], held: list[NDArray[np.int32]], maximum: NDArray[np.int32]
    ) -> list[NDArray[np.int32]]:
        """Sets for jobs of two or more nodes; the present ones unless there are cheaper ones."""
        costs = self._hop_tree.costs(csr(held))
        sets, open_ = list(held), np.arange(len(held))
        while len(open_):  # jobs whose new sets use too many switches keep their nodes
            sizes = np.array([len(held[at]) for at in open_], dtype=np.int32)
            place, rng = self._context.place, self._context.rng
            indptr, found = place.place_jobs(self._hop_tree, idle, sizes, rng)
            new = self._hop_tree.costs((indptr, found)).sum()
            placed = np.array_equal(np.diff(indptr), sizes)
            if not placed or new >= costs[open_].sum():
                break
            proposed = [found[a:b] for a, b in itertools.pairwise(indptr)]
            legal = np.array(
                [
                    self._hop_tree.within(int(maximum[at]), nodes, held[at])
                    for at, nodes in zip(open_, proposed, strict=True)
                ]
            )
            if legal.all():
                for at, nodes in zip(open_.tolist(), proposed, strict=True):
                    sets[at] = nodes
                break
            stay = np.concatenate([held[at] for at in open_[~legal]])
            idle, open_ = idle[~np.isin(idle, stay)], open_[legal]
        return sets

    def _exchange(
        self, here: NDArray[np.intp], free: NDArray[np.bool_], holder: NDArray[np.int32]
    ) -> None:
        """Exchanges single nodes between all jobs; `holder` is changed."""
        nodes = np.flatnonzero(free).astype(np.int32)
        fixed = here[~free[self.image[here]] & (self._leaf[self.image[here]] >= 0)]
        rows = np.unique(self._row[here])
        if len(rows) * len(self._hop_tree.topology) > MAX_COUNTS:
            return
        number = np.full(len(self.given) + 1, -1, dtype=np.int32)  # the last: no job
        number[rows] = np.arange(len(rows))
        found = self._hop_tree.tree.exchange(
            self._hop_tree.metric,
            np.concatenate((nodes, self.image[fixed])),
            np.concatenate((self._context.node_type[nodes], np.full(len(fixed), -1))).astype(
                np.int32
            ),
            np.concatenate((number[holder[nodes]], number[self._row[fixed]])),
            self.maximum[rows],
            MAX_EXCHANGES,
            int(self._context.rng.integers(1 << 62)),
        )[: len(nodes)]
        holder[nodes] = np.where(found >= 0, rows[found], -1)

    def _move(
        self,
        before: NDArray[np.int32],
        after: NDArray[np.int32],
        free: NDArray[np.bool_],
        at_s: int,
    ) -> None:
        """Moves everything planned from an instant on to the nodes of the new holders."""
        to = np.arange(self._n_nodes, dtype=np.int32)
        changed = np.flatnonzero(free & (before != after))
        if not len(changed):
            return
        # For each type, the old and new nodes of the same job (or of none) are paired in order.
        out = changed[np.lexsort((changed, before[changed], self._context.node_type[changed]))]
        into = changed[np.lexsort((changed, after[changed], self._context.node_type[changed]))]
        to[out] = into
        later = self._start_s >= at_s
        self.image[later] = to[self.image[later]]
