# SPDX-License-Identifier: Apache-2.0
"""The first screen of a report that compares two policies: gains and costs.

Plain HTML without scripts, readable at any width: figures side by side, and for each span of time
the share of jobs that started within it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from bridge.lab.report.run import Run
from bridge.measures import Measures, wait_s
from bridge.units import DAY_S, format_duration

WITHIN_S = (60, 600, 3600, 4 * 3600, 12 * 3600, DAY_S)


@dataclass(frozen=True)
class _Figure:
    """One figure of two policies.

    Attributes:
        better: 1 if larger is better, -1 if smaller.
        times: wording of a multiple.
    """

    heading: str
    value: Callable[[Measures], float]
    write: Callable[[float], str]
    better: int = -1
    times: str = "as long"


_FIGURES = (
    _Figure("mean wait", lambda m: m.wait_s.mean, format_duration),
    _Figure("9 of 10 jobs started within", lambda m: m.wait_s.p90, format_duration),
    _Figure(
        "mean bounded slowdown",
        lambda m: m.bounded_slowdown.mean,
        "{:,.0f}".format,
        times="as much",
    ),
    _Figure(
        "jobs told when they start",
        lambda m: 0 if m.starts is None else m.starts.promised,
        "{:,.0f}".format,
        better=1,
        times="as many",
    ),
    _Figure("longest wait", lambda m: m.wait_s.max, format_duration),
)


def headline(run: Run, other: Run) -> str:
    """The first screen as HTML.

    Args:
        run: the policy shown.
        other: the one it is compared with; over the same jobs.
    """
    tiles = "".join(_tile(figure, run, other) for figure in _FIGURES)
    return f'<div class="tiles">{tiles}</div>{_started_within((run, other))}'


def change(run: float, other: float, times: str) -> str:
    """The difference between two figures as text: `22 % less`, `8.1 times as many`."""
    if run == other:
        return "the same"
    if other <= 0 or run >= 2 * other:
        return f"{run / other:.1f} times {times}" if other > 0 else "more"
    share = round(100 * abs(run - other) / other)
    if not share:
        return "about the same"
    return f"{share} % {'less' if run < other else 'more'}"


def _tile(figure: _Figure, run: Run, other: Run) -> str:
    ours, theirs = figure.value(run.measures), figure.value(other.measures)
    words = change(ours, theirs, figure.times)
    kind = "same" if "same" in words else "gain" if (ours - theirs) * figure.better > 0 else "cost"
    return (
        f'<div class="tile {kind}"><span>{escape(figure.heading)}</span>'
        f"<b>{escape(figure.write(ours))}</b><em>{escape(words)}</em>"
        f"<span>{escape(other.policy)}: {escape(figure.write(theirs))}</span></div>"
    )


def _started_within(runs: Sequence[Run]) -> str:
    shares = [started_within(run, WITHIN_S) for run in runs]
    rows = []
    for index, span_s in enumerate(WITHIN_S):
        bars = "".join(
            f'<span class="share" title="{escape(run.policy)}">'
            f'<i class="run{at}" style="width:{share[index]:.1%}"></i>{share[index]:.0%}</span>'
            for at, (run, share) in enumerate(zip(runs, shares, strict=True))
        )
        rows.append(f"<dt>{_span(span_s)}</dt><dd>{bars}</dd>")
    key = "".join(
        f'<span><i class="run{at}"></i>{escape(run.policy)}</span>' for at, run in enumerate(runs)
    )
    return (
        f'<h2>Jobs that started within …</h2><div class="key">{key}</div>'
        f'<dl class="within">{"".join(rows)}</dl>'
    )


def started_within(run: Run, spans_s: Sequence[int]) -> list[float]:
    """The share of all jobs that waited no longer than each span."""
    waits = wait_s(run.schedule)[run.schedule.finished]
    total = max(len(run.schedule), 1)
    return [float(np.count_nonzero(waits <= span_s)) / total for span_s in spans_s]


def _span(span_s: int) -> str:
    for unit_s, name in ((DAY_S, "day"), (3600, "hour"), (60, "minute")):
        if span_s >= unit_s:
            count = span_s // unit_s
            return f"{count} {name}{'s' if count > 1 else ''}"
    return f"{span_s} s"
