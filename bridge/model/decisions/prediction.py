# SPDX-License-Identifier: Apache-2.0
"""How long jobs are expected to run, beside how long they may."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Prediction:
    """Expected run times of the pending jobs and expected ends of the running ones.

    Attributes:
        by: which predictor says so, for people.
        run_s: (n_jobs,) int64, for each row of `Snapshot.jobs`; 0: as long as it may.
        end_s: (n_running,) int64, for each row of `Snapshot.running`; 0: as late as it may.
    """

    by: str
    run_s: NDArray[np.int64]
    end_s: NDArray[np.int64]
