# SPDX-License-Identifier: Apache-2.0
"""The common part of the models of a window: starts, objective, resources as one pool.

Terms
    weight      cost of a second of waiting; the objective is the weighted sum of the waits. Weights
                are integers, `SCALE` times those of the objective.

Rules
    1. Times count from now. The domain of a start ends where this job alone would cost more than
       the whole greedy plan.
    2. All variables have the greedy plan as hint.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python.cp_model import CpModel, IntervalVar, IntVar

from bridge.papers.dispatch.instance import Instance, Unavailable
from bridge.units import NEVER

SCALE = 10**6


@dataclass(frozen=True)
class Started:
    """A model with its starts.

    Attributes:
        start: a variable for each job.
        end: an expression for each job.
        horizon_s: upper bound of all ends.
    """

    model: CpModel
    start: list[IntVar]
    interval: list[IntervalVar]
    horizon_s: int


def whole_weights(weights: NDArray[np.float64]) -> list[int]:
    """Integer weights; at least 1."""
    largest = float(weights.max()) if len(weights) else 1.0
    scaled = weights * (SCALE / largest if largest else 1.0)
    return [max(1, round(w)) for w in scaled.tolist()]


def started(
    instance: Instance, weights: Sequence[int], place_s: Sequence[int] | None = None
) -> Started:
    """The scheduling model that all dispatchers share, without its resources.

    Args:
        weights: (J,) see `whole_weights`.
        place_s: (J,) the hint; None: the greedy starts.
    """
    model = CpModel()
    horizon_s = instance.horizon_s
    jobs = instance.jobs
    hint = [job.place_s for job in jobs] if place_s is None else list(place_s)
    # The slack of the greedy plan over all jobs' earliest starts bounds each job's delay.
    slack = sum(w * (at - j.release_s) for w, at, j in zip(weights, hint, jobs, strict=True))
    start, interval = [], []
    for i, (job, weight, at) in enumerate(zip(jobs, weights, hint, strict=True)):
        latest_s = min(horizon_s - job.length_s, job.release_s + slack // weight)
        var = model.new_int_var(job.release_s, max(latest_s, at), f"s{i}")
        model.add_hint(var, at)
        start.append(var)
        interval.append(model.new_fixed_size_interval_var(var, job.length_s, f"j{i}"))
    model.minimize(sum(w * var for w, var in zip(weights, start, strict=True)))
    return Started(model, start, interval, horizon_s)


def pool(made: Started, instance: Instance) -> None:
    """Adds the constraint that no resource is used beyond the total of all nodes."""
    capacity, used = instance.pooled()
    for r, maximum in enumerate(capacity.tolist()):
        intervals, demands = taken(made, used, r)
        for job, interval in zip(instance.jobs, made.interval, strict=True):
            if demand := int(job.demand()[r]):
                intervals.append(interval)
                demands.append(demand)
        made.model.add_cumulative(intervals, demands, maximum)


def taken(
    made: Started, used: Sequence[Unavailable], r: int
) -> tuple[list[IntervalVar], list[int]]:
    """The use of one resource, as intervals and their demands."""
    intervals: list[IntervalVar] = []
    demands: list[int] = []
    for one in merged(used, r):
        end_s = min(one.end_s, made.horizon_s) if one.end_s < NEVER else made.horizon_s
        if end_s > one.start_s:
            intervals.append(
                made.model.new_fixed_size_interval_var(one.start_s, end_s - one.start_s, "")
            )
            demands.append(one.amount[0])
    return intervals, demands


def merged(used: Sequence[Unavailable], r: int) -> list[Unavailable]:
    """One resource of the use, with pieces of the same amount merged."""
    pieces: list[Unavailable] = []
    for one in used:
        amount = one.amount[r]
        if not amount:
            continue
        last = pieces[-1] if pieces else None
        if last is not None and last.end_s == one.start_s and last.amount == (amount,):
            pieces[-1] = Unavailable(last.start_s, one.end_s, (amount,))
        else:
            pieces.append(Unavailable(one.start_s, one.end_s, (amount,)))
    return pieces
