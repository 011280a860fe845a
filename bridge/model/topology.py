# SPDX-License-Identifier: Apache-2.0
"""The network: switches above the nodes.

Terms
    leaf switch   a switch with nodes on it, and no switches below.
    fabric        everything below one top-level switch. Nodes of different fabrics cannot
                  communicate, so a job never gets nodes of two.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Topology:
    """Switches as a forest; compared by identity, so that derived data can be cached.

    Attributes:
        names: (n_switches,) unique.
        parent: (n_switches,) int32: the switch above; -1: nothing is above.
        leaf_of_node: (n_nodes,) int32: the leaf switch of each node; -1: on no switch.
    """

    names: tuple[str, ...]
    parent: NDArray[np.int32]
    leaf_of_node: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class PlacementSavings:
    """The effect of placement improvement on the jobs of several nodes that start in one cycle.

    Attributes:
        before: their hops as placed by the plan stage.
        after: their hops after the improvement.
    """

    jobs: int
    before: float
    after: float


def regular(n_nodes: int, *per_level: int) -> Topology:
    """A fat tree of equal switches: nodes in the order of their numbers.

    Args:
        n_nodes: at least 1.
        per_level: nodes below a switch, by level from the leaves up, each a multiple of the one
            before: (10, 100) puts ten nodes on a leaf and ten leaves in a pod. A top switch over
            all is added where there is more than one switch at the last level.

    Raises:
        ValueError: a number is not a multiple of the one before it.
    """
    if n_nodes < 1 or not per_level:
        raise ValueError("a tree needs one node and one level at least")
    names: list[str] = []
    parent: list[int] = []
    first, below = [], 1  # first switch of each level; nodes below a switch of the level before
    for level, nodes in enumerate(per_level):
        if nodes < below or nodes % below:
            raise ValueError(f"{nodes} nodes of level {level} are not a multiple of {below}")
        first.append(len(names))
        count = -(-n_nodes // nodes)
        names += [f"{'s' * (level + 1)}{i}" for i in range(count)]
        parent += [-1] * count
        if level:
            lower = range(first[level - 1], first[level])
            for i, switch in enumerate(lower):
                parent[switch] = first[level] + i * below // nodes
        below = nodes
    last = range(first[-1], len(names))
    if len(last) > 1:
        for switch in last:
            parent[switch] = len(names)
        names.append("top")
        parent.append(-1)
    leaf = np.arange(n_nodes, dtype=np.int32) // per_level[0]
    return Topology(tuple(names), np.array(parent, dtype=np.int32), leaf.astype(np.int32))


def fat_tree(ports: int, n_nodes: int | None = None) -> Topology:
    """The k-ary fat tree of the literature, with pods pruned to a number of nodes.

    A leaf switch has ports / 2 nodes, a pod ports / 2 leaf switches, the whole tree `ports` pods.

    Args:
        ports: ports of each switch, even.
        n_nodes: how many nodes there are; None: ports^3 / 4.

    Raises:
        ValueError: an odd number of ports, or more nodes than they carry.
    """
    if ports < 2 or ports % 2:
        raise ValueError(f"a fat tree's switches have an even number of ports, not {ports}")
    half, maximum = ports // 2, ports**3 // 4
    n_nodes = maximum if n_nodes is None else n_nodes
    if not 1 <= n_nodes <= maximum:
        raise ValueError(f"switches of {ports} ports carry 1 to {maximum} nodes, not {n_nodes}")
    return regular(n_nodes, half, half * half)
