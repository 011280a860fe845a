# SPDX-License-Identifier: Apache-2.0
"""Plots as PNG files: utilisation and queue over time, waits, and a Gantt chart for each policy."""

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from bridge.lab.report.gantt import WAIT_CLASSES, WAIT_COLOURS, bars_of
from bridge.lab.report.line_styles import DASHES, LINE_COLOURS
from bridge.lab.report.power_plot import draw_power
from bridge.lab.report.run import Run, file_word
from bridge.lab.report.series import Series, busy_share, queue_length, time_span_s
from bridge.measures import ExecutedSchedule, wait_s
from bridge.units import DAY_S

_POINTS = 600
_MAX_JOBS = 20_000


def save_plots(directory: Path, runs: Sequence[Run]) -> list[Path]:
    """Draws every plot that the runs have data for; returns the files written."""
    span_s = time_span_s(*(run.schedule for run in runs))
    scale_s, unit = _time_unit(span_s)
    written = [
        _save(
            directory / "utilization.png",
            _over_time(runs, span_s, busy_share, "processors in use, share of the machine", 1.0),
        ),
        _save(
            directory / "queue.png",
            _over_time(runs, span_s, queue_length, "waiting jobs", None),
        ),
        _save(directory / "waits.png", _waits(runs)),
    ]
    if any(run.system_power is not None for run in runs):
        written.append(_save(directory / "power.png", _power(runs, span_s)))
    for run in runs:
        if run.placed:
            name = f"gantt-{file_word(run.policy)}.png"
            written.append(_save(directory / name, _gantt(run, span_s[0], scale_s, unit)))
    return written


def _save(path: Path, figure: Figure) -> Path:
    figure.savefig(path, dpi=130)
    plt.close(figure)
    return path


def _axes(height: float) -> tuple[Figure, Axes]:
    figure, axes = plt.subplots(figsize=(10, height), layout="constrained")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    return figure, axes


def _time_unit(span_s: tuple[int, int]) -> tuple[int, str]:
    """Picks the unit of a time axis: days, hours or seconds."""
    length_s = span_s[1] - span_s[0]
    if length_s > 2 * DAY_S:
        return DAY_S, "days"
    return (3600, "hours") if length_s > 7200 else (1, "s")


def _over_time(
    runs: Sequence[Run],
    span_s: tuple[int, int],
    measure: Callable[[ExecutedSchedule, tuple[int, int], int], Series],
    label: str,
    top: float | None,
) -> Figure:
    figure, axes = _axes(4.0)
    scale_s, unit = _time_unit(span_s)
    for index, run in enumerate(runs):
        series = measure(run.schedule, span_s, _POINTS)
        axes.stairs(
            series.value,
            (series.edges_s - span_s[0]) / scale_s,
            baseline=None,
            color=LINE_COLOURS[index % len(LINE_COLOURS)],
            linewidth=1.3,
            linestyle=(0, DASHES[index % len(DASHES)]),
            label=run.policy,
        )
    axes.set_xlabel(f"time since the first submission, {unit}")
    axes.set_ylabel(label)
    axes.set_xlim(0, (span_s[1] - span_s[0]) / scale_s)
    axes.set_ylim(0, None if top is None else top * 1.03)
    axes.legend(frameon=False, ncols=4, loc="lower left", bbox_to_anchor=(0, 1))
    return figure


def _power(runs: Sequence[Run], span_s: tuple[int, int]) -> Figure:
    figure, axes = _axes(4.0)
    scale_s, unit = _time_unit(span_s)
    styles = [
        (LINE_COLOURS[index % len(LINE_COLOURS)], DASHES[index % len(DASHES)])
        for index in range(len(runs))
    ]
    bounds = next((run.bounds for run in runs if run.bounds is not None), None)
    powers = [(run.policy, run.system_power) for run in runs]
    draw_power(axes, powers, bounds, span_s, scale_s=scale_s, styles=styles)
    axes.set_xlabel(f"time since the first submission, {unit}")
    axes.set_ylabel("system power, W; grey: the corridor")
    axes.set_xlim(0, (span_s[1] - span_s[0]) / scale_s)
    axes.legend(frameon=False, ncols=4, loc="lower left", bbox_to_anchor=(0, 1))
    return figure


def _waits(runs: Sequence[Run]) -> Figure:
    figure, axes = _axes(4.0)
    for index, run in enumerate(runs):
        done = run.schedule.finished
        waits = np.sort(wait_s(run.schedule)[done])
        share = np.arange(1, len(waits) + 1) / max(len(waits), 1)
        axes.plot(
            np.maximum(waits, 1),
            share,
            color=LINE_COLOURS[index % len(LINE_COLOURS)],
            dashes=DASHES[index % len(DASHES)] or (1, 0),
            linewidth=1.6,
            label=run.policy,
        )
    axes.set_xscale("log")
    axes.set_xlim(1, None)
    axes.set_ylim(0, 1.02)
    axes.set_xticks([1, 60, 3600, DAY_S], ["1 s or none", "1 min", "1 h", "1 day"])
    axes.minorticks_off()
    axes.set_xlabel("wait")
    axes.set_ylabel("share of jobs that waited no longer")
    axes.legend(frameon=False, loc="lower right")
    return figure


def _gantt(run: Run, origin_s: int, scale_s: int, unit: str) -> Figure:
    figure, axes = _axes(5.5)
    bars = bars_of(run, _MAX_JOBS)
    left = (bars.from_s - origin_s) / scale_s
    right = (bars.until_s - origin_s) / scale_s
    low, high = bars.first_node - 0.5, bars.last_node + 0.5
    corners = np.stack(
        [
            np.column_stack(pair)
            for pair in ((left, low), (left, high), (right, high), (right, low))
        ],
        axis=1,
    )
    colours = np.array(WAIT_COLOURS)[bars.wait_class[bars.job]]
    axes.add_collection(
        PolyCollection(
            list(corners), facecolors=colours.tolist(), edgecolors="white", linewidths=0.15
        )
    )
    axes.set_xlim(left.min(), right.max())
    axes.set_ylim(-0.5, len(run.node_names) - 0.5)
    axes.set_xlabel(f"time since the first submission, {unit}")
    axes.set_ylabel("node, by position")
    shown = "" if bars.complete else f", the {len(bars.jobs):,} jobs that waited most in a row"
    axes.set_title(f"{run.policy}{shown}", loc="left", fontsize=10)
    patches = [
        Patch(facecolor=colour, edgecolor="#888888", linewidth=0.4, label=name)
        for colour, (name, _) in zip(WAIT_COLOURS, WAIT_CLASSES, strict=True)
    ]
    figure.legend(
        handles=patches,
        title="wait before the start",
        frameon=False,
        ncols=5,
        loc="outside lower center",
    )
    return figure
