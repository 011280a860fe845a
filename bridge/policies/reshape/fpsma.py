# SPDX-License-Identifier: Apache-2.0
"""Favour previously started malleable applications (FPSMA).

Rules
    1. The first waiting job gets its nodes by shrinking running jobs, the latest started first.
    2. Idle nodes go to running jobs, the earliest started first.
    3. `bridge.planning.malleable.expand_shrink` has the other rules.

Source: Buisson, Sonmez, Mohamed, Lammers and Epema, CLUSTER 2007, as the paper of
`bridge.policies.reshape.performance` compares it.
Deviates: in the original, applications only give up what they were given before; here they may
shrink to their least width, as in that comparison.
"""

from dataclasses import dataclass

import numpy as np

from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.expand_shrink import expand_shrink
from bridge.planning.malleable.reshaper import Reshaper
from bridge.ports import Planned, Replan


@dataclass(frozen=True)
class Fpsma(Reshaper):
    """Shrinks and grows by time of start."""

    def reshaped(self, snapshot: Snapshot, planned: Planned, replan: Replan) -> Planned:
        """Resizes running jobs."""
        earliest_first = np.argsort(snapshot.running.start_s, kind="stable").tolist()
        return expand_shrink(
            snapshot,
            planned,
            replan,
            shrink_order=earliest_first[::-1],
            expand_order=earliest_first,
            adaptation_s=self.adaptation_s,
        )
