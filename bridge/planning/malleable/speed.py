# SPDX-License-Identifier: Apache-2.0
"""Estimates the speed of a job at a width from its communication.

A job that spends `mtct` seconds in MPI calls for each second of computing on `width` nodes has, if
it follows Amdahl's law, a serial fraction of mtct / (width - 1): its speed-up S satisfies
width / S = 1 + mtct.
"""

import math
from typing import Final

UNKNOWN_SERIAL: Final = 0.05
"""Serial fraction of unknown jobs: those on one node, or never measured."""

_NEVER_REACHED: Final = 1 << 30


def serial_fraction(mtct: float, width: int) -> float:
    """The serial fraction of a job, in [0, 1].

    Args:
        mtct: time in MPI calls over computing time; less than 0: unknown.
        width: the nodes it has.
    """
    if mtct < 0 or width < 2:
        return UNKNOWN_SERIAL
    return min(mtct / (width - 1), 1.0)


def speed(serial: float, width: int) -> float:
    """Speed-up on that many nodes."""
    return 1.0 / (serial + (1.0 - serial) / width)


def width_for(serial: float, wanted: float) -> int:
    """The fewest nodes with that speed-up; a very large number if none has it."""
    if wanted <= 1.0:
        return 1
    left = 1.0 / wanted - serial
    return math.ceil((1.0 - serial) / left - 1e-9) if left > 1e-12 else _NEVER_REACHED
