# SPDX-License-Identifier: Apache-2.0
"""OpenCCS's node weight: cheap nodes first, to keep rare and large resources free.

Rules
    1. The weight of a node is the largest share that it has of any resource of the system: a node
       with one of two GPUs has weight 1/2, however few cores it has.
    2. The node's own weight (Slurm's Weight) takes precedence, as the administrator's priority does
       in the paper.

Source: Keller, JSSPP 2017, section 5.2: W = max over r of r / r_system, times the cores of the
system, plus the administrator's priority times the cores of the system.
"""

from dataclasses import dataclass

import numpy as np

from bridge.model.snapshot import Snapshot
from bridge.ports import Preference, Selection


@dataclass(frozen=True)
class Weighted:
    """Ranks nodes from cheap to expensive."""

    def preference(self, snapshot: Snapshot) -> Preference:
        """Returns the ranks; see `bridge.ports.PlacePolicy`."""
        capacity = snapshot.nodes.capacity.astype(np.float64)
        total = capacity.sum(axis=0)
        share = np.divide(capacity, total, out=np.zeros_like(capacity), where=total > 0)
        weight = share.max(axis=1, initial=0.0)
        order = np.lexsort((np.arange(len(weight)), weight, snapshot.nodes.weight))
        # Nodes of the same weight share a rank: then the first by index goes first.
        first = np.ones(len(order), dtype=bool)
        first[1:] = (weight[order][1:] != weight[order][:-1]) | (
            snapshot.nodes.weight[order][1:] != snapshot.nodes.weight[order][:-1]
        )
        rank = np.empty(len(order), dtype=np.int32)
        rank[order] = np.cumsum(first) - 1
        return Preference(Selection.SEQUENTIAL, rank)
