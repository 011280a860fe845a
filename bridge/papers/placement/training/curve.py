# SPDX-License-Identifier: Apache-2.0
"""Learning curves as a picture (figure 4 of the paper): reward, and cost of held-out windows."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

_SMOOTH = 15
"""Rounds in a moving average."""


def draw(curves: Mapping[str, Sequence[Mapping[str, float]]], path: Path) -> None:
    """Draws the curves of some networks into an SVG file.

    Args:
        curves: by name, rows with `steps`, `reward` and now and then `cost`.
        path: where to; any suffix.
    """
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    reward, cost = figure.subplots(1, 2)
    for name, rows in curves.items():
        steps = np.array([row["steps"] for row in rows]) / 1e6
        values = np.array([row["reward"] for row in rows])
        span = min(_SMOOTH, len(values))
        if span:
            means = np.convolve(values, np.ones(span) / span, mode="valid")
            reward.plot(steps[span - 1 :], means, label=name, linewidth=1)
        seen = [(row["steps"] / 1e6, row["cost"]) for row in rows if "cost" in row]
        if seen:
            cost.plot(*np.array(seen).T, label=name, linewidth=1)
    reward.set(xlabel="decisions, millions", ylabel="reward of a move")
    cost.set(xlabel="decisions, millions", ylabel="cost of held-out windows (sequential: 1)")
    for axes in (reward, cost):
        axes.grid(alpha=0.3)
        axes.legend(fontsize="small")
    FigureCanvasSVG(figure).print_svg(path)  # type: ignore[no-untyped-call]
