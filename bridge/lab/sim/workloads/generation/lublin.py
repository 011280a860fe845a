# SPDX-License-Identifier: Apache-2.0
"""The workload model of Lublin and Feitelson: arrivals, sizes and run times of rigid jobs.

Terms
    bucket      half an hour of the day.
    points      the time until the next arrival in the rush hours, in buckets; a bucket costs as
                many points as its share of a day's arrivals, 1 on average.

Rules
    1. Size: 1 with probability 0.244; otherwise 2^x, x from a two-stage uniform distribution over
       [0.8, u - 2.5] (probability 0.86) and [u - 2.5, u], u = log2 of the machine's processors;
       x is rounded to a whole number for a share of 0.576 of all jobs.
    2. Run time: e^x, x hyper-gamma: Gamma(4.2, 0.94) with probability p, else Gamma(312, 0.03);
       p = 0.78 - 0.0054 * size. Values of x above 12 (45 h) are drawn again.
    3. Time between arrivals in the rush hours: e^x, x Gamma(10.2303 * 1.0225, 0.4871), at most 13;
       it is paid for in points. The points of the buckets are differences of the distribution
       function of Gamma(8.1737, 3.9631), for a day that begins with bucket 11.
    4. The model has neither users nor time limits. A time limit is the next common one above run
       time / a, a uniform in (0, 1] but at least 0.05: how much of its limit a job uses.

Source: U. Lublin, D. G. Feitelson, The Workload on Parallel Supercomputers: Modeling the
Characteristics of Rigid Jobs, J. Parallel and Distributed Computing 63(11), 2003; the parameters
for all jobs together, without types. Rule 4: A. W. Mu'alem, D. G. Feitelson, Utilization,
Predictability, Workloads, and User Runtime Estimates in Scheduling the IBM SP2 with Backfilling,
IEEE TPDS 12(6), 2001 (used shares of limits are about uniform).
Deviates: p follows the published formula on a machine of 128 processors; on others the size counts
in relation to the machine (size * 128 / processors), as p would be 0 for all large jobs otherwise.
"""

from dataclasses import dataclass
from math import exp, lgamma, log, log2
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError

PROCESSORS: Final = 128
"""Of the machine that the parameters are for."""
SERIAL: Final = 0.244
POWER_OF_TWO: Final = 0.576
SIZE_LOW: Final = 0.8
SIZE_MIDDLE: Final = 2.5
"""Below the largest size."""
SIZE_FIRST: Final = 0.86
RUNTIME_SHORT: Final = (4.2, 0.94)
RUNTIME_LONG: Final = (312.0, 0.03)
RUNTIME_SLOPE: Final = -0.0054
RUNTIME_SHARE: Final = 0.78
LONGEST_LOG: Final = 12.0
GAP: Final = (10.2303 * 1.0225, 0.4871)
LONGEST_GAP_LOG: Final = 13.0
DAY: Final = (8.1737, 3.9631)
FIRST_BUCKET: Final = 11
BUCKETS: Final = 48
BUCKET_S: Final = 1800
DAY_S: Final = BUCKETS * BUCKET_S
LIMITS_S: Final = np.array(
    [60, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600, 28_800, 43_200, 64_800, 86_400, 129_600,
     172_800, 259_200, 432_000, 604_800, 1_209_600, 2_592_000, 5_184_000]
)  # fmt: skip
_MIN_USED: Final = 0.05


@dataclass(frozen=True)
class Drawn:
    """Jobs in order of submission; columns of length n_jobs, int64.

    Attributes:
        submit_s: from midnight of the first day.
        processors, runtime_s, time_limit_s: >= 1.
    """

    submit_s: NDArray[np.int64]
    processors: NDArray[np.int64]
    runtime_s: NDArray[np.int64]
    time_limit_s: NDArray[np.int64]


def lublin(n_jobs: int, processors: int, seed: int) -> Drawn:
    """Draws jobs.

    Args:
        processors: processors of the machine, at least 8.
        seed: same seed, same jobs.

    Raises:
        ConfigError: the machine is too small for the model.
    """
    if processors < 8:
        raise ConfigError("procs", f"the model is for 8 processors and more, not {processors}")
    dice = np.random.default_rng(seed)
    submit_s = arrivals_s(n_jobs, dice)
    size = sizes(n_jobs, processors, dice)
    runtime_s = runtimes_s(size.astype(np.float64) * (PROCESSORS / processors), dice)
    return Drawn(submit_s, size, runtime_s, limits_s(runtime_s, dice))


def sizes(n_jobs: int, processors: int, dice: np.random.Generator) -> NDArray[np.int64]:
    """Sizes of jobs (rule 1)."""
    high = log2(processors)
    middle = max(high - SIZE_MIDDLE, SIZE_LOW)
    kind = dice.random(n_jobs)
    first = dice.random(n_jobs) <= SIZE_FIRST
    exponent = np.where(
        first, dice.uniform(SIZE_LOW, middle, n_jobs), dice.uniform(middle, high, n_jobs)
    )
    exponent = np.where(kind <= SERIAL + POWER_OF_TWO, np.floor(exponent + 0.5), exponent)
    found = np.where(kind <= SERIAL, 1, np.floor(2.0**exponent + 0.5))
    bounded: NDArray[np.int64] = np.minimum(found, processors).astype(np.int64)
    return bounded


def runtimes_s(size: NDArray[np.float64], dice: np.random.Generator) -> NDArray[np.int64]:
    """Run times of jobs of these sizes on 128 processors, s (rule 2); at least 1."""
    short = dice.random(len(size)) <= np.clip(RUNTIME_SLOPE * size + RUNTIME_SHARE, 0, 1)
    found = np.full(len(size), np.inf)
    while len(left := np.flatnonzero(found > LONGEST_LOG)):
        chosen = short[left]
        found[left] = np.where(
            chosen,
            dice.gamma(*RUNTIME_SHORT, len(left)),
            dice.gamma(*RUNTIME_LONG, len(left)),
        )
    seconds: NDArray[np.int64] = np.maximum(np.exp(found), 1).astype(np.int64)
    return seconds


def arrivals_s(n_jobs: int, dice: np.random.Generator) -> NDArray[np.int64]:
    """Times of submission from midnight on, s (rule 3)."""
    gaps = dice.gamma(*GAP, n_jobs)
    while len(left := np.flatnonzero(gaps > LONGEST_GAP_LOG)):
        gaps[left] = dice.gamma(*GAP, len(left))
    points = np.cumsum(np.exp(gaps) / BUCKET_S)
    paid = np.concatenate(([0.0], np.cumsum(bucket_points())))
    within = np.interp(points % BUCKETS, paid, np.arange(BUCKETS + 1) * BUCKET_S)
    return (points // BUCKETS * DAY_S + within).astype(np.int64)


def bucket_points() -> NDArray[np.float64]:
    """(48,) the points of each half hour of a day from midnight on; their mean is 1."""
    at = np.arange(FIRST_BUCKET, FIRST_BUCKET + BUCKETS)
    share = np.array([_gamma_cdf(i + 0.5) - _gamma_cdf(i - 0.5) for i in at.tolist()])
    found = np.zeros(BUCKETS)
    found[(at - 1) % BUCKETS] = share
    points: NDArray[np.float64] = found / found.mean()
    return points


def limits_s(runtime_s: NDArray[np.int64], dice: np.random.Generator) -> NDArray[np.int64]:
    """Time limits for run times, s (rule 4)."""
    used = np.maximum(1.0 - dice.random(len(runtime_s)), _MIN_USED)
    position = np.searchsorted(LIMITS_S, runtime_s / used)
    limits: NDArray[np.int64] = LIMITS_S[np.minimum(position, len(LIMITS_S) - 1)].astype(np.int64)
    bounded: NDArray[np.int64] = np.maximum(limits, runtime_s)
    return bounded


def _gamma_cdf(x: float) -> float:
    """Distribution function of the gamma distribution `DAY`, by its series."""
    shape, scale = DAY
    z = x / scale
    term = total = 1 / shape
    n = shape
    while term > total * 1e-15:
        n += 1
        term *= z / n
        total += term
    return total * exp(shape * log(z) - z - lgamma(shape))
