# SPDX-License-Identifier: Apache-2.0
"""Nodes in the controller's order, lower weight first.

Source: Slurm's LLN-free default order of nodes (slurm.conf(5), Weight); "sequential" in the
topology literature.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.model.snapshot import Snapshot
from bridge.ports import Preference, Selection


def rank_by_weight(snapshot: Snapshot) -> NDArray[np.int32]:
    """Ranks nodes by weight, as (n_nodes,) int32; nodes of equal weight have equal rank."""
    return snapshot.nodes.rank


@dataclass(frozen=True)
class Sequential:
    """Takes the first nodes that can hold the job."""

    def preference(self, snapshot: Snapshot) -> Preference:
        """Returns the order of the nodes."""
        return Preference(Selection.SEQUENTIAL, rank_by_weight(snapshot))
