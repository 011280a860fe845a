# SPDX-License-Identifier: Apache-2.0
"""How much a host is slowed down by its guest, from measurements, with an interval.

Terms
    work    what a job has done so far: the share of its iterations where the application tells it,
            else CPU seconds.
    rate    work per second between two measurements that are at least `APART_S` apart.

Rules
    1. The slowdown is the rate of the host alone over its rate beside the guest, minus 1.
    2. The rate alone is the mean of the same run before the guest came; until `LEAST_SAMPLES` were
       seen, what the application used alone in earlier runs (`histories.py`), for CPU seconds.
       If neither is known, nothing is.
    3. Means weigh the last samples more: those of a host alone over about `LONG` of them, beside a
       guest over `SHORT`.
    4. The interval has its standard error from the samples' variance, which is at least that of
       `NOISE`: two runs of the same program differ by that much without a guest. Rates are then
       divided to first order (delta method).
"""

import math
from dataclasses import dataclass
from typing import Final

from bridge.planning.sharing.histories import History

APART_S: Final = 4
LEAST_SAMPLES: Final = 2
LONG, SHORT = 60, 6
NOISE: Final = 0.05
"""Relative standard deviation of a sample."""
SURE: Final = 1.645
"""Standard errors: one side of 95 %."""
LARGEST: Final = 10.0
CPU_MS, PROGRESS = 0, 1
"""Units of work: milliseconds of CPU time, and parts in `PARTS` of the job's iterations."""
PARTS: Final = 1_000_000_000
_MOST_RATE: Final = 1e9
"""More is no rate: a million CPUs."""
_MOST_NUMBER: Final = (1 << 63) - 1


@dataclass(frozen=True)
class Rate:
    """A mean of rates; replaced, never changed.

    Attributes:
        unit: of the work.
        at_s, work: the last measurement.
        samples: how many rates the mean is of, at most `LONG` or `SHORT`.
        mean, variance: of the rates.
    """

    unit: int
    at_s: int
    work: int
    samples: int = 0
    mean: float = 0.0
    variance: float = 0.0

    def after(self, unit: int, at_s: int, work: int, most: int) -> "Rate":
        """Returns the mean after another measurement; begins again if it does not fit."""
        if unit != self.unit or at_s < self.at_s or work < self.work:
            return Rate(unit, at_s, work)
        if at_s - self.at_s < APART_S:
            return self
        rate = min((work - self.work) / (at_s - self.at_s), _MOST_RATE)
        samples = min(self.samples + 1, most)
        off = rate - self.mean
        mean = self.mean + off / samples
        variance = (1 - 1 / samples) * (self.variance + off * off / samples)
        return Rate(unit, at_s, work, samples, mean, variance)

    @property
    def error(self) -> float:
        """Relative standard error of the mean (rule 4)."""
        if self.samples < 1 or self.mean <= 0:
            return math.inf
        relative = max(math.sqrt(self.variance) / self.mean, NOISE)
        return relative / math.sqrt(self.samples)

    def numbers(self) -> list[int]:
        """For the state: whole numbers."""
        return [
            self.unit, self.at_s, self.work, self.samples, round(self.mean * 1000),
            min(round(self.variance * 1000), _MOST_NUMBER),
        ]  # fmt: skip

    @staticmethod
    def of_numbers(numbers: list[int]) -> "Rate":
        """The inverse."""
        unit, at_s, work, samples, mean, variance = numbers
        return Rate(unit, at_s, work, samples, mean / 1000, max(variance, 0) / 1000)


@dataclass(frozen=True)
class Slowdown:
    """By how much a host is slowed down, as a share of its time alone.

    Attributes:
        mean: the estimate; negative: it was faster.
        error: its standard error.
    """

    mean: float
    error: float

    @property
    def at_least(self) -> float:
        """The lower end of the interval."""
        return self.mean - SURE * self.error


def work_of(cpu_s: float, progress: float) -> tuple[int, int] | None:
    """Unit and work of a measured job; None: neither is known."""
    if progress >= 0:
        return PROGRESS, round(min(progress, 1.0) * PARTS)
    return (CPU_MS, round(cpu_s * 1000)) if cpu_s >= 0 else None


def alone_rate(alone: Rate | None, unit: int, history: History | None) -> Rate | None:
    """Rule 2."""
    if alone is not None and alone.unit == unit and alone.samples >= LEAST_SAMPLES:
        return alone
    if unit == CPU_MS and history is not None and history.busy_cpus > 0:
        return Rate(unit, 0, 0, history.runs, history.busy_cpus * 1000)
    return None


def slowdown(alone: Rate | None, beside: Rate) -> Slowdown | None:
    """Rules 1 and 4; None: too little is known."""
    if alone is None or alone.mean <= 0 or beside.samples < LEAST_SAMPLES:
        return None
    if beside.mean * LARGEST <= alone.mean:
        return Slowdown(LARGEST - 1, LARGEST * NOISE)
    ratio = alone.mean / beside.mean
    return Slowdown(ratio - 1, ratio * math.hypot(alone.error, beside.error))
