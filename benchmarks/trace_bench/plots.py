# SPDX-License-Identifier: Apache-2.0
"""Plots of a trace under several policies: distributions of waits and announcement errors."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from bridge.lab.report.line_styles import LINE_COLOURS
from bridge.lab.sim.runs.simulation_result import SimulationResult
from bridge.measures import wait_s
from bridge.units import DAY_S

_TICKS = {-DAY_S: "1 day early", -3600: "1 h", -60: "1 min", 0: "0", 60: "1 min", 3600: "1 h",
          DAY_S: "1 day late"}  # fmt: skip
_WAITS = {60: "1 min", 600: "10 min", 3600: "1 h", 6 * 3600: "6 h", DAY_S: "1 day",
          7 * DAY_S: "1 week"}  # fmt: skip


def draw(path: Path, title: str, outcomes: Mapping[str, SimulationResult]) -> None:
    """Draws waits above, start errors by the first announcement below.

    Args:
        path: .png, .svg or .pdf.
        title: above the plot.
        outcomes: by policy.
    """
    figure, (above, below) = plt.subplots(2, 1, figsize=(10, 8), layout="constrained")
    figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    for index, (policy, outcome) in enumerate(outcomes.items()):
        schedule = outcome.schedule
        done = schedule.finished
        waits = wait_s(schedule)[done]
        _shares(above, np.maximum(waits, 1), LINE_COLOURS[index], policy)
        announced = done & (outcome.promise["first_start_s"] != 0)
        error_s = (schedule.start_s - outcome.promise["first_start_s"])[announced]
        _shares(below, error_s, LINE_COLOURS[index], f"{policy}: {len(error_s):,} announced")
    above.set_xscale("log")
    above.set_xlim(left=10)
    above.set_xticks(list(_WAITS), list(_WAITS.values()))
    above.set_xlabel("wait")
    below.set_xscale("symlog", linthresh=60)
    below.set_xticks(list(_TICKS), list(_TICKS.values()))
    below.axvline(0, color="#888888", linewidth=0.8)
    below.set_xlabel("actual - first announced start")
    for axes in (above, below):
        axes.minorticks_off()
        axes.set_ylim(0, 102)
        axes.set_ylabel("percent of jobs, at most")
        axes.grid(visible=True, color="#dddddd", linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="upper left")
    figure.savefig(path, dpi=130)
    plt.close(figure)


def _shares(axes: Axes, values: NDArray[np.int64], colour: str, label: str) -> None:
    share = np.linspace(0, 100, 501)
    if len(values):
        at = np.percentile(values, share, method="inverted_cdf")
        axes.step(at, share, where="post", color=colour, linewidth=1.5, label=label)
