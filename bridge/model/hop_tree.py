# SPDX-License-Identifier: Apache-2.0
"""A topology for placing jobs: the core's tree, and the cost of hops.

Metrics of communication hops, by level of the lowest common switch (leaf first):

| name | hops | pairs | a job's cost |
|---|---|---|---|
| `paper` | 2, 4, 6, ... | both ways | 1000 / n times the sum (equation 1, c = 1000) |
| `code` | 1, 3, 5, ... | once | the same, rounded down, as in the authors' program |

Source: Lan et al., "Optimization of Topology-Aware Job Allocation on a High-Performance Computing
Cluster by Neural Simulated Annealing", section III-A, and its public code.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from bridge.core import HopMetric, Tree
from bridge.model.topology import Topology

NodeSets = tuple[NDArray[np.int64], NDArray[np.int32]]
"""`(indptr, nodes)`: job j gets nodes[indptr[j]:indptr[j + 1]]; none: it was not placed."""


class Metric(StrEnum):
    """The definition of a communication hop."""

    PAPER = "paper"
    CODE = "code"


def hop_metric(metric: Metric, levels: int) -> HopMetric:
    """The hops of a metric for a tree with a number of levels."""
    level = np.arange(levels, dtype=np.int64)
    if metric is Metric.PAPER:
        return HopMetric(2 * level + 2)
    return HopMetric(2 * level + 1, ordered=False, floored=True)


@dataclass(frozen=True)
class HopTree:
    """The tree on which jobs are placed, and its costs.

    Attributes:
        topology: names of the switches.
        tree: the core's.
    """

    topology: Topology
    tree: Tree
    metric: HopMetric

    @staticmethod
    @lru_cache(maxsize=4)
    def of(topology: Topology, metric: Metric = Metric.PAPER) -> "HopTree":
        """The tree of a topology; made once."""
        tree = Tree(topology.parent, topology.leaf_of_node)
        levels = int(tree.level.max(initial=0)) + 1
        return HopTree(topology, tree, hop_metric(metric, levels))

    def costs(self, sets: NodeSets) -> NDArray[np.float64]:
        """The cost of each job, (n_jobs,) float64; infinite across fabrics."""
        return self.tree.costs(self.metric, *sets)

    def leaves(self, nodes: NDArray[np.int32]) -> int:
        """The number of leaf switches of some nodes."""
        return len(np.unique(self.topology.leaf_of_node[nodes]))

    def within(self, maximum: int, new: NDArray[np.int32], old: NDArray[np.int32]) -> bool:
        """Whether a job with a maximum number of leaf switches (0: any) may move to some nodes."""
        return maximum == 0 or self.leaves(new) <= max(maximum, self.leaves(old))


def csr(sets: list[NDArray[np.int32]]) -> NodeSets:
    """Sets one after the other."""
    indptr = np.cumsum([0, *map(len, sets)], dtype=np.int64)
    return indptr, np.concatenate(sets) if sets else np.zeros(0, dtype=np.int32)


def in_groups(
    place: Callable[[NDArray[np.int32], NDArray[np.int32]], NodeSets],
    idle: NDArray[np.int32],
    sizes: NDArray[np.int32],
    maximum: int,
) -> NodeSets:
    """Places jobs `maximum` at a time, largest first, each group on the remaining nodes.

    Args:
        idle: ascending.
        sizes: (n_jobs,).
    """
    if len(sizes) <= maximum:
        return place(idle, sizes)
    sets: list[NDArray[np.int32]] = [np.zeros(0, dtype=np.int32)] * len(sizes)
    order = np.argsort(-sizes.astype(np.int64), kind="stable")
    for first in range(0, len(order), maximum):
        group = order[first : first + maximum]
        indptr, nodes = place(idle, np.ascontiguousarray(sizes[group]))
        for i, job in enumerate(group.tolist()):
            sets[job] = nodes[indptr[i] : indptr[i + 1]]
        idle = np.ascontiguousarray(idle[~np.isin(idle, nodes)])
    return csr(sets)
