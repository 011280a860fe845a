# SPDX-License-Identifier: Apache-2.0
"""Best fit: prefers the nodes with the least left over, to keep large gaps for large jobs.

Rules
    1. Nodes of lower weight (Slurm's Weight) go first, so that administrators can keep rare nodes
       free.
    2. Shared nodes of equal weight: least free resources first, relative to the node's size.
    3. Whole nodes of equal weight: least capacity first, then earliest next planned job. Where this
       decides how many CPUs a job gets, Slurm may choose when the job starts
       (`bridge.planning.eligibility.controller_choice`, rule 7).
    4. Ties: the controller's order.

Source: best fit as in bin packing; Slurm's select/cons_tres does the same for cores.
Deviates: Slurm looks for the smallest sufficient block of consecutive nodes; here nodes are ranked
one by one.
"""

from dataclasses import dataclass
from typing import ClassVar

from bridge.model.snapshot import Snapshot
from bridge.policies.place.sequential import rank_by_weight
from bridge.ports import Preference, Selection


@dataclass(frozen=True)
class BestFit:
    """Prefers the nodes with the least left over."""

    ranks_by_size: ClassVar[bool] = True

    def preference(self, snapshot: Snapshot) -> Preference:
        """Returns the best-fit rule; nodes of equal weight have equal rank."""
        return Preference(Selection.BEST_FIT, rank_by_weight(snapshot))
