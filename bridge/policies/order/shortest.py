# SPDX-License-Identifier: Apache-2.0
"""Shortest job first: by predicted run time, ties by submission, then by job id.

For comparison only: it favours the mean slowdown, but long jobs may starve.

Source: textbook; with backfilling studied as SJBF by D. Tsafrir, Y. Etsion, D. G. Feitelson,
Backfilling Using System-Generated Predictions Rather than User Runtime Estimates, TPDS 18(6), 2007.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.model.snapshot import Snapshot
from bridge.units import UNLIMITED_S


@dataclass(frozen=True)
class Shortest:
    """Orders by predicted run time."""

    def order(self, snapshot: Snapshot) -> NDArray[np.int64]:
        """Returns the rows; jobs without a time limit stand last."""
        jobs = snapshot.jobs
        length_s = np.where(jobs.time_limit_s > 0, jobs.time_limit_s, UNLIMITED_S)
        return np.lexsort((jobs.submit_s, length_s)).astype(np.int64, copy=False)
