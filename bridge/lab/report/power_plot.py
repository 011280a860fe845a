# SPDX-License-Identifier: Apache-2.0
"""System power and its corridor over time, as steps."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from bridge.extensions.power.measures import PowerBounds, SystemPower
from bridge.lab.report.series import corridor_steps, means_of

_CORRIDOR_COLOUR = "#999999"
_MAX_STEPS = 20_000
_POINTS = 2000


def draw_power(
    axes: Axes,
    powers: Sequence[tuple[str, SystemPower | None]],
    bounds: PowerBounds | None,
    span_s: tuple[int, int],
    *,
    scale_s: int,
    styles: Sequence[tuple[str, tuple[float, ...]]],
) -> None:
    """Draws system power of several runs, and its bounds.

    Args:
        powers: label and system power of each run; None: it is left out.
        bounds: the corridor; None: there was none.
        span_s: begin and end of the time axis.
        scale_s: a unit of the time axis.
        styles: colour and dashes of each run.
    """
    top_w = 0.0
    for (label, power), (colour, dashes) in zip(powers, styles, strict=True):
        if power is None:
            continue
        edges_s, power_w = steps_of(power)
        axes.stairs(
            power_w, (edges_s - span_s[0]) / scale_s,
            baseline=None, color=colour, linewidth=1.2, linestyle=(0, dashes), label=label,
        )  # fmt: skip
        top_w = max(top_w, float(power_w.max(initial=0)))
    if bounds is not None:
        top_w = max(top_w, _draw_corridor(axes, bounds, span_s, scale_s))
    axes.set_ylim(0, top_w * 1.05)


def _draw_corridor(axes: Axes, bounds: PowerBounds, span_s: tuple[int, int], scale_s: int) -> float:
    """Draws the bounds; returns the highest one."""
    edges, top_w = corridor_steps(bounds, span_s), 0.0
    for at, (from_s, lower_w, upper_w) in enumerate(edges):
        to_s = edges[at + 1][0] if at + 1 < len(edges) else span_s[1]
        inside = [(each - span_s[0]) / scale_s for each in (from_s, to_s)]
        for bound_w in (lower_w, upper_w):
            if bound_w is None or bound_w == 0:
                continue
            top_w = max(top_w, bound_w)
            axes.plot(inside, [bound_w, bound_w], color=_CORRIDOR_COLOUR, linewidth=1.5)
        if upper_w is not None:
            axes.fill_between(inside, lower_w, upper_w, color=_CORRIDOR_COLOUR, alpha=0.15, lw=0)
    return top_w


def steps_of(power: SystemPower) -> tuple[np.ndarray, np.ndarray]:
    """Edges in s and W between them: exact, or means if there are too many steps."""
    if len(power.at_s) <= _MAX_STEPS:
        return np.append(power.at_s, power.end_s), power.power_w
    span_s = int(power.at_s[0]), power.end_s
    series = means_of(power.at_s, power.power_w, span_s, _POINTS)
    return series.edges_s, series.value
