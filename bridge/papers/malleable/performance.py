# SPDX-License-Identifier: Apache-2.0
"""Performance-aware: the jobs that communicate most give nodes to those that compute most.

Terms
    MTCT        a job's time in MPI calls over its computing time, since its last change of width.

Rules
    1. The first waiting job gets its nodes by shrinking running jobs, the highest MTCT first.
    2. Idle nodes go to running jobs, the lowest MTCT first.
    3. Of jobs of equal MTCT the one that started last is shrunk first, and the one that started
       first is grown first. A job whose MTCT is unknown counts as one that only computes.
    4. `bridge.planning.malleable.expand_shrink` has the other rules.

Source: Algorithm 1 of Chadha, John and Gerndt, "Extending SLURM for Dynamic Resource-Aware Adaptive
Batch Scheduling", HiPC 2020. With order `fcfs` and plan `in-order` it is the whole algorithm.
Deviates: "allocated the highest constraint value, less than or equal to the current idle nodes" is
read as the new width being at most the present width and the idle nodes together. The other
reading, that the value bounds what is added, could lead to widths that the constraint forbids.
"""

from dataclasses import dataclass

import numpy as np

from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.expand_shrink import expand_shrink, rank_of_ids
from bridge.planning.malleable.reshaper import Reshaper
from bridge.ports import Planned, Replan


@dataclass(frozen=True)
class Performance(Reshaper):
    """Shrinks and grows by the ratio of communication to computation."""

    def reshaped(self, snapshot: Snapshot, planned: Planned, replan: Replan) -> Planned:
        """Resizes running jobs."""
        running = snapshot.running
        ratio = np.maximum(running.mtct, 0.0)
        rank = rank_of_ids(running)
        largest_first = np.lexsort((-rank, -running.start_s, -ratio))
        smallest_first = np.lexsort((rank, running.start_s, ratio))
        return expand_shrink(
            snapshot,
            planned,
            replan,
            shrink_order=largest_first.tolist(),
            expand_order=smallest_first.tolist(),
            adaptation_s=self.adaptation_s,
        )
