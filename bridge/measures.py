# SPDX-License-Identifier: Apache-2.0
"""What a schedule is judged by, each measure defined once.

| measure | formula | unit |
|---|---|---|
| wait | start - submit | s |
| turnaround | end - submit | s |
| slowdown | turnaround / runtime | 1 |
| bounded slowdown | max(1, turnaround / max(runtime, 10 s)) | 1 |
| makespan | latest end - earliest submit | s |
| utilization | sum of processors * runtime / (machine's processors * makespan) | 1 |
| decision time | from the snapshot handed over to the plan received | ms |

Runtime is end - start of the run that counted. Jobs that never started or never ended are counted
in `unfinished` and enter no other measure.

Source: D. G. Feitelson, L. Rudolph et al., Theory and Practice in Parallel Job Scheduling,
JSSPP 1997; bounded slowdown with 10 s as in the Parallel Workloads Archive's literature.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.units import NEVER

BOUND_S = 10
"""Jobs shorter than this count as this long in the bounded slowdown."""

PERCENTILES = (50, 90, 99)

SIZE_CLASSES = (
    ("1 processor", 0.0),
    ("up to 1/8 of the machine", 1 / 8),
    ("up to 1/2", 1 / 2),
    ("over 1/2", 1.0),
)
"""Class name and the largest share of the machine it holds; the first is for single processors."""


@dataclass(frozen=True)
class Schedule:
    """When each job was submitted, started and ended, as columns of length n_jobs.

    Attributes:
        capacity: processors of the machine.
        submit_s: int64.
        start_s: int64; NEVER: did not start.
        end_s: int64; NEVER: did not end.
        processors: int64.
    """

    capacity: int
    submit_s: NDArray[np.int64]
    start_s: NDArray[np.int64]
    end_s: NDArray[np.int64]
    processors: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.submit_s)

    @property
    def finished(self) -> NDArray[np.bool_]:
        """Jobs that ran to an end."""
        done: NDArray[np.bool_] = (self.start_s != NEVER) & (self.end_s != NEVER)
        return done


def wait_s(schedule: Schedule) -> NDArray[np.int64]:
    """Start - submit, s."""
    return schedule.start_s - schedule.submit_s


def turnaround_s(schedule: Schedule) -> NDArray[np.int64]:
    """End - submit, s."""
    return schedule.end_s - schedule.submit_s


def slowdown(schedule: Schedule) -> NDArray[np.float64]:
    """Turnaround / runtime."""
    runtime_s = np.maximum(schedule.end_s - schedule.start_s, 1)
    ratio: NDArray[np.float64] = np.true_divide(turnaround_s(schedule), runtime_s)
    return ratio


def bounded_slowdown(schedule: Schedule, bound_s: int = BOUND_S) -> NDArray[np.float64]:
    """max(1, turnaround / max(runtime, bound))."""
    runtime_s = schedule.end_s - schedule.start_s
    ratio = np.true_divide(turnaround_s(schedule), np.maximum(runtime_s, bound_s))
    bounded: NDArray[np.float64] = np.maximum(ratio, 1.0)
    return bounded


def makespan_s(schedule: Schedule) -> int:
    """Latest end - earliest submit, s; 0 without jobs."""
    return int(schedule.end_s.max() - schedule.submit_s.min()) if len(schedule) else 0


def utilization(schedule: Schedule) -> float:
    """Used processor-seconds / (machine's processors * makespan); 0 without jobs."""
    used = float(np.sum(schedule.processors * (schedule.end_s - schedule.start_s)))
    return used / (schedule.capacity * makespan_s(schedule)) if used else 0.0


@dataclass(frozen=True)
class Spread:
    """Mean and percentiles of one measure."""

    mean: float
    p50: float
    p90: float
    p99: float
    max: float

    @classmethod
    def of(cls, values: NDArray[np.int64] | NDArray[np.float64]) -> "Spread":
        """Summarises values; all 0 if there are none."""
        if not len(values):
            return cls(0.0, 0.0, 0.0, 0.0, 0.0)
        p50, p90, p99 = np.percentile(values, PERCENTILES)
        return cls(
            float(np.mean(values)), float(p50), float(p90), float(p99), float(np.max(values))
        )


@dataclass(frozen=True)
class SizeClass:
    """The jobs of one size, by `SIZE_CLASSES`."""

    name: str
    jobs: int
    wait_s_mean: float
    bounded_slowdown_mean: float


@dataclass(frozen=True)
class Measures:
    """All measures of one schedule; units as in the module's table."""

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


def measure(schedule: Schedule, decision_ms: NDArray[np.float64]) -> Measures:
    """Judges a schedule.

    Args:
        schedule: the jobs.
        decision_ms: (n_decisions,) float64, ms.
    """
    done = schedule.finished
    ended = Schedule(
        schedule.capacity,
        schedule.submit_s[done],
        schedule.start_s[done],
        schedule.end_s[done],
        schedule.processors[done],
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
    )


def _by_size(
    ended: Schedule, waits: NDArray[np.int64], bounded: NDArray[np.float64]
) -> tuple[SizeClass, ...]:
    bounds = [max(1.0, share * ended.capacity) for _, share in SIZE_CLASSES]
    size = np.searchsorted(bounds, ended.processors, side="left")
    classes = []
    for index, (name, _) in enumerate(SIZE_CLASSES):
        inside = size == index
        if count := int(inside.sum()):
            classes.append(
                SizeClass(name, count, float(waits[inside].mean()), float(bounded[inside].mean()))
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
