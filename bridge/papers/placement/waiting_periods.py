# SPDX-License-Identifier: Apache-2.0
"""Jobs that have waited for more periods first, then jobs with fewer nodes.

Terms
    NWP     number of waiting periods: how many multiples of `period_s` have passed on the clock
            since the job became eligible.

Rules
    1. Larger NWP first. 2. Then fewer nodes; of jobs without a number of nodes, fewer tasks.
    3. Then earlier submission, then the table's order.

Source: Lan et al. (see `bridge.model.hop_tree`), section III-C.
Deviates: the paper increments a counter at each decision that leaves a job out. Counting by the
clock gives the same number less one, and needs no state that a restart would lose.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.model.snapshot import Snapshot


@dataclass(frozen=True)
class WaitingPeriods:
    """Orders by waiting periods, then width."""

    period_s: int = 60

    def __post_init__(self) -> None:
        if self.period_s < 1:
            raise ConfigError("period_s", f"must be 1 or more, not {self.period_s}")

    def order(self, snapshot: Snapshot) -> NDArray[np.int64]:
        """Returns the rows, most periods first."""
        jobs = snapshot.jobs
        since_s = np.minimum(np.maximum(jobs.submit_s, jobs.eligible_s), snapshot.now_s)
        periods = snapshot.now_s // self.period_s - since_s // self.period_s
        keys = (jobs.submit_s, jobs.tasks, jobs.min_nodes, -periods)
        return np.lexsort(keys).astype(np.int64, copy=False)
