# SPDX-License-Identifier: Apache-2.0
"""The progress of simulated malleable jobs over their changes of width.

Rules
    1. Run time and time limit are those at the job's nominal width (`Malleable.nominal`). At
       another width both are spent in proportion to the speed-up there.
    2. While a job adapts it makes no progress and spends nothing of its limit.
    3. An end falls on a whole second, the first one at which nothing is left.
"""

import math
from dataclasses import dataclass

from bridge.sim.workload import Workload


@dataclass
class _Job:
    done_s: float
    since_s: int
    rate: float


class Work:
    """The progress of running malleable jobs, in seconds of work at the nominal width."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._jobs: dict[int, _Job] = {}

    def start(self, job: int, width: int, now_s: int) -> None:
        """A job starts from the beginning."""
        self._jobs[job] = _Job(0.0, now_s, self._rate(job, width))

    def resize(self, job: int, width: int, now_s: int, pause_s: int) -> None:
        """A job continues with another width, after a pause."""
        state = self._jobs[job]
        state.done_s += max(now_s - state.since_s, 0) * state.rate
        state.since_s, state.rate = now_s + pause_s, self._rate(job, width)

    def end_s(self, job: int) -> int:
        """When its work is done."""
        return self._when(job, int(self._workload.runtime_s[job]))

    def limit_s(self, job: int) -> int:
        """When its time limit is spent."""
        return self._when(job, int(self._workload.time_limit_s[job]))

    def _when(self, job: int, work_s: int) -> int:
        state = self._jobs[job]
        left_s = max(work_s - state.done_s, 0.0) / state.rate
        return state.since_s + math.ceil(left_s - 1e-6)

    def _rate(self, job: int, width: int) -> float:
        widths = self._workload.malleable
        speedup = None if widths is None else widths.speedup[job]
        if widths is None or speedup is None:
            return 1.0
        return float(speedup.at(width) / speedup.at(int(widths.nominal[job])))
