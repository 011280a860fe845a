# SPDX-License-Identifier: Apache-2.0
"""Trees of switches in ``bridge.core._core``; this file is not a module."""

import numpy as np
from numpy.typing import NDArray

NodeSets = tuple[NDArray[np.int64], NDArray[np.int32]]
"""``(indptr, nodes)``: job j gets ``nodes[indptr[j]:indptr[j + 1]]``, ascending; empty: not placed.

"""

class HopMetric:
    """The communication cost of a job.

    The hops between two nodes depend on the level of their lowest common switch. A job of n nodes
    costs ``unit / n`` times the sum of hops over its ordered pairs (``ordered``), or its unordered
    ones; ``floored``: rounded down.
    """

    def __init__(
        self,
        hops: NDArray[np.int64],
        unit: int = 1000,
        ordered: bool = True,
        floored: bool = False,
    ) -> None:
        """Makes a metric.

        Args:
            hops: (n_levels,) hops by level of switch; level 0: the switch the nodes hang on. At
                least 1 and rising.
            unit: the cost of a hop, 1 or more.
            ordered: count each pair twice.
            floored: round each job's cost down.

        Raises:
            ValueError: the hops do not rise, or something is out of range.
        """

class Tree:
    """Switches, and the nodes attached to them. Nodes under different roots cannot communicate.

    A switch without switches below it is at level 0; any other is one above its highest child.
    All methods take idle nodes as indices of attached nodes, each once, and job sizes in nodes, at
    least 1; a job that cannot be placed gets no nodes, and the others are placed all the same. For
    anything else, and for a metric with fewer levels than the tree, they raise ``ValueError``,
    whose text begins with the argument's name.
    """

    def __init__(self, parent: NDArray[np.int32], leaf_of_node: NDArray[np.int32]) -> None:
        """Makes a tree.

        Args:
            parent: (n_switches,) the switch above each; -1: a root. Unequal depths and several
                roots are allowed.
            leaf_of_node: (n_nodes,) the level-0 switch of each node; -1: none.

        Raises:
            ValueError: switches form a cycle or name switches that do not exist; or a node is
                attached to a switch that has others below it.
        """

    @property
    def n_switches(self) -> int:
        """Number of switches."""
    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
    @property
    def level(self) -> NDArray[np.int32]:
        """(n_switches,) levels."""
    @property
    def root(self) -> NDArray[np.int32]:
        """(n_switches,) the root above each switch."""
    def costs(
        self, metric: HopMetric, indptr: NDArray[np.int64], nodes: NDArray[np.int32]
    ) -> NDArray[np.float64]:
        """The cost of each job, from its counts per switch.

        Returns:
            (n_jobs,) costs; infinite for a job under several roots, 0 for one without nodes.
        """

    def sequential(self, idle: NDArray[np.int32], sizes: NDArray[np.int32]) -> NodeSets:
        """One job after the other takes the first idle nodes left.

        Args:
            idle: ascending.
            sizes: (n_jobs,) nodes wanted.
        """

    def contiguous(
        self, metric: HopMetric, idle: NDArray[np.int32], sizes: NDArray[np.int32]
    ) -> NodeSets:
        """The best disjoint runs on the sequence of idle nodes (SCAS), exactly.

        The sequence is cyclic. A dynamic program over the sequence and the multiset of jobs placed
        so far.

        Args:
            metric: the cost.
            idle: ascending.
            sizes: (n_jobs,) nodes requested.

        Returns:
            Sets of least total cost; no sets at all if the jobs do not fit together.

        Raises:
            ValueError: the jobs make more than 4,096 multisets.
        """

    def anneal(
        self,
        metric: HopMetric,
        idle: NDArray[np.int32],
        sizes: NDArray[np.int32],
        iterations: int,
        seed: int,
        restore: bool = True,
        hottest: float = 2500.0,
        coldest: float = 2.5,
        most_removed: int = 2,
    ) -> NodeSets:
        """Simulated annealing over runs on the sequence of idle nodes (DCAS).

        Args:
            metric: the cost.
            idle: ascending.
            sizes: (n_jobs,) nodes requested.
            iterations: moves tried: 1 to ``most_removed`` jobs are removed and put back, largest
                first, each at a random place.
            seed: random seed.
            restore: undo rejected moves; False: as in the published code, which does not, and so
                performs a random walk and keeps the best state.
            hottest: initial temperature.
            coldest: final temperature, > 0.
            most_removed: most jobs removed at once.
        """

    def compact(
        self,
        metric: HopMetric,
        idle: NDArray[np.int32],
        sizes: NDArray[np.int32],
        steps: int = 5_000_000,
        iterations: int = 0,
        seed: int = 0,
    ) -> NodeSets:
        """Node sets for all jobs together, contiguous or not.

        One job's best set is found exactly, by max-plus programs over counts per switch; ties leave
        the largest holes. All orders are tried for up to five jobs, then neighbourhoods until a
        bound is reached. Never worse than ``sequential``, nor, for up to eight jobs, than
        ``contiguous`` where that is quick (some hundred idle nodes).

        Args:
            metric: the cost.
            idle: in the order in which the nodes of one switch are to be taken.
            sizes: (n_jobs,) nodes requested.
            steps: most steps, of about a nanosecond each; 0: no bound.
            iterations: of the neighbourhood search; 0: no bound. Both 0: orders only.
            seed: random seed.
        """

    def exchange(
        self,
        metric: HopMetric,
        nodes: NDArray[np.int32],
        kind: NDArray[np.int32],
        holder: NDArray[np.int32],
        most: NDArray[np.int32],
        moves: int = 20000,
        seed: int = 0,
    ) -> NDArray[np.int32]:
        """Exchanges equal nodes between jobs, two at a time, until there is no gain.

        Every job keeps its number of nodes of every kind, so its constraints still hold. Annealing
        over exchanges, then exchanges that gain until there are none.

        Args:
            metric: the cost.
            nodes: on switches; a fixed one (kind -1) may occur several times.
            kind: of each; nodes of one kind are interchangeable; -1: fixed.
            holder: of each, a row of ``most``; -1: none.
            most: (n_jobs,) leaf switches that a job may use; 0: any number. A job that already uses
                more keeps at most that many.
            moves: random exchanges tried.
            seed: random seed.

        Returns:
            The holders, at no higher total cost.
        """

    def bound(
        self,
        metric: HopMetric,
        idle: NDArray[np.int32],
        sizes: NDArray[np.int32],
        rounds: int = 200,
        cost: float = 0.0,
    ) -> float:
        """A lower bound on the total cost of disjoint node sets of these jobs.

        By Lagrangian relaxation of the idle nodes of each switch, with subgradient steps.

        Args:
            metric: the cost.
            idle: any order.
            sizes: (n_jobs,) nodes requested; each job must be placeable.
            rounds: most steps.
            cost: of the best placement known; it scales the steps, which end when it is met.
        """
