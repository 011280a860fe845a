# SPDX-License-Identifier: Apache-2.0
"""Bootstrap intervals of the difference between two runs of the same jobs.

What is resampled decides which variation an interval covers:

1. Runs (seeds; the outer unit): how much the difference varies with the order of jobs submitted
   together, with random choices, or with whatever a perturbation draws. A perturbation that draws
   weeks or users makes this the variation between such draws. Needs `FEWEST_RUNS` runs that differ.
2. Weeks: the weeks of submission within the trace are drawn with replacement, the same ones for
   baseline and other, and every job counts as often as its week was drawn. How much the difference
   varies between weeks of this trace; queues that reach from one week into the next make weeks
   dependent, so that such an interval is rather too narrow. Needs `FEWEST_BLOCKS`.
3. Users: likewise, with all jobs of a user as the block: variation between users.

4. Runs and weeks (or users): both at once, drawn independently. The default where a trace is
   repeated without being redrawn: seeds alone would say how a difference depends on chance in these
   very weeks, which is often next to nothing, and not whether it would be there in others.

None covers another machine or another site.

The interval is the expanded percentile interval: for n units, the quantiles of the resampled
differences at Phi(-+ sqrt(n / (n - 1)) * t), t of Student's distribution with n - 1 degrees of
freedom; the plain percentile interval is too narrow for few units. The p-value that goes with it
compares the difference, as a logarithm of the ratio, with its bootstrap standard error, widened in
the same way.

Source: B. Efron, R. Tibshirani, An Introduction to the Bootstrap, 1993; T. Hesterberg, What
Teachers Should Know About the Bootstrap, The American Statistician 69(4), 2015 (expanded
percentile interval).
"""

from dataclasses import dataclass
from functools import cache
from math import isfinite, nan, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.lab.experiments.statistics.jobs import Jobs
from bridge.lab.experiments.statistics.quantities import Quantity
from bridge.lab.experiments.statistics.student import NORMAL, below, quantile
from bridge.units import DAY_S

FEWEST_RUNS: Final = 5
FEWEST_BLOCKS: Final = 8
RESAMPLES: Final = 2000
LEVEL: Final = 0.95
_COARSE: Final = 128
"""Steps of the coarse table of `block_quantiles`."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Estimate:
    """The difference of one measure.

    Attributes:
        base, other: its value under the baseline and under the policy, means over the runs.
        relative: whether `difference`, `low` and `high` are shares of the baseline's value; else
            they are in the unit of the measure, because the baseline's is zero.
        difference: other - base.
        low, high: the interval; nan: there are too few units.
        over: "runs", "weeks", "users", "runs and weeks", "runs and users"; "": none.
        units: the number of these; of two, the smaller one.
        p: the p-value of the hypothesis that there is no difference; nan without interval.
    """

    base: float
    other: float
    relative: bool
    difference: float
    low: float = nan
    high: float = nan
    over: str = ""
    units: int = 0
    p: float = nan

    @property
    def has_interval(self) -> bool:
        return isfinite(self.low) and isfinite(self.high)


def plain(base: float, other: float, units: int = 0) -> Estimate:
    """A difference without an interval."""
    if base > 0:
        return Estimate(base, other, relative=True, difference=other / base - 1, units=units)
    return Estimate(base, other, relative=False, difference=other - base, units=units)


def over_runs(
    base: Floats, other: Floats, rng: np.random.Generator, level: float = LEVEL
) -> Estimate:
    """Compares means over runs; runs are drawn with replacement, both sides together.

    Args:
        base: (n_runs,) the measure of each run under the baseline.
        other: (n_runs,) under the policy, paired.

    Returns:
        An estimate; without an interval for fewer than `FEWEST_RUNS` runs.
    """
    n_runs = len(base)
    found = plain(float(base.mean()), float(other.mean()), n_runs)
    if n_runs < FEWEST_RUNS or not isfinite(found.difference):
        return found
    one, two = _drawn_runs(base, other, rng)
    return _estimated(found, one, two, over="runs", units=n_runs, level=level)


def _drawn_runs(base: Floats, other: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    rows = rng.integers(len(base), size=(RESAMPLES, len(base)))
    return base[rows].mean(axis=1), other[rows].mean(axis=1)


@dataclass(frozen=True)
class Blocks:
    """Blocks of jobs, and how often each was drawn.

    Attributes:
        name: the name of the blocks, in the plural: "weeks", "users".
        of: (n_jobs,) int64, the block of each job, from 0 on.
        weights: (n_resamples, n_blocks) float64, how often each was drawn.
    """

    name: str
    of: Ints
    weights: Floats

    @classmethod
    def drawn(cls, name: str, of: Ints, rng: np.random.Generator) -> "Blocks":
        """Draws as many blocks as there are, with replacement, `RESAMPLES` times.

        Args:
            of: (n_jobs,) the block of each job, any whole numbers.
        """
        _, of = np.unique(of, return_inverse=True)
        n_blocks = int(of.max()) + 1 if len(of) else 1
        draws = rng.multinomial(n_blocks, np.full(n_blocks, 1 / n_blocks), size=RESAMPLES)
        return cls(name, of.astype(np.int64), draws.astype(np.float64))

    def __getitem__(self, rows: NDArray[np.bool_]) -> "Blocks":
        """The same blocks with these jobs only."""
        return Blocks(self.name, self.of[rows], self.weights)

    @property
    def number(self) -> int:
        """The number of blocks that have a job."""
        return len(np.unique(self.of))


def over_blocks(
    base: Jobs, other: Jobs, blocks: Blocks, quantity: Quantity, level: float = LEVEL
) -> Estimate:
    """Compares a measure over jobs; blocks of jobs are drawn, both sides together.

    Args:
        base: the jobs under the baseline.
        other: the same jobs, row by row.

    Returns:
        An estimate; without an interval for fewer than `FEWEST_BLOCKS` blocks, or if the measure
        cannot be resampled by blocks.
    """
    units = blocks.number
    found = plain(quantity.of(base), quantity.of(other), units)
    if units < FEWEST_BLOCKS or not quantity.in_blocks or not isfinite(found.difference):
        return found
    one, two = (_resampled(jobs, blocks, quantity) for jobs in (base, other))
    return _estimated(found, one, two, over=blocks.name, units=units, level=level)


def over_both(
    runs: tuple[Floats, Floats],
    jobs: tuple[Jobs, Jobs],
    blocks: Blocks,
    quantity: Quantity,
    *,
    rng: np.random.Generator,
    level: float = LEVEL,
) -> Estimate:
    """Compares means over runs, with the variation of runs and of blocks of jobs.

    Runs and blocks are drawn independently; a resample is the value of the drawn runs, times by how
    much the drawn blocks change the value over all jobs.

    Args:
        runs: the measure of each run under the baseline and the policy, both (n_runs,).
        jobs: the jobs of some of the runs under both, row by row.

    Returns:
        An estimate over "runs and weeks"; over runs alone if the measure cannot be resampled by
        blocks; over blocks alone if it is zero. Without an interval for too few runs or blocks.
    """
    if not quantity.in_blocks:
        return over_runs(*runs, rng, level)
    whole = quantity.of(jobs[0]), quantity.of(jobs[1])
    if not min(whole) > 0:
        return over_blocks(*jobs, blocks, quantity, level)
    n_runs, units = len(runs[0]), blocks.number
    found = plain(float(runs[0].mean()), float(runs[1].mean()), min(n_runs, units))
    if n_runs < FEWEST_RUNS or units < FEWEST_BLOCKS or not isfinite(found.difference):
        return found
    one, two = (
        drawn * _resampled(side, blocks, quantity) / all_jobs
        for drawn, side, all_jobs in zip(_drawn_runs(*runs, rng), jobs, whole, strict=True)
    )
    over = f"runs and {blocks.name}"
    return _estimated(found, one, two, over=over, units=found.units, level=level)


def weeks_of(submit_s: Floats) -> Ints:
    """(n_jobs,) the week of submission, counted from the first submission."""
    first_s = submit_s.min() if len(submit_s) else 0.0
    weeks: Ints = ((submit_s - first_s) // (7 * DAY_S)).astype(np.int64)
    return weeks


def mean_interval(
    values: Floats, rng: np.random.Generator, level: float = LEVEL
) -> tuple[float, float]:
    """The interval of a mean over runs; (nan, nan) for too few runs."""
    n_runs = len(values)
    if n_runs < FEWEST_RUNS:
        return nan, nan
    drawn = values[rng.integers(n_runs, size=(RESAMPLES, n_runs))].mean(axis=1)
    return _ends(drawn, n_runs, level)


def share_interval(
    marked: NDArray[np.bool_], blocks: Blocks, level: float = LEVEL
) -> tuple[float, float]:
    """The interval of the share of jobs that are marked; (nan, nan) for too few blocks."""
    if blocks.number < FEWEST_BLOCKS:
        return nan, nan
    n_blocks = blocks.weights.shape[1]
    above = blocks.weights @ np.bincount(blocks.of, marked.astype(np.float64), n_blocks)
    under = blocks.weights @ np.bincount(blocks.of, minlength=n_blocks)
    return _ends(above[under > 0] / under[under > 0], blocks.number, level)


def _resampled(jobs: Jobs, blocks: Blocks, quantity: Quantity) -> Floats:
    """(n_resamples,) the measure, every job counted as often as its block; nan without jobs."""
    if quantity.parts is None:
        return block_quantiles(jobs.wait_s, blocks.of, blocks.weights, quantity.share or 0.0)
    n_blocks = blocks.weights.shape[1]
    above, under = (
        blocks.weights @ np.bincount(blocks.of, part, n_blocks) for part in quantity.parts(jobs)
    )
    ratio = np.divide(above, under, out=np.full(len(above), nan), where=under > 0)
    powered: Floats = ratio ** (1 / quantity.power)
    return powered


def block_quantiles(values: Floats, block: Ints, weights: Floats, share: float) -> Floats:
    """Quantiles of values that count as often as their blocks.

    A coarse table of how many values of each block are among the first k finds the part of the
    sorted values that the quantile is in, for all resamples in one product of matrices; only this
    part is then looked at value by value. O(r * (k * b + n / k)) for n values, b blocks
    and r resamples.

    Args:
        values: (n,) float64.
        block: (n,) from 0 on.
        weights: (r, n_blocks) whole numbers >= 0.
        share: the share of the quantile, 0 to 1.

    Returns:
        (r,) the quantile, interpolated linearly as `numpy.quantile` does over repeated values; nan
        if nothing was drawn.
    """
    order = np.argsort(values, kind="stable")
    values, block = values[order], block[order]
    step = max(1, -(-len(values) // _COARSE))
    firsts = np.arange(0, len(values), step)
    n_blocks = weights.shape[1]
    weights = weights.astype(np.float32)  # sums stay below 2^24, where whole numbers are exact
    table = np.zeros((len(firsts) + 1, n_blocks), dtype=np.float32)
    np.add.at(table, (np.arange(len(values)) // step + 1, block), 1.0)
    counts = weights @ np.cumsum(table, axis=0).T  # (r, n_parts + 1): values before each part
    total = counts[:, -1]
    at = share * (total.astype(np.float64) - 1)
    lower = np.floor(at)
    each = np.arange(len(weights))
    found = []
    for rank in (lower, np.minimum(lower + 1, total - 1)):
        part = np.clip((counts <= rank[:, None]).sum(axis=1) - 1, 0, len(firsts) - 1)
        rows = np.minimum(firsts[part][:, None] + np.arange(step), len(values) - 1)
        own = np.arange(step)[None, :] + firsts[part][:, None] < len(values)
        times = np.take_along_axis(weights, block[rows], axis=1) * own
        before = counts[each, part][:, None] + np.cumsum(times, axis=1)
        inside = np.argmax(before > rank[:, None], axis=1)
        found.append(values[rows[each, inside]])
    result: Floats = np.where(total > 0, found[0] + (at - lower) * (found[1] - found[0]), nan)
    return result


@cache
def _tail(units: int, level: float) -> float:
    """The share of the resamples beyond each end of the expanded percentile interval."""
    t = quantile((1 + level) / 2, units - 1)
    return NORMAL.cdf(-sqrt(units / (units - 1)) * t)


def _ends(drawn: Floats, units: int, level: float) -> tuple[float, float]:
    tail = _tail(units, level)
    low, high = np.quantile(drawn, (tail, 1 - tail))
    return float(low), float(high)


def _estimated(
    found: Estimate, base: Floats, other: Floats, *, over: str, units: int, level: float
) -> Estimate:
    """Adds interval and p-value, from the resampled values of both sides."""
    known = np.isfinite(base) & np.isfinite(other)
    base, other = base[known], other[known]
    relative = bool(found.relative and (base > 0).all())
    point = found.difference if relative else found.other - found.base
    drawn = other / base - 1 if relative else other - base
    low, high = _ends(drawn, units, level)
    spread, middle = drawn, point
    if relative and min(float(drawn.min()), point) > -1:
        spread, middle = np.log1p(drawn), float(np.log1p(point))
    error = float(spread.std()) * sqrt(units / (units - 1))
    if error > 1e-12:
        p = 2 * below(-abs(middle) / error, units - 1)
    else:
        p = 1.0 if abs(middle) < 1e-12 else 0.0
    return Estimate(
        found.base, found.other, relative=relative, difference=point,
        low=min(low, point), high=max(high, point), over=over, units=units, p=p,
    )  # fmt: skip
