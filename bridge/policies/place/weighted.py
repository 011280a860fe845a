# SPDX-License-Identifier: Apache-2.0
"""OpenCCS's node weight: cheap nodes first, so that rare and large things stay free.

Rules
    1. A node weighs as much as the largest share it has of anything in the system: a node with one
       of two GPUs weighs a half, however few cores it has.
    2. A node's own weight (Slurm's Weight) goes before that, as the administrator's priority does
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
