# SPDX-License-Identifier: Apache-2.0
"""The measures that experiments compare, each in the form that its bootstrap needs.

| measure | formula | unit |
|---|---|---|
| mean wait | as in `bridge.measures` | s |
| median, 95 %, 99 % of the waits | interpolated linearly between jobs | s |
| longest wait | maximum | s |
| mean response | from submission to end: sees jobs that shrink or share, and run longer | s |
| bounded slowdown | mean, as in `bridge.measures` | 1 |
| power mean of the waits | (sum of w * wait^2 / sum of w)^(1/2), w: CPU-seconds of the job | s |
| slowdown per user | mean over users of each one's mean bounded slowdown | 1 |
| utilisation | CPU-seconds held from the first to the last judged submission / (CPUs * time) | 1 |
| makespan | latest end - earliest submission, of all jobs | s |

The power mean sees tails that the mean hides, and jobs by the work that they hold. A ratio of sums
over jobs (means, power mean) or a quantile can be computed again for any weights of blocks of jobs;
the longest wait, utilisation and makespan cannot, and have intervals over runs only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.lab.experiments.statistics.jobs import Jobs, RunPair

POWER: Final = 2.0
"""Exponent of the power mean."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Quantity:
    """One measure of the judged jobs of a run.

    Attributes:
        name: key in files.
        unit: "s", "share" or "".
        better: -1: smaller is better; 1: larger.
        parts: numerator and denominator of each job, both (n_jobs,), whose sums are divided.
        power: the quotient is taken to 1 / power.
        share: the quantile of the waits, 0 to 1; 1 is the longest.
    """

    name: str
    title: str
    unit: str = "s"
    better: int = -1
    parts: Callable[[Jobs], tuple[Floats, Floats]] | None = None
    power: float = 1.0
    share: float | None = None

    def of(self, jobs: Jobs) -> float:
        """The value over these jobs; nan without jobs."""
        if not len(jobs):
            return float("nan")
        if self.parts is not None:
            above, below = self.parts(jobs)
            return float((above.sum() / below.sum()) ** (1 / self.power)) if below.sum() else 0.0
        return float(np.quantile(jobs.wait_s, self.share or 0.0))

    @property
    def in_blocks(self) -> bool:
        """Whether it can be resampled by blocks of jobs."""
        return self.parts is not None or (self.share is not None and self.share < 1)


def _each(values: Callable[[Jobs], Floats]) -> Callable[[Jobs], tuple[Floats, Floats]]:
    return lambda jobs: (values(jobs), np.ones(len(jobs)))


def _power_parts(jobs: Jobs) -> tuple[Floats, Floats]:
    weight = jobs.cpu_s
    return weight * jobs.wait_s**POWER, weight


def _user_parts(jobs: Jobs) -> tuple[Floats, Floats]:
    _, user, count = np.unique(jobs.user, return_inverse=True, return_counts=True)
    weight = 1 / count[user]
    return weight * jobs.bounded_slowdown, weight


MEAN_WAIT: Final = Quantity("wait_mean", "mean wait", parts=_each(lambda jobs: jobs.wait_s))
LONGEST: Final = Quantity("wait_max", "longest wait", share=1.0)
RESPONSE: Final = Quantity(
    "response_mean", "mean response", parts=_each(lambda jobs: jobs.response_s)
)

OF_JOBS: Final = (
    MEAN_WAIT,
    Quantity("wait_median", "median wait", share=0.5),
    Quantity("wait_p95", "95 % waited no longer than", share=0.95),
    Quantity("wait_p99", "99 % waited no longer than", share=0.99),
    LONGEST,
    RESPONSE,
    Quantity(
        "bounded_slowdown", "mean bounded slowdown", "", parts=_each(lambda j: j.bounded_slowdown)
    ),
    Quantity("wait_power_mean", "power mean of waits", parts=_power_parts, power=POWER),
    Quantity("user_slowdown", "slowdown per user", "", parts=_user_parts),
)
"""Of the judged jobs, or of one class of them."""

OF_RUNS: Final = (
    Quantity("utilisation", "utilisation", "share", better=1),
    Quantity("makespan", "makespan"),
)
"""Of whole runs; `of_run` computes them."""

BY_NAME: Final = {quantity.name: quantity for quantity in OF_JOBS + OF_RUNS}


def of_run(pair: RunPair) -> dict[str, tuple[float, float]]:
    """Utilisation and makespan under baseline and other; without a capacity no utilisation."""
    found = {"makespan": (_makespan_s(pair.base), _makespan_s(pair.other))}
    if pair.base.capacity and pair.judged.any():
        submit_s = pair.base.submit_s[pair.judged]
        window = float(submit_s.min()), float(submit_s.max())
        if window[1] > window[0]:
            found["utilisation"] = utilisation(pair.base, window), utilisation(pair.other, window)
    return found


def utilisation(jobs: Jobs, window_s: tuple[float, float]) -> float:
    """The share of the machine that was held from window_s[0] to window_s[1]."""
    inside_s = np.minimum(jobs.end_s, window_s[1]) - np.maximum(jobs.start_s, window_s[0])
    held = float((jobs.width * np.maximum(inside_s, 0)).sum())
    return held / ((jobs.capacity or 1) * (window_s[1] - window_s[0]))


def _makespan_s(jobs: Jobs) -> float:
    return float(jobs.end_s.max() - jobs.submit_s.min())
