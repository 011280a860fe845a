# SPDX-License-Identifier: Apache-2.0
"""Largest slowdown first: jobs that have waited long for their length go first.

The slowdown is that of a start now, (wait + d) / d with d the predicted run time. It grows while
the job waits, so no job starves. Ties are ordered by length, shortest first, then by submission and
job id; all jobs that have not waited yet are tied.

Source: the expansion factor (XFactor) of batch systems since the 1990s; as a static priority in
Galleguillos et al., PCP'20 (see docs/DISPATCH.md). Ties by length are their published code's.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.model.snapshot import Snapshot
from bridge.units import UNLIMITED_S


@dataclass(frozen=True)
class Slowdown:
    """Orders by the slowdown of a start now."""

    def order(self, snapshot: Snapshot) -> NDArray[np.int64]:
        """Returns the rows, largest slowdown first."""
        jobs = snapshot.jobs
        length_s = np.where(jobs.time_limit_s > 0, jobs.time_limit_s, UNLIMITED_S)
        waited_s = np.maximum(snapshot.now_s - jobs.submit_s, 0)
        return np.lexsort((jobs.submit_s, length_s, -(waited_s / length_s))).astype(
            np.int64, copy=False
        )
