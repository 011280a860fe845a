# SPDX-License-Identifier: Apache-2.0
"""The busiest stretch of a run: who held which CPUs while jobs waited most, as inline SVG.

The stretch is where `MAX_STARTS` successive starts under the baseline have the largest sum of
waits; the other policy is shown over the same time. CPUs are given to jobs by a sweep over the
counts, lowest free index first, as after a fast replay; they need not be those that a machine with
partitions or switches would have given.
"""

from dataclasses import dataclass
from html import escape
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.core import map_counts
from bridge.lab.experiments.statistics.jobs import Jobs
from bridge.lab.report.gantt import WAIT_CLASSES, WAIT_COLOURS, bars_of
from bridge.lab.report.run import Run
from bridge.measures import ExecutedSchedule, measure
from bridge.units import format_duration

MAX_STARTS: Final = 250
_MAX_CPUS: Final = 5_000_000
"""Most CPUs, over all jobs of the stretch, that are given to jobs one by one."""


@dataclass(frozen=True)
class Stretch:
    """A stretch of time, Unix seconds."""

    from_s: float
    until_s: float


def busiest_stretch(jobs: Jobs) -> Stretch:
    """Finds the stretch; jobs: at least one."""
    order = np.argsort(jobs.start_s, kind="stable")
    start_s, waits = jobs.start_s[order], jobs.wait_s[order]
    width = min(MAX_STARTS, len(start_s))
    total = np.concatenate(([0.0], np.cumsum(waits)))
    first = int(np.argmax(total[width:] - total[:-width]))
    from_s = float(start_s[first])
    return Stretch(from_s, max(float(start_s[first + width - 1]), from_s + 60))


def gantt(jobs: Jobs, stretch: Stretch, name: str) -> str:
    """The chart of one policy; a sentence instead if jobs cannot be given CPUs."""
    inside = (jobs.start_s < stretch.until_s) & (jobs.end_s > stretch.from_s)
    shown = jobs[inside]
    heading = f"<h3>{escape(name)}</h3>"
    if not jobs.capacity or not len(shown):
        return f'{heading}<p class="soft">No job ran, or the size of the machine is unknown.</p>'
    if int(shown.width.sum()) > _MAX_CPUS:
        return f'{heading}<p class="soft">The jobs of this stretch hold too many CPUs to draw.</p>'
    placed = _placed(shown, jobs.capacity)
    if placed is None:
        return f'{heading}<p class="soft">Jobs shared CPUs: there is no chart of them.</p>'
    bars = bars_of(placed, len(shown))
    length_s = stretch.until_s - stretch.from_s
    left = np.clip((bars.from_s - stretch.from_s) / length_s, 0, 1) * 1000
    right = np.clip((bars.until_s - stretch.from_s) / length_s, 0, 1) * 1000
    top = 1 - (bars.last_node + 1) / jobs.capacity
    high = (bars.last_node + 1 - bars.first_node) / jobs.capacity
    parts = [
        f'<rect x="{x:.1f}" y="{300 * y:.1f}" width="{max(w, 0.8):.1f}"'
        f' height="{max(300 * h, 0.4):.1f}"'
        f' fill="{WAIT_COLOURS[bars.wait_class[job]]}"><title>job {shown.id[job]},'
        f" {shown.width[job]} CPUs, waited {format_duration(float(shown.wait_s[job]))}, ran"
        f" {format_duration(float(shown.end_s[job] - shown.start_s[job]))}</title></rect>"
        for x, w, y, h, job in zip(left, right - left, top, high, bars.job, strict=True)
    ]
    waiting = int(((jobs.submit_s < stretch.until_s) & (jobs.start_s > stretch.from_s)).sum())
    return (
        f'{heading}<div class="gantt"><svg viewBox="0 0 1000 300" preserveAspectRatio="none"'
        f' role="img">{"".join(parts)}</svg></div>'
        f'<div class="ends"><span>0</span><span>{jobs.capacity:,} CPUs; {len(shown):,} jobs ran,'
        f" {waiting:,} waited</span><span>{format_duration(length_s)}</span></div>"
    )


def key() -> str:
    """The key of the colours."""
    items = "".join(
        f'<span><i style="background:{colour}"></i>{escape(name)}</span>'
        for (name, _), colour in zip(WAIT_CLASSES, WAIT_COLOURS, strict=True)
    )
    return f'<div class="key"><span>waited before the start:</span>{items}</div>'


def _placed(jobs: Jobs, capacity: int) -> Run | None:
    """The jobs as a run of a report, with a node for each CPU; None: they do not fit."""
    start_s = np.rint(jobs.start_s).astype(np.int64)
    end_s = np.maximum(np.rint(jobs.end_s).astype(np.int64), start_s)
    runs = end_s > start_s
    nothing: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
    order = np.argsort(start_s, kind="stable")
    order = order[runs[order]]
    try:
        found, nodes = map_counts(
            capacity, start_s[order], end_s[order], jobs.width[order], nothing,
            np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32),
        )  # fmt: skip
    except ValueError:
        return None
    held = np.zeros(len(jobs), dtype=np.int64)
    held[order] = np.diff(found)
    indptr = np.concatenate(([0], np.cumsum(held)))
    by_job = np.empty(len(nodes), dtype=np.int32)
    for at, job in enumerate(order.tolist()):
        by_job[indptr[job] : indptr[job + 1]] = nodes[found[at] : found[at + 1]]
    submit_s = np.rint(jobs.submit_s).astype(np.int64)
    schedule = ExecutedSchedule(capacity, submit_s, start_s, end_s, jobs.width)
    return Run(
        policy="", engine="", schedule=schedule, measures=measure(schedule, np.zeros(0)),
        node_names=(), id=jobs.id.astype(object), time_limit_s=jobs.limit_s.astype(np.int64),
        indptr=indptr, nodes=by_job, decision_ms=np.zeros(0),
    )  # fmt: skip
