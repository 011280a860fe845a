# SPDX-License-Identifier: Apache-2.0
"""Utilisation, queue length and power bounds over time, with the resolution of a plot."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.power.measures import PowerBounds
from bridge.extensions.power.rules import NO_UPPER_W
from bridge.measures import ExecutedSchedule, steps
from bridge.units import NEVER


@dataclass(frozen=True)
class Series:
    """Means over equal spans of time.

    Attributes:
        edges_s: (n + 1,) int64 bounds of the spans.
        value: (n,) float64, the mean over each span.
    """

    edges_s: NDArray[np.int64]
    value: NDArray[np.float64]


def time_span_s(*schedules: ExecutedSchedule) -> tuple[int, int]:
    """From the first submission to the last end of several schedules."""
    first = min(int(schedule.submit_s.min()) for schedule in schedules)
    last = first + 1
    for schedule in schedules:
        ends = schedule.end_s[schedule.finished]
        last = max(last, int(schedule.submit_s.max()), int(ends.max()) if len(ends) else 0)
    return first, last


def busy_share(schedule: ExecutedSchedule, span_s: tuple[int, int], points: int) -> Series:
    """Share of the machine's processors in use."""
    if schedule.busy is not None:
        at_s, used = schedule.busy
    else:
        done = schedule.finished
        at_s, used = steps(schedule.start_s[done], schedule.end_s[done], schedule.processors[done])
    series = means_of(at_s, used, span_s, points)
    return Series(series.edges_s, series.value / schedule.capacity)


def queue_length(schedule: ExecutedSchedule, span_s: tuple[int, int], points: int) -> Series:
    """Jobs submitted and not yet started."""
    leaves_s = np.where(schedule.start_s == NEVER, span_s[1], schedule.start_s)
    at_s, length = steps(schedule.submit_s, leaves_s, np.ones(len(schedule), dtype=np.int64))
    return means_of(at_s, length, span_s, points)


def means_of(
    at_s: NDArray[np.int64], value: NDArray[np.int64], span_s: tuple[int, int], points: int
) -> Series:
    """Exact means of a step function over equal spans: differences of its integral."""
    first, last = span_s
    edges = np.linspace(first, last, min(points, last - first) + 1).astype(np.int64)
    if not len(at_s):
        return Series(edges, np.zeros(len(edges) - 1))
    integral = np.concatenate(([0.0], np.cumsum(value[:-1] * np.diff(at_s))))
    position = np.searchsorted(at_s, edges, side="right") - 1
    before = position < 0
    position = np.maximum(position, 0)
    area = integral[position] + value[position] * (edges - at_s[position])
    area[before] = 0.0
    return Series(edges, np.diff(area) / np.diff(edges))


def corridor_steps(
    bounds: PowerBounds, span_s: tuple[int, int]
) -> list[tuple[int, int, int | None]]:
    """The bounds within a span: begin, lower and upper bound; None: no upper one."""
    corridor = bounds.corridor
    begun = max(at for at, at_s in enumerate(corridor.starts_s) if at_s <= span_s[0])
    found = []
    for at in range(begun, len(corridor.starts_s)):
        if (from_s := max(corridor.starts_s[at], span_s[0])) >= span_s[1]:
            break
        upper_w = corridor.upper_w[at]
        found.append((from_s, corridor.lower_w[at], None if upper_w == NO_UPPER_W else upper_w))
    return found
