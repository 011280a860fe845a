# SPDX-License-Identifier: Apache-2.0
"""Computes a Gantt chart: rectangles of adjacent nodes over time, coloured by wait.

A job that was resized has rectangles for each width that it had.

A chart of very many jobs shows only their most crowded part, and mentions it.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.lab.report.run import Run
from bridge.measures import wait_s

WAIT_CLASSES = (
    ("under 1 min", 60),
    ("under 1 h", 3600),
    ("under 6 h", 6 * 3600),
    ("under 1 day", 86_400),
    ("1 day or more", None),
)
"""Name and upper bound, s."""

WAIT_COLOURS = ("#c9d6e3", "#88b0c9", "#f3d36b", "#e08a3c", "#8c2d19")
"""From pale blue over yellow to dark red: distinguishable by lightness alone."""


@dataclass(frozen=True)
class Bars:
    """Rectangles of one chart: one for each run of adjacent nodes, of each width of a job.

    Attributes:
        job: (n_bars,) int64 position in the run.
        from_s, until_s: (n_bars,) int64.
        first_node, last_node: (n_bars,) int64, both inclusive.
        wait_class: (n_jobs,) int64 index into `WAIT_CLASSES`, for all jobs of the run.
        jobs: (n_shown,) int64 positions of the jobs shown.
        complete: whether all jobs of the run that held nodes are shown.
    """

    job: NDArray[np.int64]
    from_s: NDArray[np.int64]
    until_s: NDArray[np.int64]
    first_node: NDArray[np.int64]
    last_node: NDArray[np.int64]
    wait_class: NDArray[np.int64]
    jobs: NDArray[np.int64]
    complete: bool


def bars_of(run: Run, most_jobs: int) -> Bars:
    """Computes the rectangles of a run whose placement is known."""
    held = np.flatnonzero(run.schedule.finished & (np.diff(run.indptr) > 0))
    held = held[np.argsort(run.schedule.start_s[held], kind="stable")]
    waits = np.where(run.schedule.finished, wait_s(run.schedule), 0)
    shown = held
    if len(held) > most_jobs:
        total = np.concatenate(([0], np.cumsum(waits[held].astype(np.float64))))
        first = int(np.argmax(total[most_jobs:] - total[:-most_jobs]))
        shown = held[first : first + most_jobs]
    job: list[int] = []
    time_s: list[tuple[int, int]] = []
    low: list[int] = []
    high: list[int] = []
    for position, from_s, until_s, nodes in _spells(run, shown):
        gaps = np.flatnonzero(np.diff(nodes) > 1)
        low += nodes[np.concatenate(([0], gaps + 1))].tolist()
        high += nodes[np.concatenate((gaps, [len(nodes) - 1]))].tolist()
        job += [position] * (len(gaps) + 1)
        time_s += [(from_s, until_s)] * (len(gaps) + 1)
    bounds = [bound for _, bound in WAIT_CLASSES if bound is not None]
    times_s = np.array(time_s, dtype=np.int64).reshape(-1, 2)
    return Bars(
        np.array(job, dtype=np.int64),
        times_s[:, 0],
        times_s[:, 1],
        np.array(low, dtype=np.int64),
        np.array(high, dtype=np.int64),
        np.searchsorted(bounds, waits, side="right").astype(np.int64),
        shown,
        complete=len(shown) == len(held),
    )


def _spells(run: Run, shown: NDArray[np.intp]) -> Iterator[tuple[int, int, int, NDArray[np.int32]]]:
    """Yields job, begin, end and nodes: all that the last runs of these jobs held."""
    schedule, spells = run.schedule, run.spells
    if spells is None:
        for job in shown.tolist():
            nodes = run.nodes[run.indptr[job] : run.indptr[job + 1]]
            yield job, int(schedule.start_s[job]), int(schedule.end_s[job]), nodes
        return
    last_run = np.isin(spells.job, shown) & (spells.from_s >= schedule.start_s[spells.job])
    for each in np.flatnonzero(last_run).tolist():
        nodes = spells.nodes[spells.indptr[each] : spells.indptr[each + 1]]
        yield int(spells.job[each]), int(spells.from_s[each]), int(spells.until_s[each]), nodes
