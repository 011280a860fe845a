# SPDX-License-Identifier: Apache-2.0
"""The nodes that the job fills best, so that large holes stay for large jobs.

Rules
    1. Nodes of lower weight (Slurm's Weight) go first. So an administrator keeps rare nodes free.
    2. Shared nodes of one weight: those left with the least free resources, relative to their size.
    3. Whole nodes of one weight: those of the least capacity, then those whose next planned job is
       nearest.
    4. Ties: the controller's order.

Source: best fit as in bin packing; Slurm's select/cons_tres does the like for cores.
Deviates: Slurm looks for the smallest consecutive block of nodes; we look at each node.
"""

from dataclasses import dataclass

from bridge.model.snapshot import Snapshot
from bridge.policies.place.sequential import rank_by_weight
from bridge.ports import Preference, Selection


@dataclass(frozen=True)
class BestFit:
    """Takes the nodes that are left with the least."""

    def preference(self, snapshot: Snapshot) -> Preference:
        """Returns the best-fit rule; nodes of one weight are of one rank."""
        return Preference(Selection.BEST_FIT, rank_by_weight(snapshot))
