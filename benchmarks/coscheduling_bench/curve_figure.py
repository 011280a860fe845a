# SPDX-License-Identifier: Apache-2.0
"""The learning curve of the experiment: response and slowdown by set, with intervals over seeds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from bridge.lab.report.line_styles import DASHES, LINE_COLOURS

ROWS: Final = (
    ("response_h", "mean response, h"), ("slower_percent", "mean slowdown of all jobs, %"),
)  # fmt: skip
_APART: Final = 0.06
"""Between the policies, so that their intervals do not cover each other."""


def plot(found: Mapping[str, Any], path: Path) -> None:
    """Draws a panel for each measure and size; whiskers are 95 % intervals over the seeds."""
    summary = found["summary"]
    sizes = sorted({entry["cores"] for entry in summary})
    with mpl.rc_context({"svg.hashsalt": "coscheduling-curve", "svg.fonttype": "none"}):
        figure, panels = plt.subplots(
            len(ROWS), len(sizes), figsize=(10, 6), layout="constrained", sharex=True, squeeze=False
        )
        for (key, title), row in zip(ROWS, panels, strict=True):
            for size, axes in zip(sizes, row, strict=True):
                _curves(axes, [each for each in summary if each["cores"] == size], key)
            row[0].set_ylabel(title)
        for size, axes, last in zip(sizes, panels[0], panels[-1], strict=True):
            axes.set_title(f"{size} cores")
            last.set_xlabel("set")
            last.xaxis.set_major_locator(MaxNLocator(integer=True))
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def _curves(axes: Axes, entries: list[Mapping[str, Any]], key: str) -> None:
    for number, entry in enumerate(entries):
        values = [each[key] for each in entry["repeats"]]
        places = [at + 1 + _APART * (number - len(entries) / 2) for at in range(len(values))]
        colour = LINE_COLOURS[number]
        axes.plot(
            places, [each["mean"] for each in values], color=colour, marker="o", ms=3,
            dashes=DASHES[number % len(DASHES)], label=entry["policy"],
        )  # fmt: skip
        for place, each in zip(places, values, strict=True):
            axes.plot([place, place], each["interval"], color=colour, linewidth=1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, axis="y", color="#dddddd", linewidth=0.6)
    axes.set_ylim(bottom=0)
