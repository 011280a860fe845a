# SPDX-License-Identifier: Apache-2.0
"""The progress of simulated malleable jobs over their changes of width.

Rules
    1. Run time and time limit are those at the job's nominal width (`Malleable.nominal`). At
       another width both are spent in proportion to the speed-up there. After the end of the run
       time the limit is spent as in the last phase.
    2. Work done is counted in seconds at the nominal width. Each phase of a job
       (`bridge.lab.sim.workloads.speedup.Phases`) is an interval of it.
    3. During a change a job first continues at its old width, then stands still and spends nothing
       of its limit, then continues at its new width (`bridge.lab.sim.workloads.change_costs`).
    4. An end falls on a whole second, the first one at which nothing is left.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bridge.lab.sim.workloads.speedup import Speedup
from bridge.lab.sim.workloads.workload import Workload

_STILL = 0


@dataclass
class _Job:
    """A running job.

    Attributes:
        done_s: its work at the beginning of the first leg.
        legs: begin, s, and width; 0: it stands still. The last one has no end.
        bounds_s: where each phase ends, in work; the last one never.
        parts: the speed-up of each phase; None: the same speed at any width.
    """

    done_s: float
    legs: list[tuple[float, int]]
    bounds_s: Sequence[float]
    parts: Sequence[Speedup | None]
    nominal: int

    def rate(self, phase: int, width: int) -> float:
        """Work per second."""
        part = self.parts[phase]
        return 1.0 if part is None else float(part.at(width) / part.at(self.nominal))

    def lasts_s(self, done_s: float, until_s: float, width: int) -> float:
        """How long it takes from one amount of work to another."""
        took_s = 0.0
        for phase, bound_s in enumerate(self.bounds_s):
            if done_s >= until_s:
                break
            if done_s < bound_s:
                end_s = min(bound_s, until_s)
                took_s += (end_s - done_s) / self.rate(phase, width)
                done_s = end_s
        return took_s

    def advanced(self, done_s: float, left_s: float, width: int) -> float:
        """The work after so many seconds at a width."""
        for phase, bound_s in enumerate(self.bounds_s):
            if done_s >= bound_s:
                continue
            rate = self.rate(phase, width)
            if done_s + left_s * rate <= bound_s:
                return done_s + left_s * rate
            left_s -= (bound_s - done_s) / rate
            done_s = bound_s
        return done_s


class Work:
    """The progress of running malleable jobs."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        self._jobs: dict[int, _Job] = {}

    def start(self, job: int, width: int, now_s: int) -> None:
        """A job starts from the beginning."""
        widths = self._workload.malleable
        speedup = None if widths is None else widths.speedup[job]
        nominal = width if widths is None else int(widths.nominal[job])
        bounds_s, parts = _phases(speedup, nominal, float(self._workload.runtime_s[job]))
        self._jobs[job] = _Job(0.0, [(float(now_s), width)], bounds_s, parts, nominal)

    def resize(self, job: int, width: int, now_s: int, goes_on_s: float, still_s: float) -> None:
        """A job gets another width: it first continues, then stands still, then has it."""
        state = self._jobs[job]
        before = self._width(state, now_s)
        state.done_s = self._done_s(state, now_s)
        still_from_s = now_s + goes_on_s
        legs = [(float(now_s), before)] if goes_on_s > 0 else []
        legs += [(still_from_s, _STILL)] if still_s > 0 else []
        state.legs = [*legs, (still_from_s + still_s, width)]

    def end_s(self, job: int) -> int:
        """When its work is done."""
        return self._when_s(self._jobs[job], float(self._workload.runtime_s[job]))

    def limit_s(self, job: int) -> int:
        """When its time limit is spent."""
        return self._when_s(self._jobs[job], float(self._workload.time_limit_s[job]))

    def phases(self, job: int) -> list[tuple[float, int]]:
        """When each phase begins at the job's width, s, and its number; the present one first.

        Until its next change. Phases after the end of the job's work are left out.
        """
        state = self._jobs[job]
        from_s, width = state.legs[-1]
        done_s = self._done_s(state, from_s)
        found: list[tuple[float, int]] = []
        for phase, bound_s in enumerate(state.bounds_s):
            if done_s < bound_s:
                found.append((from_s, phase))
                from_s += (bound_s - done_s) / state.rate(phase, width)
                done_s = bound_s
        return found

    def _width(self, state: _Job, at_s: float) -> int:
        return next((width for begin_s, width in reversed(state.legs) if begin_s <= at_s), _STILL)

    def _done_s(self, state: _Job, at_s: float) -> float:
        """The work at an instant."""
        done_s = state.done_s
        ends_s = [begin_s for begin_s, _ in state.legs[1:]] + [math.inf]
        for (begin_s, width), end_s in zip(state.legs, ends_s, strict=True):
            left_s = min(at_s, end_s) - begin_s
            if left_s > 0 and width != _STILL:
                done_s = state.advanced(done_s, left_s, width)
        return done_s

    def _when_s(self, state: _Job, work_s: float) -> int:
        """The second at which so much work is done."""
        done_s = state.done_s
        ends_s = [begin_s for begin_s, _ in state.legs[1:]] + [math.inf]
        for (begin_s, width), end_s in zip(state.legs, ends_s, strict=True):
            if width == _STILL:
                continue
            left_s = state.lasts_s(done_s, work_s, width)
            if begin_s + left_s <= end_s:
                whole_s = math.floor(begin_s)
                return whole_s + math.ceil(begin_s - whole_s + left_s - 1e-6)
            done_s = state.advanced(done_s, end_s - begin_s, width)
        raise AssertionError("the last leg has no end")


def _phases(
    speedup: Speedup | None, nominal: int, runtime_s: float
) -> tuple[list[float], list[Speedup | None]]:
    """Where phases end, in seconds at the nominal width (the last never), and their speed-ups."""
    if speedup is None:
        return [math.inf], [None]
    parts = speedup.parts()
    lasts = [part.share / part.speedup.at(nominal) for part in parts]
    total, before, bounds_s = math.fsum(lasts), 0.0, []
    for share in lasts[:-1]:
        before += share
        bounds_s.append(runtime_s * before / total)
    return [*bounds_s, math.inf], [part.speedup for part in parts]
