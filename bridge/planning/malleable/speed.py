# SPDX-License-Identifier: Apache-2.0
"""Estimates the speed of a running job at another width from its present communication.

A job that spends `mtct` seconds in MPI calls for each second of computing on `width` nodes has, if
it follows Amdahl's law, a serial fraction of mtct / (width - 1): its speed-up S satisfies
width / S = 1 + mtct.
"""

from bridge.model.snapshot import Snapshot

UNKNOWN_SERIAL = 0.05
"""Serial fraction of unknown jobs: those on one node, or never measured."""


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


def left_s(snapshot: Snapshot, job: int, before: int, after: int) -> float:
    """Upper bound on the remaining time of a running job at another width.

    Args:
        snapshot: the cluster.
        job: row of `snapshot.running`.
        before: its present number of nodes.
        after: the new number.
    """
    running = snapshot.running
    serial = serial_fraction(float(running.mtct[job]), before)
    remaining_s = max(int(running.end_s[job]) - snapshot.now_s, 0)
    return remaining_s * speed(serial, before) / speed(serial, after)
