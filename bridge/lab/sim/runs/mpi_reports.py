# SPDX-License-Identifier: Apache-2.0
"""Reports to policies of the time in MPI of simulated jobs with phases (MTCT).

Rules
    1. After a start and after a change of width the ratio of the present phase at the new width is
       known at once, as it is of jobs without phases.
    2. Later the ratio is that of the last `WINDOW_S`, at most since the last change, as the service
       computes it from the reports of agents (`bridge.rpc.agents.mpi_times`). So a new phase shows
       gradually. It is computed every `LOOK_S` while the window contains two phases.
    3. A new ratio is reported to policies when it differs significantly from the last reported one:
       by a tenth of the larger one and by `MIN`, or when it becomes known or unknown. Then a
       decision is requested.
    4. Time in a phase whose ratio is not measured does not count.
"""

import heapq
from dataclasses import dataclass
from typing import Final

from bridge.lab.sim.runs.work import Work
from bridge.lab.sim.workloads.workload import Malleable
from bridge.units import NEVER

WINDOW_S: Final = 300
LOOK_S: Final = 30
SIGNIFICANT: Final = 0.1
MIN: Final = 0.005
_UNKNOWN: Final = -1.0


@dataclass
class _Followed:
    """A job with phases since its last change.

    Attributes:
        serial: the serial of the change; computations due for earlier ones are void.
        begins: when each phase begins, s, and the ratio in it; the first one at the change.
    """

    serial: int
    begins: list[tuple[float, float]]
    reported: float


class MpiReports:
    """The ratios of jobs with several phases; those of others do not change over time."""

    def __init__(self, widths: Malleable | None, work: Work) -> None:
        self._widths, self._work = widths, work
        self._jobs: dict[int, _Followed] = {}
        self._looks: list[tuple[int, int, int]] = []
        self._serial = 0

    def follow(self, job: int, nodes: int, now_s: int) -> float | None:
        """A job has started or changed its width, in `Work` already.

        Returns: The ratio reported to policies; None: the job has only one phase.
        """
        widths = self._widths
        if widths is None or widths.speedup[job] is None:
            return None
        if len(widths.speedup[job].parts()) < 2:
            return None
        begins = [
            (begin_s, widths.mtct(job, nodes, phase)) for begin_s, phase in self._work.phases(job)
        ]
        self._serial += 1
        followed = self._jobs[job] = _Followed(self._serial, begins, begins[0][1])
        self._look_next(job, followed, now_s)
        return followed.reported

    def forget(self, job: int) -> None:
        """A job does not run any more."""
        self._jobs.pop(job, None)

    def next_s(self) -> int:
        """When to compute the ratios next; NEVER: no ratio can change."""
        while self._looks and not self._is_due(self._looks[0]):
            heapq.heappop(self._looks)
        return self._looks[0][0] if self._looks else NEVER

    def renewed(self, now_s: int) -> dict[int, float]:
        """Computes due ratios; returns the jobs with a significantly different ratio, and it."""
        found: dict[int, float] = {}
        while self._looks and self._looks[0][0] <= now_s:
            entry = heapq.heappop(self._looks)
            if not self._is_due(entry):
                continue
            followed = self._jobs[entry[1]]
            ratio = measured(followed.begins, now_s)
            if is_significant(followed.reported, ratio):
                followed.reported = found[entry[1]] = ratio
            self._look_next(entry[1], followed, now_s)
        return found

    def _is_due(self, entry: tuple[int, int, int]) -> bool:
        followed = self._jobs.get(entry[1])
        return followed is not None and followed.serial == entry[2]

    def _look_next(self, job: int, followed: _Followed, now_s: int) -> None:
        """Rule 2; no further computations once the window contains only the last phase."""
        begins_s = [begin_s for begin_s, _ in followed.begins[1:]]
        if any(begin_s <= now_s < begin_s + WINDOW_S for begin_s in begins_s):
            at_s = now_s + LOOK_S
        else:
            next_s = min((begin_s for begin_s in begins_s if begin_s > now_s), default=None)
            if next_s is None:
                return
            at_s = int(next_s) + LOOK_S
        heapq.heappush(self._looks, (at_s, job, followed.serial))


def measured(begins: list[tuple[float, float]], now_s: float) -> float:
    """The ratio of the last `WINDOW_S` (rules 2 and 4); -1: unknown.

    Args:
        begins: when each phase begins, s, and its ratio; -1: not measured.
        now_s: not before the first.
    """
    from_s = max(now_s - WINDOW_S, begins[0][0])
    ends_s = [begin_s for begin_s, _ in begins[1:]] + [now_s]
    mpi_s = wall_s = 0.0
    for (begin_s, ratio), end_s in zip(begins, ends_s, strict=True):
        part_s = min(end_s, now_s) - max(begin_s, from_s)
        if part_s > 0 and ratio >= 0:
            wall_s += part_s
            mpi_s += part_s * ratio / (1.0 + ratio)
    return mpi_s / (wall_s - mpi_s) if wall_s > mpi_s else _UNKNOWN


def is_significant(reported: float, ratio: float) -> bool:
    """Whether the ratio is reported to policies (rule 3)."""
    if (reported < 0) != (ratio < 0):
        return True
    apart = abs(reported - ratio)
    return apart > MIN and apart > SIGNIFICANT * max(reported, ratio)
