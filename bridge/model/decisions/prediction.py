# SPDX-License-Identifier: Apache-2.0
"""Expected run times of jobs, in contrast to their time limits."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Prediction:
    """Expected run times of the pending jobs and expected ends of the running ones.

    Attributes:
        by: the predictor, for display.
        run_s: (n_jobs,) int64, for each row of `Snapshot.jobs`; 0: its time limit.
        end_s: (n_running,) int64, for each row of `Snapshot.running`; 0: the end of its limit.
    """

    by: str
    run_s: NDArray[np.int64]
    end_s: NDArray[np.int64]
