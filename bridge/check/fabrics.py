# SPDX-License-Identifier: Apache-2.0
"""Determines which nodes switches connect."""

import numpy as np
from numpy.typing import NDArray

from bridge.model.topology import Topology


def fabrics(topology: Topology) -> NDArray[np.int64]:
    """(n_nodes,) the root switch above each node; -1: it is on no switch."""
    parent = topology.parent.tolist()
    root = list(range(len(parent)))
    for switch in range(len(parent)):
        while parent[root[switch]] >= 0:
            root[switch] = parent[root[switch]]
    found: NDArray[np.int64] = np.array([*root, -1], dtype=np.int64)[topology.leaf_of_node]
    return found
