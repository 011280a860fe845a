# SPDX-License-Identifier: Apache-2.0
"""The report as one self-contained HTML page: tables, linked charts over time, Gantt.

The page is `page.html`, its look `style.css`; this module fills in tables (readable without
JavaScript) and data.
"""

import json
import re
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

import numpy as np

from bridge.lab.report.columns import columns_of
from bridge.lab.report.gantt import WAIT_CLASSES, WAIT_COLOURS, bars_of
from bridge.lab.report.headline import headline
from bridge.lab.report.line_styles import LINE_COLOURS
from bridge.lab.report.run import Run
from bridge.lab.report.series import busy_share, corridor_steps, means_of, queue_length, time_span_s
from bridge.units import format_duration

_POINTS = 1000
_MOST_JOBS = 3000
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
        path: the file.
        title: the page's heading, plain text.
        lead: one or two sentences below it, plain text.
        facts: about the run: policies, workload, machine; plain text.
        runs: at least one, all over the same workload.
        against: the run that the first one is compared with on the first screen; None: no such
            comparison.
    """
    page = files("bridge.lab.report").joinpath("page.html").read_text(encoding="utf-8")
    shown = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items())
    data = json.dumps(_data(runs), separators=(",", ":")).replace("</", "<\\/")
    parts = {
        "title": escape(title),
        "style": style(),
        "lead": escape(lead),
        "facts": shown,
        "headline": headline(runs[0], against) if against is not None else "",
        "table": _table(runs),
        "sizes": _sizes(runs),
        "data": data,
    }
    page = re.sub(r"\{\{(\w+)\}\}", lambda mark: parts[mark[1]], page)
    path.write_text(page, encoding="utf-8")


def style() -> str:
    """The style sheet of all pages."""
    return files("bridge.lab.report").joinpath("style.css").read_text(encoding="utf-8")


def _table(runs: Sequence[Run]) -> str:
    head = "".join(
        f'<th>{escape(run.policy)}<span class="of">{escape(run.engine)}</span></th>' for run in runs
    )
    rows = "".join(f"<td>{run.measures.jobs:,}</td>" for run in runs)
    rows = f"<tr><td>jobs</td>{rows}</tr>"
    for column in columns_of(runs):
        cells, best = "", column.best(runs)
        shown = [column.show(run) for run in runs]
        for run, text in zip(runs, shown, strict=True):
            better = column.value(run.measures) == best and len(set(shown)) > 1
            cells += f"<td{' class=best' if better else ''}>{escape(text)}</td>"
        rows += f"<tr><td>{escape(column.heading)}</td>{cells}</tr>"
    return f'<table class="narrow"><tr><th></th>{head}</tr>{rows}</table>'


def _sizes(runs: Sequence[Run]) -> str:
    names = [size.name for size in runs[0].measures.by_size]
    jobs = {size.name: size.jobs for size in runs[0].measures.by_size}
    head = "".join(f"<th>{escape(name)}<br>{jobs[name]:,} jobs</th>" for name in names)
    rows = []
    for run in runs:
        known = {size.name: size for size in run.measures.by_size}
        cells = "".join(
            f"<td>{format_duration(known[name].wait_s_mean)}"
            '<span class="of">bounded slowdown '
            f"{known[name].bounded_slowdown_mean:,.1f}</span></td>"
            if name in known
            else "<td></td>"
            for name in names
        )
        rows.append(f"<tr><td>{escape(run.policy)}, mean wait</td>{cells}</tr>")
    return f"<table><tr><th></th>{head}</tr>{''.join(rows)}</table>"


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
    bars, schedule = bars_of(run, _MOST_JOBS), run.schedule
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
