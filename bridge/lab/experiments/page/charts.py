# SPDX-License-Identifier: Apache-2.0
"""Charts as inline SVG: distributions of waits, and intervals as bars.

Colours and dashes are those of the other reports: safe for colour-blind eyes, and lines differ by
dash as well.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import log10
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.lab.experiments.statistics.bootstrap import Estimate
from bridge.lab.report.line_styles import LINE_COLOURS
from bridge.units import DAY_S

_WIDTH, _HEIGHT = 460, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 10, 8, 26
_DASHES: Final = ("", "7 4", "2 3", "9 3 2 3")
_TIMES: Final = (
    (1, "≤ 1 s"), (60, "1 min"), (3600, "1 h"), (DAY_S, "1 d"), (10 * DAY_S, "10 d"),
    (100 * DAY_S, "100 d"),
)  # fmt: skip
_TAIL: Final = 1e-3
"""The smallest share that the tail shows."""
_QUANTILES: Final = np.concatenate((np.linspace(0, 0.99, 100), 1 - np.logspace(-2, -4, 40), [1.0]))


@dataclass(frozen=True)
class Line:
    """The waits under one policy: quantiles at `_QUANTILES`."""

    name: str
    wait_s: NDArray[np.float64]


def line_of(name: str, wait_s: NDArray[np.float64]) -> Line:
    """Summarises waits, (n,) s, n > 0."""
    return Line(name, np.quantile(wait_s, _QUANTILES))


def distribution(lines: Sequence[Line]) -> str:
    """Both charts of one scenario, and their key."""
    top_s = max(60.0, *(float(line.wait_s[-1]) for line in lines))
    key = "".join(
        f'<span><svg style="display:inline-block;width:2em;height:.7em;vertical-align:middle"'
        f' viewBox="0 0 32 10"><path d="M0 5H32" {_stroke(index)}/></svg> {escape(line.name)}'
        "</span>"
        for index, line in enumerate(lines)
    )
    charts = "".join(
        f"<figure>{_chart(lines, top_s, tail=tail)}</figure>" for tail in (False, True)
    )
    return f'<div class="key">{key}</div><div class="charts">{charts}</div>'


def _stroke(index: int) -> str:
    colour = LINE_COLOURS[index % len(LINE_COLOURS)]
    colour = "var(--ink)" if colour == "#000000" else colour
    dash = _DASHES[index % len(_DASHES)]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'fill="none" style="stroke:{colour}" stroke-width="2"{dashed}'


def _chart(lines: Sequence[Line], top_s: float, *, tail: bool) -> str:
    def x(wait_s: NDArray[np.float64]) -> NDArray[np.float64]:
        inside: NDArray[np.float64] = np.log10(np.maximum(wait_s, 1.0)) / log10(top_s)
        return _LEFT + inside * (_WIDTH - _LEFT - _RIGHT)

    def y(share: NDArray[np.float64]) -> NDArray[np.float64]:
        if tail:
            share = 1 - np.log10(np.maximum(1 - share, _TAIL)) / log10(_TAIL)
        inside: NDArray[np.float64] = share * (_HEIGHT - _TOP - _BOTTOM)
        return _HEIGHT - _BOTTOM - inside

    marks = [1 - 10.0**-n for n in range(4)] if tail else [0, 0.25, 0.5, 0.75, 1.0]
    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img">']
    for at, share in zip(y(np.array(marks)).tolist(), marks, strict=True):
        text = f"{100 * (1 - share):.3g} %" if tail else f"{100 * share:.0f} %"
        parts.append(f'<path class="grid" d="M{_LEFT} {at:.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{text}</text>')
    for wait_s, text in _TIMES:
        if wait_s > top_s:
            break
        (at,) = x(np.array([float(wait_s)])).tolist()
        parts.append(f'<path class="grid" d="M{at:.1f} {_TOP}V{_HEIGHT - _BOTTOM}"/>')
        anchor = "start" if wait_s == 1 else "end" if at > _WIDTH - 30 else "middle"
        parts.append(f'<text x="{at:.1f}" y="{_HEIGHT - 8}" text-anchor="{anchor}">{text}</text>')
    for index, line in enumerate(lines):
        shown = _QUANTILES <= 1 - _TAIL if tail else np.ones(len(_QUANTILES), dtype=bool)
        at_x, at_y = x(line.wait_s[shown]), y(_QUANTILES[shown])
        path = "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(at_x, at_y, strict=True))
        parts.append(
            f'<path d="M{path}" {_stroke(index)}><title>{escape(line.name)}</title></path>'
        )
    return "".join(parts) + "</svg>"


def reach(estimates: Sequence[Estimate]) -> float:
    """The largest end of the relative intervals of a table, at most 2: the scale of its bars."""
    ends = [
        abs(end) for one in estimates if one.relative and one.has_interval
        for end in (one.low, one.high)
    ]  # fmt: skip
    return min(max([0.05, *ends]), 2.0)


def interval_bar(estimate: Estimate, kind: str, maximum: float) -> str:
    """An interval on an axis from -most to +most, zero in the middle.

    Args:
        kind: class of the mark: better, worse, open.
        maximum: see `reach`.
    """
    if not estimate.relative:
        return ""
    low, high = (
        (estimate.low, estimate.high) if estimate.has_interval else (estimate.difference,) * 2
    )
    left, right, dot = (
        60 + 56 * max(-1.0, min(1.0, value / maximum)) for value in (low, high, estimate.difference)
    )
    return (
        '<svg viewBox="0 0 120 24" preserveAspectRatio="none" aria-hidden="true">'
        '<path class="zero" d="M60 2V22"/>'
        f'<path class="{kind}" d="M{left:.1f} 12H{right:.1f}" stroke-width="4"/>'
        f'<ellipse class="{kind}" cx="{dot:.1f}" cy="12" rx="2.6" ry="4.5"/></svg>'
    )
