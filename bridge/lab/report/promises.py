# SPDX-License-Identifier: Apache-2.0
"""Plots the accuracy of announced starts: by share of jobs, and over time."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from bridge.lab.report.line_styles import LINE_COLOURS
from bridge.units import DAY_S, local_time

_TICKS = {-DAY_S: "1 day early", -3600: "1 h", -60: "1 min", 0: "0", 60: "1 min", 3600: "1 h",
          DAY_S: "1 day late"}  # fmt: skip
_LATE_TICKS = {0: "0", 60: "1 min", 3600: "1 h", DAY_S: "1 day", 7 * DAY_S: "1 week"}


@dataclass(frozen=True)
class StartErrorCurve:
    """Start errors of one partition.

    Attributes:
        name: the name of the partition, with the number of starts, for display.
        last_s: error by the last promise that 0, 1, ... 100 percent of starts do not exceed.
        first_s: by the first promise.
    """

    name: str
    last_s: Sequence[int]
    first_s: Sequence[int]


@dataclass(frozen=True)
class Track:
    """Absolute start errors over time, against the last promise; one value per span with starts."""

    from_s: Sequence[int]
    p50_s: Sequence[float]
    p90_s: Sequence[float]
    step_s: int


def draw_accuracy(path: Path, title: str, curves: Sequence[StartErrorCurve], track: Track) -> None:
    """Draws both plots into one file.

    Args:
        path: .png, .svg or .pdf.
        title: above the plot.
        curves: may be empty.
        track: may be empty.

    Raises:
        OSError: the file cannot be written.
    """
    figure, (above, below) = plt.subplots(2, 1, figsize=(10, 8), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    for axes in (above, below):
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(visible=True, color="#dddddd", linewidth=0.6)
        axes.set_axisbelow(True)
    _shares(above, curves)
    _over_time(below, track)
    try:
        figure.savefig(path, dpi=130)
    finally:
        plt.close(figure)


def _shares(axes: Axes, curves: Sequence[StartErrorCurve]) -> None:
    share = np.arange(101)
    for index, curve in enumerate(curves):
        colour = LINE_COLOURS[index % len(LINE_COLOURS)]
        axes.step(curve.last_s, share, where="post", color=colour, linewidth=1.6, label=curve.name)
        axes.step(
            curve.first_s, share, where="post", color=colour, linewidth=1.0, linestyle=(0, (4, 2))
        )
    axes.axvline(0, color="#888888", linewidth=0.8)
    axes.set_xscale("symlog", linthresh=60)
    axes.set_xticks(list(_TICKS), list(_TICKS.values()))
    axes.minorticks_off()
    axes.set_ylim(0, 102)
    axes.set_xlabel("actual - announced start; solid: last announced, dashed: first announced")
    axes.set_ylabel("percent of starts, no later than")
    if curves:
        axes.legend(frameon=False, loc="upper left")


def _over_time(axes: Axes, track: Track) -> None:
    at = [local_time(from_s + track.step_s // 2) for from_s in track.from_s]
    for values, name, colour in (
        (track.p50_s, "half of the starts", LINE_COLOURS[0]),
        (track.p90_s, "90 % of them", LINE_COLOURS[1]),
    ):
        axes.plot(
            np.array(at, dtype="datetime64[s]"), values, marker="o", markersize=3, color=colour,
            linewidth=1.3, label=f"{name}: error at most",
        )  # fmt: skip
    axes.set_yscale("symlog", linthresh=60)
    axes.set_yticks(list(_LATE_TICKS), list(_LATE_TICKS.values()))
    axes.minorticks_off()
    axes.set_ylim(0, max([60.0, *track.p90_s]) * 1.3)
    axes.set_xlabel("time of the start")
    axes.set_ylabel("error of the last announcement")
    axes.legend(frameon=False, loc="upper left")
