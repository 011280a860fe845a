# SPDX-License-Identifier: Apache-2.0
"""The measures of a schedule, each defined once.

| measure | formula | unit |
|---|---|---|
| wait | start - submit | s |
| turnaround | end - submit | s |
| slowdown | turnaround / runtime | 1 |
| bounded slowdown | max(1, turnaround / max(runtime, 10 s)) | 1 |
| makespan | latest end - earliest submit | s |
| utilization | processor-seconds held / (machine's processors * makespan) | 1 |
| decision time | from the snapshot handed over to the plan received | ms |
| run time error | abs(predicted run time - runtime); its mean and percentiles | s |
| underestimated | jobs whose runtime is longer than predicted / jobs | 1 |
| run time accuracy | mean of smaller / larger of the two | 1 |
| start error | actual start - promised start; by the first promise, and by the last before it | s |
| absolute start error | abs(start error); its mean, median and 90th percentile | s |
| kept | jobs whose start error is <= 0 / promised starts: never later than promised | 1 |
| changes | times a job's promised start changed, per promised start | 1 |
| churn | sum of abs(new - old promised start), later and earlier apart, per promised start | s |

An extension may add measures, as that of power does (`bridge.extensions.power.measures`).

Runtime is end - start of the run that counted. Jobs that never started or never ended are counted
in `unfinished` and enter no other measure. A promised start is an announced planned start
(`bridge.state.accuracy`); jobs that start without one are counted in `unpromised`, promised ones
that leave the queue in `gone`, and neither enters an error. The predicted run time is that with
which a job was started: its time limit, or what was predicted.

Where decisions take time in a simulation, what a start lags behind its second
(`ExecutedSchedule.lag_s`) is part of wait and turnaround.

Source: D. G. Feitelson, L. Rudolph et al., Theory and Practice in Parallel Job Scheduling,
JSSPP 1997; bounded slowdown with 10 s as in the Parallel Workloads Archive's literature. Error of
a predicted start: W. Smith, V. Taylor, I. Foster, Using Run-Time Predictions to Estimate Queue Wait
Times and Improve Scheduler Performance, JSSPP 1999 (mean absolute error); promises that hold from
submission on: A. M. Lindsay et al., Backfilling with Guarantees Granted upon Job Submission,
Euro-Par 2011. Churn is ours. Run time accuracy: D. Tsafrir, Y. Etsion, D. G. Feitelson, Backfilling
Using System-Generated Predictions Rather than User Runtime Estimates, IEEE TPDS 18(6), 2007.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bridge.model.parts import NO_PARTS, Parts
from bridge.units import BOUND_S, NEVER

PERCENTILES = (50, 90, 95, 99)

SIZE_CLASSES = (
    ("1 processor", 0.0),
    ("up to 1/8 of the machine", 1 / 8),
    ("up to 1/2", 1 / 2),
    ("over 1/2", 1.0),
)
"""Class name and the largest share of the machine it holds; the first is for single processors."""


@dataclass(frozen=True)
class ExecutedSchedule:
    """When each job was submitted, started and ended, as columns of length n_jobs.

    Attributes:
        capacity: processors of the machine.
        submit_s: int64.
        start_s: int64; NEVER: did not start.
        end_s: int64; NEVER: did not end.
        processors: int64.
        held_s: int64: processor-seconds that each held, which differ from processors * run time
            if its width changed; None: no width changed.
        busy: instants, and the processors held from each on, of all jobs together, if widths
            changed; None: no width changed.
        lag_s: float64: by how much each began, and ended, after the stated second; None: zero.
    """

    capacity: int
    submit_s: NDArray[np.int64]
    start_s: NDArray[np.int64]
    end_s: NDArray[np.int64]
    processors: NDArray[np.int64]
    lag_s: NDArray[np.float64] | None = None
    held_s: NDArray[np.int64] | None = None
    busy: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    def __len__(self) -> int:
        return len(self.submit_s)

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Jobs that ran to an end."""
        done: NDArray[np.bool_] = (self.start_s != NEVER) & (self.end_s != NEVER)
        return done


@dataclass(frozen=True)
class Spells:
    """Which nodes each job held when, in several runs if it was requeued.

    Attributes:
        job: (n,) int64 position in the run.
        from_s, until_s: (n,) int64.
        indptr, nodes: spell i is on nodes[indptr[i]:indptr[i + 1]], ascending.
    """

    job: NDArray[np.int64]
    from_s: NDArray[np.int64]
    until_s: NDArray[np.int64]
    indptr: NDArray[np.int64]
    nodes: NDArray[np.int32]

    @classmethod
    def of(cls, spells: Iterable[tuple[int, int, int, NDArray[np.int32]]]) -> Self:
        """Takes job, begin, end and nodes, in order of the ends; joins those on the same nodes."""
        joined: list[tuple[int, int, int, NDArray[np.int32]]] = []
        last: dict[int, int] = {}
        for job, from_s, until_s, nodes in spells:
            before = joined[last[job]] if job in last else None
            if before is not None and before[2] == from_s and np.array_equal(before[3], nodes):
                joined[last[job]] = job, before[1], until_s, nodes
            elif until_s > from_s:
                last[job] = len(joined)
                joined.append((job, from_s, until_s, nodes))
        times = np.array([spell[:3] for spell in joined], dtype=np.int64).reshape(-1, 3)
        held = [nodes for *_, nodes in joined]
        indptr = np.cumsum([0, *map(len, held)], dtype=np.int64)
        nodes = np.concatenate(held) if held else np.zeros(0, dtype=np.int32)
        return cls(times[:, 0], times[:, 1], times[:, 2], indptr, nodes)


def wait_s(schedule: ExecutedSchedule) -> NDArray[np.int64] | NDArray[np.float64]:
    """Start - submit, s."""
    whole = schedule.start_s - schedule.submit_s
    return whole if schedule.lag_s is None else whole + schedule.lag_s


def turnaround_s(schedule: ExecutedSchedule) -> NDArray[np.int64] | NDArray[np.float64]:
    """End - submit, s."""
    whole = schedule.end_s - schedule.submit_s
    return whole if schedule.lag_s is None else whole + schedule.lag_s


def slowdown(schedule: ExecutedSchedule) -> NDArray[np.float64]:
    """Turnaround / runtime."""
    runtime_s = np.maximum(schedule.end_s - schedule.start_s, 1)
    ratio: NDArray[np.float64] = np.true_divide(turnaround_s(schedule), runtime_s)
    return ratio


def bounded_slowdown(schedule: ExecutedSchedule) -> NDArray[np.float64]:
    """max(1, turnaround / max(runtime, `BOUND_S`))."""
    runtime_s = schedule.end_s - schedule.start_s
    ratio = np.true_divide(turnaround_s(schedule), np.maximum(runtime_s, BOUND_S))
    bounded: NDArray[np.float64] = np.maximum(ratio, 1.0)
    return bounded


def makespan_s(schedule: ExecutedSchedule) -> int:
    """Latest end - earliest submit, s; 0 without jobs."""
    return int(schedule.end_s.max() - schedule.submit_s.min()) if len(schedule) else 0


def utilization(schedule: ExecutedSchedule) -> float:
    """Used processor-seconds / (machine's processors * makespan); 0 without jobs."""
    held_s = schedule.held_s
    if held_s is None:
        held_s = schedule.processors * (schedule.end_s - schedule.start_s)
    used = float(np.sum(held_s))
    return used / (schedule.capacity * makespan_s(schedule)) if used else 0.0


@dataclass(frozen=True)
class Spread:
    """Mean and percentiles of one measure."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float
    max: float

    @classmethod
    def of(cls, values: NDArray[np.int64] | NDArray[np.float64]) -> "Spread":
        """Summarises values; all 0 if there are none."""
        if not len(values):
            return cls(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        p50, p90, p95, p99 = np.percentile(values, PERCENTILES).tolist()
        return cls(float(np.mean(values)), p50, p90, p95, p99, float(np.max(values)))


@dataclass(frozen=True)
class SizeClass:
    """The jobs of one size, by `SIZE_CLASSES`."""

    name: str
    jobs: int
    wait_s: Spread
    bounded_slowdown: Spread

    @property
    def wait_s_mean(self) -> float:
        return self.wait_s.mean

    @property
    def bounded_slowdown_mean(self) -> float:
        return self.bounded_slowdown.mean


@dataclass(frozen=True)
class RunTimeErrors:
    """How well run times were predicted.

    Attributes:
        jobs: that ended and had a predicted run time.
        under: share of them that were underestimated.
    """

    jobs: int
    off_s: Spread
    under: float
    accuracy: float


def run_time_errors(
    predicted_s: NDArray[np.int64], runtime_s: NDArray[np.int64]
) -> RunTimeErrors | None:
    """Judges predicted run times; None without any.

    Args:
        predicted_s: (n,) s; 0: nothing was predicted.
        runtime_s: (n,) s.
    """
    had = predicted_s > 0
    predicted_s, runtime_s = predicted_s[had], np.maximum(runtime_s[had], 1)
    if not len(predicted_s):
        return None
    ratio = np.minimum(predicted_s, runtime_s) / np.maximum(predicted_s, runtime_s)
    return RunTimeErrors(
        jobs=len(predicted_s),
        off_s=Spread.of(np.abs(predicted_s - runtime_s)),
        under=float(np.mean(predicted_s < runtime_s)),
        accuracy=float(np.mean(ratio)),
    )


@dataclass(frozen=True)
class StartErrors:
    """Start errors by one kind of promise; all 0 if there are none.

    Attributes:
        median_s: the median of the signed error; > 0: later than promised.
        kept: share of starts never later than promised.
    """

    median_s: float
    absolute_s: Spread
    kept: float

    @classmethod
    def of(cls, error_s: NDArray[np.int64]) -> "StartErrors":
        """Summarises actual - promised starts, s."""
        if not len(error_s):
            return cls(0.0, Spread.of(error_s), 0.0)
        return cls(
            float(np.median(error_s)), Spread.of(np.abs(error_s)), float(np.mean(error_s <= 0))
        )


@dataclass(frozen=True)
class StartAccuracy:
    """How reliable announced starts were, and how often they changed.

    Attributes:
        promised: starts that had been promised; the following attributes refer to them.
        unpromised: starts that never were promised.
        gone: jobs that were promised a start and left the queue without one.
        first, last: by the first promise, and by the last one before the start.
        changed: share of them whose promise changed at least once.
        changes: changes per promised start.
        later_s, earlier_s: churn per promised start.
    """

    promised: int
    unpromised: int
    gone: int
    first: StartErrors
    last: StartErrors
    changed: float
    changes: float
    later_s: float
    earlier_s: float


def start_accuracy(
    first_error_s: NDArray[np.int64],
    last_error_s: NDArray[np.int64],
    *,
    unpromised: int,
    gone: int,
    changed: int,
    changes: int,
    later_s: int,
    earlier_s: int,
) -> StartAccuracy:
    """Judges promised starts.

    Args:
        first_error_s: (n,) int64, start - first promise.
        last_error_s: (n,) int64, start - last promise.
        unpromised: starts that were never promised.
        gone: promised jobs that left without a start.
        changed: how many of the n had a promise that changed.
        changes: sum over the n.
        later_s: sum over the n.
        earlier_s: sum over the n.
    """
    per = max(len(last_error_s), 1)
    return StartAccuracy(
        promised=len(last_error_s),
        unpromised=unpromised,
        gone=gone,
        first=StartErrors.of(first_error_s),
        last=StartErrors.of(last_error_s),
        changed=changed / per,
        changes=changes / per,
        later_s=later_s / per,
        earlier_s=earlier_s / per,
    )


@dataclass(frozen=True)
class Measures:
    """All measures of one schedule; units as in the module's table.

    `starts` is None if announcements were not recorded, `run_times` if predictions are unknown;
    `parts` are the measures of extensions, by their names.
    """

    jobs: int
    unfinished: int
    wait_s: Spread
    turnaround_s: Spread
    slowdown: Spread
    bounded_slowdown: Spread
    utilization: float
    makespan_s: int
    decisions: int
    decision_ms: Spread
    by_size: tuple[SizeClass, ...]
    starts: StartAccuracy | None = None
    run_times: RunTimeErrors | None = None
    parts: Parts = NO_PARTS


def measure(
    schedule: ExecutedSchedule,
    decision_ms: NDArray[np.float64],
    starts: StartAccuracy | None = None,
    predicted_s: NDArray[np.int64] | None = None,
    parts: Parts = NO_PARTS,
) -> Measures:
    """Judges a schedule.

    Args:
        decision_ms: (n_decisions,) float64, ms.
        starts: the accuracy of its announced starts, if known.
        predicted_s: (n_jobs,) int64, predicted run times; 0: unknown.
    """
    done = schedule.finished
    ended = ExecutedSchedule(
        schedule.capacity,
        schedule.submit_s[done],
        schedule.start_s[done],
        schedule.end_s[done],
        schedule.processors[done],
        None if schedule.lag_s is None else schedule.lag_s[done],
        None if schedule.held_s is None else schedule.held_s[done],
    )
    waits, bounded = wait_s(ended), bounded_slowdown(ended)
    return Measures(
        jobs=len(ended),
        unfinished=len(schedule) - len(ended),
        wait_s=Spread.of(waits),
        turnaround_s=Spread.of(turnaround_s(ended)),
        slowdown=Spread.of(slowdown(ended)),
        bounded_slowdown=Spread.of(bounded),
        utilization=utilization(ended),
        makespan_s=makespan_s(ended),
        decisions=len(decision_ms),
        decision_ms=Spread.of(decision_ms),
        by_size=_by_size(ended, waits, bounded),
        starts=starts,
        run_times=None
        if predicted_s is None
        else run_time_errors(predicted_s[done], ended.end_s - ended.start_s),
        parts=parts,
    )


def _by_size(
    ended: ExecutedSchedule,
    waits: NDArray[np.int64] | NDArray[np.float64],
    bounded: NDArray[np.float64],
) -> tuple[SizeClass, ...]:
    bounds = [max(1.0, share * ended.capacity) for _, share in SIZE_CLASSES]
    size = np.searchsorted(bounds, ended.processors, side="left")
    classes = []
    for index, (name, _) in enumerate(SIZE_CLASSES):
        inside = size == index
        if count := int(inside.sum()):
            classes.append(
                SizeClass(name, count, Spread.of(waits[inside]), Spread.of(bounded[inside]))
            )
    return tuple(classes)


def steps(
    up_s: NDArray[np.int64], down_s: NDArray[np.int64], amount: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sum of `amount` over half-open intervals [up, down), as a step function.

    Returns:
        Ascending distinct instants, and the sum from each of them on.
    """
    instants, position = np.unique(np.concatenate((up_s, down_s)), return_inverse=True)
    change = np.zeros(len(instants), dtype=np.int64)
    np.add.at(change, position, np.concatenate((amount, -amount)))
    return instants, np.cumsum(change)
