# SPDX-License-Identifier: Apache-2.0
"""The report as one self-contained HTML page: tables, linked charts over time, Gantt.

The page is `page.html`, its look `style.css`; this module fills in tables (readable without
JavaScript) and data.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from bridge.lab.report.columns import columns_of
from bridge.lab.report.gantt import WAIT_CLASSES, WAIT_COLOURS, bars_of
from bridge.lab.report.headline import headline
from bridge.lab.report.line_styles import LINE_COLOURS
from bridge.lab.report.run import Run
from bridge.lab.report.series import busy_share, corridor_steps, means_of, queue_length, time_span_s
from bridge.lab.report.templates import page_of
from bridge.units import format_duration

_POINTS = 1000
_MAX_JOBS = 3000
_DASHES: tuple[list[int], ...] = ([], [6, 3], [2, 2], [8, 3, 2, 3])


def write_html(
    path: Path,
    title: str,
    lead: str,
    facts: Mapping[str, str],
    runs: Sequence[Run],
    *,
    against: Run | None = None,
) -> None:
    """Writes the page.

    Args:
        title: the page's heading, plain text.
        lead: one or two sentences below it, plain text.
        facts: about the run: policies, workload, machine; plain text.
        runs: at least one, all over the same workload.
        against: the run that the first one is compared with on the first screen; None: no such
            comparison.
    """
    page = page_of(
        "bridge.lab.report",
        title=title,
        lead=lead,
        facts=facts,
        headline=headline(runs[0], against) if against is not None else "",
        runs=runs,
        rows=_rows(runs),
        sizes=runs[0].measures.by_size,
        waits=_waits(runs),
        data=_data(runs),
    )
    path.write_text(page, encoding="utf-8")


def _rows(runs: Sequence[Run]) -> list[tuple[str, list[tuple[str, bool]]]]:
    """Heading of each measure; its value under each policy, and whether that is the better one."""
    rows = []
    for column in columns_of(runs):
        best, shown = column.best(runs), [column.show(run) for run in runs]
        differ = len(set(shown)) > 1
        better = [differ and column.value(run.measures) == best for run in runs]
        rows.append((column.heading, list(zip(shown, better, strict=True))))
    return rows


def _waits(runs: Sequence[Run]) -> list[tuple[str, list[tuple[str, str] | None]]]:
    """Policy; mean wait and bounded slowdown of its jobs by size; None: it has no such jobs."""
    rows = []
    for run in runs:
        known = {
            size.name: (format_duration(size.wait_s_mean), f"{size.bounded_slowdown_mean:,.1f}")
            for size in run.measures.by_size
        }
        rows.append((run.policy, [known.get(size.name) for size in runs[0].measures.by_size]))
    return rows


def _data(runs: Sequence[Run]) -> dict[str, object]:
    span_s = time_span_s(*(run.schedule for run in runs))
    edges = busy_share(runs[0].schedule, span_s, _POINTS).edges_s - span_s[0]
    return {
        "length_s": span_s[1] - span_s[0],
        "nodes": len(runs[0].node_names),
        "edges": edges.tolist(),
        "corridor": _corridor(runs, span_s),
        "waits": [[name, c] for (name, _), c in zip(WAIT_CLASSES, WAIT_COLOURS, strict=True)],
        "runs": [
            {
                "policy": run.policy,
                "colour": LINE_COLOURS[index % len(LINE_COLOURS)],
                "dash": _DASHES[index % len(_DASHES)],
                "busy": busy_share(run.schedule, span_s, _POINTS).value.round(4).tolist(),
                "queue": queue_length(run.schedule, span_s, _POINTS).value.round(2).tolist(),
                "power": _power(run, span_s),
                "gantt": _gantt(run, span_s[0]) if run.placed else None,
            }
            for index, run in enumerate(runs)
        ],
    }


def _power(run: Run, span_s: tuple[int, int]) -> list[float | None] | None:
    """Means over equal spans; None from the end of the run on."""
    power = run.system_power
    if power is None:
        return None
    at_s, power_w = np.append(power.at_s, power.end_s), np.append(power.power_w, 0)
    series = means_of(at_s, power_w, span_s, _POINTS)
    means = series.value.round(1).tolist()
    return [
        mean if from_s < power.end_s else None
        for from_s, mean in zip(series.edges_s.tolist(), means, strict=False)
    ]


def _corridor(runs: Sequence[Run], span_s: tuple[int, int]) -> list[list[int | None]] | None:
    bounds = next((run.bounds for run in runs if run.bounds is not None), None)
    if bounds is None:
        return None
    steps = corridor_steps(bounds, span_s)
    return [[from_s - span_s[0], lower_w, upper_w] for from_s, lower_w, upper_w in steps]


def _gantt(run: Run, origin_s: int) -> dict[str, object]:
    bars, schedule = bars_of(run, _MAX_JOBS), run.schedule
    position = {job: index for index, job in enumerate(bars.jobs.tolist())}
    note = "" if bars.complete else f" (the {len(bars.jobs):,} jobs that waited most in a row)"
    jobs = zip(
        run.id[bars.jobs].tolist(),
        (schedule.start_s[bars.jobs] - origin_s).tolist(),
        (schedule.end_s[bars.jobs] - origin_s).tolist(),
        (schedule.submit_s[bars.jobs] - origin_s).tolist(),
        schedule.processors[bars.jobs].tolist(),
        bars.wait_class[bars.jobs].tolist(),
        strict=True,
    )
    times_s = bars.from_s - origin_s, bars.until_s - origin_s
    shown_at = np.array([position[job] for job in bars.job.tolist()], dtype=np.int64)
    return {
        "note": note,
        "jobs": [list(job) for job in jobs],
        "bars": np.column_stack((shown_at, bars.first_node, bars.last_node, *times_s)).tolist(),
    }
