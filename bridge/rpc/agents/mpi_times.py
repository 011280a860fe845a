# SPDX-License-Identifier: Apache-2.0
"""Ratio of time in MPI to computing time (MTCT) of jobs, from the reports of agents.

Rules
    1. A ratio covers the last one to two times `WINDOW_S`.
    2. After a change of the job's width it is reset, and begins with reports that come `SETTLE_S`
       later: earlier ones partly cover the time before, and the change itself.
    3. It is unknown until `MIN_WALL_S` of the processes' time have been reported, and when
       nothing was reported for `WINDOW_S`.

Source: the ratio, and its reset after each adaptation, are those of the paper on malleable jobs
named in docs/design/0008-decisions-on-running-jobs.md.
"""

import math
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from bridge.extensions.elastic.resizing.launchers import Names

WINDOW_S: Final = 300.0
SETTLE_S: Final = 10.0
"""Twice the time between two reports of an agent."""
MIN_WALL_S: Final = 10.0
LARGEST: Final = 100.0
"""Of jobs that do nothing but wait in MPI."""
MAX_JOBS: Final = 10_000


@dataclass
class _Job:
    from_s: float = -math.inf
    """Reports before are not counted; later: begin of the present window; -inf: of none."""
    nodes: Names | None = None
    """Where its processes run; None: not known."""
    heard_s: float = -math.inf
    mpi_s: float = 0.0
    wall_s: float = 0.0
    mpi_before_s: float = 0.0
    wall_before_s: float = 0.0


class MpiTimes:
    """The ratios of all jobs; instants are of any clock that only goes forward."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, _Job] = OrderedDict()

    def add(self, job: str, mpi_s: float, wall_s: float, now_s: float) -> None:
        """Records a report; an impossible one is ignored.

        Args:
            job: its id on the nodes.
            mpi_s: MPI time of its processes on one node, since the last report.
        """
        if not 0 <= mpi_s <= wall_s < math.inf:
            return
        found = self._job(job)
        if now_s < found.from_s:
            return
        if found.from_s == -math.inf:
            found.from_s = now_s
        if now_s - found.from_s > WINDOW_S:
            found.mpi_before_s, found.wall_before_s = found.mpi_s, found.wall_s
            found.mpi_s = found.wall_s = 0.0
            found.from_s = now_s
        found.heard_s = now_s
        found.mpi_s += mpi_s
        found.wall_s += wall_s

    def runs_on(self, job: str, nodes: Names | None, now_s: float) -> None:
        """Sets the nodes of a job's processes as reported by its launcher (rule 2)."""
        found = self._job(job)
        if found.nodes is not None and nodes != found.nodes:
            self._jobs[job] = _Job(now_s + SETTLE_S, nodes)
        else:
            found.nodes = nodes

    def _job(self, job: str) -> _Job:
        found = self._jobs.setdefault(job, _Job())
        self._jobs.move_to_end(job)
        while len(self._jobs) > MAX_JOBS:
            self._jobs.popitem(last=False)
        return found

    def mtct(self, job: str, now_s: float) -> float:
        """Time in MPI over computing time, at most `LARGEST`; -1: unknown."""
        found = self._jobs.get(job)
        if found is None or now_s - found.heard_s > WINDOW_S:
            return -1.0
        wall_s = found.wall_s + found.wall_before_s
        mpi_s = found.mpi_s + found.mpi_before_s
        if wall_s < MIN_WALL_S:
            return -1.0
        return mpi_s / max(wall_s - mpi_s, mpi_s / LARGEST)
