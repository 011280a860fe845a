# SPDX-License-Identifier: Apache-2.0
"""The power that the check assumes for running jobs: measured, else learnt, else stated."""

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import RunningTable

Ints = NDArray[np.int64]


def running_upper_w(running: RunningTable) -> Ints:
    """(n_running,) the upper estimate on each node; 0: unknown."""
    return known(running.measured_max_power_w, running.learnt_max_power_w, running.max_power_w)


def running_lower_w(running: RunningTable) -> Ints:
    """(n_running,) the lower estimate on each node; 0: unknown."""
    return known(running.measured_min_power_w, running.learnt_min_power_w, running.min_power_w)


def known(*columns: Ints) -> Ints:
    """The first of them that is known, for each job."""
    found = np.zeros_like(columns[0])
    for column in columns:
        found = np.where((found <= 0) & (column > 0), column, found)
    return found
