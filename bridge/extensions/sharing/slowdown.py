# SPDX-License-Identifier: Apache-2.0
"""Measures how much a guest slows its host down, with a confidence interval.

Terms
    work progress so far, in one of two units: the share of its iterations that the application
            reports, and CPU seconds. Both are measured.
    rate    work per second between two measurements that are at least `APART_S` apart.

Rules
    1. The slowdown is the rate of the host alone over its rate beside the guest, minus 1.
    2. The rate alone is the mean of the same run before the guest started; with fewer than
       `MIN_SAMPLES` samples, and for CPU seconds, that of earlier runs of the application
       (`histories.py`). A rate of 0 is not known. Nor is that of progress that has changed less
       than twice, or in less than `OFTEN` of the samples. The unit is that in which the rate alone
       is known, progress before CPU seconds. If neither is known, the slowdown is unknown.
    3. Means weigh recent samples more: over about `LONG` samples for a host alone, and `SHORT`
       beside a guest.
    4. The standard error of the interval follows from the samples' variance, which is at least that
       of `NOISE`, the difference of two runs of the same program without a guest; for the rate
       beside the guest it is also at least that of the rate alone, because two samples may agree by
       chance. The error of the quotient of rates is to first order (delta method).
"""

import math
from dataclasses import dataclass
from typing import Final

from bridge.extensions.sharing.histories import History

APART_S: Final = 4
MIN_SAMPLES: Final = 2
LONG, SHORT = 60, 6
NOISE: Final = 0.05
"""Relative standard deviation of a sample."""
SURE: Final = 1.645
"""Half-width of the 95 % interval, in standard errors."""
LARGEST: Final = 10.0
OFTEN: Final = 1 / 3
"""Progress that changes more rarely says nothing about some seconds."""
CPU_MS, PROGRESS = 0, 1
"""Units of work: milliseconds of CPU time, and parts in `PARTS` of the job's iterations."""
UNITS: Final = (PROGRESS, CPU_MS)
"""The preferred one first."""
PARTS: Final = 1_000_000_000
_MAX_RATE: Final = 1e9
"""Larger rates are invalid: a million CPUs."""
_MAX_NUMBER: Final = (1 << 63) - 1


@dataclass(frozen=True)
class Rate:
    """A mean of rates; replaced, never changed.

    Attributes:
        at_s, work: the last measurement.
        samples: number of rates in the mean, at most `LONG` or `SHORT`.
        moved: share of the samples in which the work has changed.
    """

    unit: int
    at_s: int
    work: int
    samples: int = 0
    mean: float = 0.0
    variance: float = 0.0
    moved: float = 0.0

    def after(self, at_s: int, work: int, maximum: int) -> "Rate":
        """Returns the mean after another measurement; starts again if the job differs."""
        if at_s < self.at_s or work < self.work:
            return Rate(self.unit, at_s, work)
        if at_s - self.at_s < APART_S:
            return self
        rate = min((work - self.work) / (at_s - self.at_s), _MAX_RATE)
        samples = min(self.samples + 1, maximum)
        off = rate - self.mean
        mean = self.mean + off / samples
        variance = (1 - 1 / samples) * (self.variance + off * off / samples)
        moved = self.moved + (float(work > self.work) - self.moved) / samples
        return Rate(self.unit, at_s, work, samples, mean, variance, moved)

    @property
    def known(self) -> bool:
        """Whether it may be the rate alone (rule 2)."""
        if self.samples < MIN_SAMPLES or self.mean <= 0:
            return False
        changes = self.moved * self.samples
        return self.unit == CPU_MS or (round(changes, 1) >= MIN_SAMPLES and self.moved >= OFTEN)

    @property
    def deviation(self) -> float:
        """Relative standard deviation of a sample (rule 4)."""
        return max(math.sqrt(self.variance) / self.mean, NOISE) if self.mean > 0 else math.inf

    @property
    def error(self) -> float:
        """Relative standard error of the mean."""
        return self.deviation / math.sqrt(self.samples) if self.samples else math.inf

    def numbers(self) -> list[int]:
        """Whole numbers for the state of the policy."""
        return [
            self.unit, self.at_s, self.work, self.samples, round(self.mean * 1000),
            min(round(self.variance * 1000), _MAX_NUMBER), round(self.moved * 1000),
        ]  # fmt: skip

    @staticmethod
    def of_numbers(numbers: list[int]) -> "Rate":
        unit, at_s, work, samples, mean, variance, moved = numbers
        variance = max(variance, 0)
        return Rate(unit, at_s, work, samples, mean / 1000, variance / 1000, moved / 1000)


@dataclass(frozen=True)
class HostSlowdown:
    """The slowdown of a host, as a share of its time alone.

    Attributes:
        mean: the estimate; negative: it was faster.
    """

    mean: float
    error: float

    @property
    def at_least(self) -> float:
        """The lower end of the interval."""
        return self.mean - SURE * self.error


def works_of(cpu_s: float, progress: float) -> dict[int, int]:
    """Unit to work of a measured job, those that are known."""
    found = {}
    if progress >= 0:
        found[PROGRESS] = round(min(progress, 1.0) * PARTS)
    if cpu_s >= 0:
        found[CPU_MS] = round(cpu_s * 1000)
    return found


def alone_rate(alone: Rate | None, unit: int, history: History | None) -> Rate | None:
    """The rate of the host without guests (rule 2)."""
    if alone is not None and alone.unit == unit and alone.known:
        return alone
    if unit == CPU_MS and history is not None and history.busy_cpus > 0:
        return Rate(unit, 0, 0, history.runs, history.busy_cpus * 1000)
    return None


def slowdown(alone: Rate | None, beside: Rate) -> HostSlowdown | None:
    """Rules 1 and 4; None: too little is known."""
    if alone is None or alone.mean <= 0 or beside.samples < MIN_SAMPLES:
        return None
    if beside.mean * LARGEST <= alone.mean:
        return HostSlowdown(LARGEST - 1, LARGEST * NOISE)
    ratio = alone.mean / beside.mean
    error = max(alone.deviation, beside.deviation) / math.sqrt(beside.samples)
    return HostSlowdown(ratio - 1, ratio * math.hypot(alone.error, error))
