# SPDX-License-Identifier: Apache-2.0
"""Favour previously started malleable applications (FPSMA).

Rules
    1. The first waiting job gets its nodes by shrinking running jobs, the latest started first.
    2. Idle nodes go to running jobs, the earliest started first.
    3. Of jobs that started in the same second, the one with the lower id counts as the earlier one.
    4. `bridge.planning.malleable.expand_shrink` has the other rules.

Source: Buisson, Sonmez, Mohamed, Lammers and Epema, CLUSTER 2007, as compared in the paper of
`bridge.papers.malleable.performance`.
Deviates: in the original, applications only give up what they were given before; here they may
shrink to their minimum width, as in that comparison.
"""

from dataclasses import dataclass

import numpy as np

from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.expand_shrink import expand_shrink, rank_of_ids
from bridge.planning.malleable.reshaper import Reshaper
from bridge.ports import Planned, Replan


@dataclass(frozen=True)
class Fpsma(Reshaper):
    """Shrinks and grows by start time."""

    def reshaped(self, snapshot: Snapshot, planned: Planned, replan: Replan) -> Planned:
        """Resizes running jobs."""
        running = snapshot.running
        earliest_first = np.lexsort((rank_of_ids(running), running.start_s)).tolist()
        return expand_shrink(
            snapshot,
            planned,
            replan,
            shrink_order=earliest_first[::-1],
            expand_order=earliest_first,
            adaptation_s=self.adaptation_s,
        )
