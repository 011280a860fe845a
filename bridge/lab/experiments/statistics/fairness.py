# SPDX-License-Identifier: Apache-2.0
"""Who pays for a better mean: jobs and users that are worse off than under the baseline.

A job is worse off if it ends later by more than the tolerance: `TOLERANCE_S`, and `TOLERANCE` of
its wait under the baseline. It ends later because it waits longer, or because it runs longer (where
policies shrink jobs or let them share nodes). A user is worse off if the mean bounded slowdown of
his judged jobs grows by more than `TOLERANCE`. Better off: likewise, the other way round. Longest
wait, percentiles by class and slowdown per user are measures like others (`quantities.py`).
"""

from dataclasses import dataclass
from math import nan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.lab.experiments.statistics.jobs import Jobs

TOLERANCE: Final = 0.10
TOLERANCE_S: Final = 60.0

WORDS: Final = f"by more than {TOLERANCE_S:.0f} s and {TOLERANCE:.0%} of its wait".replace(
    "%", " %"
)


@dataclass(frozen=True)
class Harm:
    """Shares under one policy, means over the runs.

    Attributes:
        low, high: interval of `jobs_worse`; nan: too few units.
        users_worse, users_better: how many of the users with judged jobs.
        worst_user: the largest mean bounded slowdown of a user, over what it was under the
            baseline.
    """

    jobs_worse: float
    jobs_better: float
    users_worse: float
    users_better: float
    worst_user: float
    low: float = nan
    high: float = nan


def worse_off(base: Jobs, other: Jobs) -> NDArray[np.bool_]:
    """(n_jobs,) whether each is worse off; the same jobs, row by row."""
    later_s = other.response_s - base.response_s
    worse: NDArray[np.bool_] = (later_s > TOLERANCE_S) & (later_s > TOLERANCE * base.wait_s)
    return worse


def better_off(base: Jobs, other: Jobs) -> NDArray[np.bool_]:
    """(n_jobs,) whether each is better off."""
    earlier_s = base.response_s - other.response_s
    better: NDArray[np.bool_] = (earlier_s > TOLERANCE_S) & (earlier_s > TOLERANCE * base.wait_s)
    return better


def user_ratios(base: Jobs, other: Jobs) -> NDArray[np.float64]:
    """(n_users,) mean bounded slowdown of each user's jobs, over that under the baseline."""
    _, user, count = np.unique(base.user, return_inverse=True, return_counts=True)
    sums = [np.bincount(user, jobs.bounded_slowdown, len(count)) for jobs in (base, other)]
    ratio: NDArray[np.float64] = sums[1] / sums[0]
    return ratio


def harm_of(base: Jobs, other: Jobs) -> Harm:
    """Judges one run; without interval. All zero without jobs."""
    if not len(base):
        return Harm(0.0, 0.0, 0.0, 0.0, 1.0)
    ratio = user_ratios(base, other)
    return Harm(
        jobs_worse=float(worse_off(base, other).mean()),
        jobs_better=float(better_off(base, other).mean()),
        users_worse=float((ratio > 1 + TOLERANCE).mean()),
        users_better=float((ratio < 1 / (1 + TOLERANCE)).mean()),
        worst_user=float(ratio.max()),
    )
