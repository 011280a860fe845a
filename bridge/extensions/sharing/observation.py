# SPDX-License-Identifier: Apache-2.0
"""What the learner knows about a host before a choice, and the loss that it gets afterwards.

Terms
    host        a job whose nodes are shared
    guest       the job that is placed onto a host's nodes
    happiness   Hp(t) = remaining time limit * performance / remaining work: at 1 or above the job
                is expected to end within its limit

| index | feature | meaning | unit | bounds |
|---|---|---|---|---|
| 0 | cpu_percent | CPU time used, of the CPUs allocated | % | 0 to 100 |
| 1 | memory_percent | memory used, of the memory of its nodes | % | 0 to 100 |
| 2 | parallel | 0: one CPU is busy (a sequential stage), 1: several | - | 0 or 1 |
| 3 | elapsed_percent | run time so far, of the time limit | % | 0 to 100 |
| 4 | happiness | see above | - | 0 to 10 |

Source: A. Souza, K. Pelckmans, J. Tordsson, A HPC co-scheduler with reinforcement learning,
JSSPP 2021, section 3. Our copy of the text lacks its equations. Deviates: the paper does not say
how the remaining work is measured. Here work is CPU seconds, and performance is CPU seconds per
second. The total work is that of earlier runs of the application. Without any, the job is expected
to continue until its limit at its mean rate so far: then Hp is the present performance relative to
the mean.
"""

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Final

MAX_HAPPY: Final = 10.0
"""Upper bound of Hp, for jobs with little or no remaining work."""
FULL_LOSS_AT: Final = 0.5
"""An overrun of this share of the time limit, or more, is a loss of 1."""


@dataclass(frozen=True)
class Observation:
    """A host at one instant; the module's table has units and bounds."""

    cpu_percent: float
    memory_percent: float
    parallel: float
    elapsed_percent: float
    happiness: float

    def vector(self) -> Sequence[float]:
        """The features in the order of the table."""
        values: tuple[float, ...] = astuple(self)
        return values


FEATURES: Final = {
    "cpu_percent": (0.0, 100.0),
    "memory_percent": (0.0, 100.0),
    "parallel": (0.0, 1.0),
    "elapsed_percent": (0.0, 100.0),
    "happiness": (0.0, MAX_HAPPY),
}
"""Name to least and greatest value, in the order of `Observation.vector`."""


def happiness(
    *,
    elapsed_s: float,
    time_limit_s: float,
    used_cpu_s: float,
    cpus_now: float,
    expected_cpu_s: float | None = None,
) -> float:
    """Hp(t) of a running job, 0 to `MAX_HAPPY`.

    Args:
        elapsed_s: run time so far, s.
        time_limit_s: its limit, s.
        used_cpu_s: CPU time so far, s.
        cpus_now: CPUs in use at present, a mean over the last measurements.
        expected_cpu_s: CPU time that the application takes in total, s; None: not known.
    """
    left_s = max(time_limit_s - elapsed_s, 0.0)
    if expected_cpu_s is None:
        mean_cpus = used_cpu_s / elapsed_s if elapsed_s > 0 else cpus_now
        work_left_s = mean_cpus * left_s
    else:
        work_left_s = expected_cpu_s - used_cpu_s
    if work_left_s <= 0:
        return MAX_HAPPY
    return min(left_s * max(cpus_now, 0.0) / work_left_s, MAX_HAPPY)


def overrun_loss(run_s: float, time_limit_s: float) -> float:
    """The loss of a run that has ended: 0 within its limit, 1 at an overrun of 50 % or more.

    Raises:
        ValueError: the limit is not positive, or a time is not finite.
    """
    if not (time_limit_s > 0 and math.isfinite(time_limit_s) and math.isfinite(run_s)):
        raise ValueError(f"run time {run_s} s, time limit {time_limit_s} s")
    return min(max((run_s - time_limit_s) / (FULL_LOSS_AT * time_limit_s), 0.0), 1.0)
