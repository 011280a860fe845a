# SPDX-License-Identifier: Apache-2.0
"""The figures of one replay: for all jobs, by size, and by time limit.

| figure | formula | unit |
|---|---|---|
| wait, bounded slowdown, utilisation | as in bridge/measures.py | s, 1, 1 |
| utilisation while jobs came | processor-seconds used / offered, to the last submission | 1 |
| idle beside a queue | processor-seconds not used while any job waits / offered in that time | 1 |
| start error | actual - announced start, of jobs that had been announced a later start | s |
| kept | share of them never later than first announced | 1 |
| off | abs(start error) by the first announcement; `last` by the one before the start | s |
| moved | share of them whose announced start ever changed; `moved_later`: to a later one | 1 |
| changes, later_s, earlier_s | how often, and how far in all, per announced job | 1, s |
| decision | the cycle from snapshot to plan, wall time; `cpu` the process's own time | ms |

A job that starts in its first decision was never announced: `announced` is the number of those that
were.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bridge.lab.sim.runs.simulation_result import SimulationResult
from bridge.measures import ExecutedSchedule, bounded_slowdown, wait_s
from bridge.units import NEVER

HOUR_S = 3600
LIMIT_CLASSES = (
    ("limit up to 1 h", HOUR_S),
    ("1 to 4 h", 4 * HOUR_S),
    ("4 to 12 h", 12 * HOUR_S),
    ("12 h to 1 day", 24 * HOUR_S),
    ("over 1 day", NEVER),
)
"""Name, and the longest time limit in it."""

Figures = dict[str, object]


def figures(outcome: SimulationResult, decision_cpu_ms: Sequence[float]) -> Figures:
    """All figures of a replay."""
    schedule = outcome.schedule
    done = schedule.finished
    return {
        "jobs": int(done.sum()),
        "unfinished": int((~done).sum()),
        **_of(outcome, done),
        **_use(schedule, done),
        "decisions": len(outcome.decision_ms),
        "decision_ms": _spread(outcome.decision_ms),
        "decision_cpu_ms": _spread(np.array(decision_cpu_ms)),
        "refusals": len(outcome.refusals),
        "classes": [
            {"class": name, "jobs": int(held.sum()), **_of(outcome, held)}
            for name, held in _classes(outcome, done)
            if held.any()
        ],
    }


def _classes(
    outcome: SimulationResult, done: NDArray[np.bool_]
) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """Classes by size and by time limit; only finished jobs are in them."""
    processors, capacity = outcome.schedule.processors, outcome.schedule.capacity
    limit_s = outcome.workload.time_limit_s
    yield "1 processor", done & (processors == 1)
    yield "2 to 1/8 of the machine", done & (processors > 1) & (processors * 8 <= capacity)
    yield "1/8 to 1/2", done & (processors * 8 > capacity) & (processors * 2 <= capacity)
    yield "over 1/2", done & (processors * 2 > capacity)
    least_s = 0
    for name, most_s in LIMIT_CLASSES:
        yield name, done & (limit_s > least_s) & (limit_s <= most_s)
        least_s = most_s
    yield (
        "over 1/8 and over 4 h",
        done & (processors * 8 > capacity) & (limit_s > 4 * HOUR_S),
    )


def _of(outcome: SimulationResult, jobs: NDArray[np.bool_]) -> Figures:
    """Waits, slowdowns and announced starts of some jobs."""
    schedule = outcome.schedule
    return {
        "wait_s": _spread(wait_s(schedule)[jobs]),
        "bounded_slowdown": _spread(bounded_slowdown(schedule)[jobs]),
        "starts": _starts(schedule.start_s[jobs], outcome.promise[jobs]),
    }


def _starts(start_s: NDArray[np.int64], promise: NDArray[np.void]) -> Figures:
    announced = promise["first_start_s"] != 0
    start_s, promise = start_s[announced], promise[announced]
    first_s = start_s - promise["first_start_s"]
    last_s = start_s - promise["last_start_s"]
    return {
        "announced": len(start_s),
        "kept": _share(first_s <= 0),
        "error_s": _spread(first_s),
        "off_s": _spread(np.abs(first_s)),
        "last_off_s": _spread(np.abs(last_s)),
        "within_15_min": _share(np.abs(first_s) <= 900),
        "within_1_h": _share(np.abs(first_s) <= HOUR_S),
        "moved": _share(promise["changes"] > 0),
        "moved_later": _share(promise["later_s"] > 0),
        "changes": _mean(promise["changes"]),
        "later_s": _mean(promise["later_s"]),
        "earlier_s": _mean(promise["earlier_s"]),
    }


def _use(schedule: ExecutedSchedule, done: NDArray[np.bool_]) -> Figures:
    """Utilisation over the whole time, while jobs came, and while any waited."""
    start_s, end_s = schedule.start_s[done], schedule.end_s[done]
    submit_s, processors = schedule.submit_s[done], schedule.processors[done]
    if not len(start_s):
        return {"utilisation": 0.0, "utilisation_coming": 0.0, "idle_beside_queue": 0.0}
    # At each instant: processors taken or given back, and jobs that begin or cease to wait.
    at_s = np.concatenate((start_s, end_s, submit_s, start_s))
    nobody = np.zeros(len(submit_s), dtype=np.int64)
    ones = np.ones(len(submit_s), dtype=np.int64)
    used = np.concatenate((processors, -processors, nobody, nobody))
    waits = np.concatenate((nobody, nobody, ones, -ones))
    order = np.argsort(at_s, kind="stable")
    length_s = np.diff(at_s[order], append=at_s.max())
    used, waiting = np.cumsum(used[order]), np.cumsum(waits[order]) > 0
    coming = at_s[order] < submit_s.max()
    return {
        "utilisation": _over(used, length_s, schedule.capacity),
        "utilisation_coming": _over(used[coming], length_s[coming], schedule.capacity),
        "idle_beside_queue": 1 - _over(used[waiting], length_s[waiting], schedule.capacity)
        if waiting.any()
        else 0.0,
        "makespan_s": int(end_s.max() - submit_s.min()),
    }


def _over(used: NDArray[np.int64], length_s: NDArray[np.int64], capacity: int) -> float:
    """Share of the capacity used over some stretches of time."""
    offered = float(length_s.sum()) * capacity
    return round(float((used * length_s).sum()) / offered, 5) if offered else 0.0


def _spread(values: NDArray[np.int64] | NDArray[np.float64]) -> dict[str, float]:
    if not len(values):
        return {}
    p50, p90, p95, p99 = np.percentile(values, (50, 90, 95, 99))
    named = {"mean": np.mean(values), "p50": p50, "p90": p90, "p95": p95, "p99": p99}
    named |= {"min": np.min(values), "max": np.max(values)}
    return {name: round(float(value), 3) for name, value in named.items()}


def _share(which: NDArray[np.bool_]) -> float:
    return round(float(which.mean()), 5) if len(which) else 0.0


def _mean(values: NDArray[np.int64]) -> float:
    return round(float(values.mean()), 3) if len(values) else 0.0
