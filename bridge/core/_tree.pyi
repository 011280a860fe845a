# SPDX-License-Identifier: Apache-2.0
"""Trees of switches in ``bridge.core._core``, described apart: this file stands for no module."""

import numpy as np
from numpy.typing import NDArray

NodeSets = tuple[NDArray[np.int64], NDArray[np.int32]]
"""``(indptr, nodes)``: job j gets ``nodes[indptr[j]:indptr[j + 1]]``, ascending; none: no place."""

class HopMetric:
    """What a job pays for the hops between its nodes.

    The hops of two nodes depend on the level of their lowest common switch. A job of n nodes pays
    ``unit / n`` times the sum of hops over its ordered pairs (``ordered``), or its unordered ones;
    ``floored``: rounded down to a whole number.
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
    """Switches, and the nodes that hang on them. Nodes under different roots cannot talk.

    A switch without switches below it is at level 0; any other is one above its highest child.
    All methods take idle nodes as indices that hang on some switch, each once, and job sizes in
    nodes, at least 1; a job that finds no place gets no nodes and the others are placed all the
    same. They raise ``ValueError``, whose text begins with the argument's name, for anything else,
    and for a metric with fewer levels than the tree.
    """

    def __init__(self, parent: NDArray[np.int32], leaf_of_node: NDArray[np.int32]) -> None:
        """Makes a tree.

        Args:
            parent: (n_switches,) the switch above each; -1: a root. Unequal depths and several
                roots are allowed.
            leaf_of_node: (n_nodes,) the switch of level 0 that each node hangs on; -1: none.

        Raises:
            ValueError: switches hang on each other in a circle, or on some that do not exist; or a
                node hangs on a switch that has others below it.
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
        """What each of some jobs pays for its nodes, from its counts per switch.

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

        A run goes on at the head of the sequence where its end is reached. A dynamic programme over
        the sequence and the multiset of jobs placed so far.

        Args:
            metric: what is paid.
            idle: ascending.
            sizes: (n_jobs,) nodes wanted.

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
        """Simulated annealing over runs on the sequence of what is idle then (DCAS).

        Args:
            metric: what is paid.
            idle: ascending.
            sizes: (n_jobs,) nodes wanted.
            iterations: moves tried: 1 to ``most_removed`` jobs out, and back in, largest first,
                each at a random place.
            seed: of chance.
            restore: put the jobs back where they were if a move is rejected; False: as in the
                published code, which does not, and so walks at random and keeps the best it sees.
            hottest: temperature at first.
            coldest: temperature at the end, > 0.
            most_removed: jobs taken out at once, at most.
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

        One job's best set is found exactly, by max-plus programmes over counts per switch; equals
        leave the largest holes. All orders are tried for up to five jobs, then neighbourhoods until
        a bound is reached. Never worse than ``sequential``, nor, for up to eight jobs, than
        ``contiguous`` where that is quick (some hundred idle nodes).

        Args:
            metric: what is paid.
            idle: in the order in which the nodes of one switch are to be taken.
            sizes: (n_jobs,) nodes wanted.
            steps: at most, counted, of about a nanosecond each; 0: no bound.
            iterations: of the neighbourhood search; 0: no bound of theirs. Both 0: orders only.
            seed: of chance.
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
        """Lets jobs exchange nodes that are alike, two at a time, until nobody gains.

        Every job keeps as many nodes of every kind as it has, so whatever held of it holds still.
        By annealing over exchanges, then by those that gain until there are none.

        Args:
            metric: what is paid.
            nodes: on switches; one that stays (kind -1) may stand there several times.
            kind: of each; nodes of one kind may change hands; -1: it stays with who has it.
            holder: of each, a row of ``most``; -1: nobody.
            most: (n_jobs,) leaf switches that a job may sit on; 0: any number. One that sits on
                more stays within as many as it has.
            moves: exchanges tried at random.
            seed: of chance.

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
        """A total cost that no disjoint node sets of these jobs can fall below.

        By Lagrangian relaxation of what each switch has idle, with a subgradient's steps.

        Args:
            metric: what is paid.
            idle: any order.
            sizes: (n_jobs,) nodes wanted; all must have some place.
            rounds: steps at most.
            cost: of the best placement known; steps are sized by it, and end when it is met.
        """
