# SPDX-License-Identifier: Apache-2.0
"""Favour previously started malleable applications (FPSMA).

Rules
    1. The first waiting job gets its nodes by shrinking running jobs, the latest started first.
    2. Idle nodes go to running jobs, the earliest started first.
    3. The rest is said in `bridge.planning.malleable.expand_shrink`.

Source: Buisson, Sonmez, Mohamed, Lammers and Epema, CLUSTER 2007, as the paper of
`bridge.policies.reshape.performance` compares it.
Deviates: in the original, applications only give up what they were given before; here they may
shrink to their least width, as in that comparison.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.expand_shrink import expand_shrink
from bridge.ports import Context, Planned, Replan


@dataclass(frozen=True)
class Fpsma:
    """Shrinks and grows by time of start.

    Attributes:
        adaptation_s: how long a change of width is expected to take.
    """

    adaptation_s: int = 5

    def __post_init__(self) -> None:
        if self.adaptation_s < 1:
            raise ConfigError("adaptation_s", f"must be 1 or more, not {self.adaptation_s}")

    def reshape(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        planned: Planned,
        replan: Replan,
        context: Context,
    ) -> Planned:
        """Resizes running jobs; see `bridge.ports.ReshapePolicy`."""
        del order, context
        earliest_first = np.argsort(snapshot.running.start_s, kind="stable").tolist()
        return expand_shrink(
            snapshot,
            planned,
            replan,
            shrink_order=earliest_first[::-1],
            expand_order=earliest_first,
            adaptation_s=self.adaptation_s,
        )
