# SPDX-License-Identifier: Apache-2.0
"""Estimates the speed of a job at a width from its communication.

A job that spends `mtct` seconds in MPI calls for each second of computing on `width` nodes has, if
it follows Amdahl's law, a serial fraction of mtct / (width - 1): its speed-up S satisfies
width / S = 1 + mtct.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

UNKNOWN_SERIAL: Final = 0.05
"""Serial fraction that is assumed for jobs on one node and jobs that were never measured."""

_NEVER_REACHED: Final = 1 << 30


def serial_fractions(mtct: NDArray[np.float64], width: NDArray[np.int64]) -> NDArray[np.float64]:
    """The serial fraction of jobs, in [0, 1].

    Args:
        mtct: time in MPI calls over computing time; less than 0: unknown.
        width: the nodes that each has.
    """
    unknown = (mtct < 0) | (width < 2)
    found = np.minimum(mtct / np.maximum(width - 1, 1), 1.0)
    return np.where(unknown, UNKNOWN_SERIAL, found)


def speed(serial: float, width: int) -> float:
    """Speed-up on a number of nodes."""
    return 1.0 / (serial + (1.0 - serial) / width)


def speeds(serial: NDArray[np.float64], width: NDArray[np.int64]) -> NDArray[np.float64]:
    """`speed` of many jobs."""
    return 1.0 / (serial + (1.0 - serial) / width)


def widths_for(serial: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.int64]:
    """The fewest nodes on which jobs have these speed-ups; a very large number: none."""
    left = 1.0 / wanted - serial
    reached = left > 1e-12
    found = np.ceil((1.0 - serial) / np.where(reached, left, 1.0) - 1e-9)
    found = np.where(reached, np.minimum(found, _NEVER_REACHED), _NEVER_REACHED)
    return np.where(wanted <= 1.0, 1, found).astype(np.int64)
