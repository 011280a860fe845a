# SPDX-License-Identifier: Apache-2.0
"""A results file of `benchmarks/power_cluster.py` as tables and as a plot."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from bridge.extensions.power.measures import PowerBounds, SystemPower
from bridge.lab.report.line_styles import DASHES, LINE_COLOURS
from bridge.lab.report.power_plot import draw_power
from power_bench.jobs import Experiment

_MEASURES = (
    ("violations", "violations", 1.0, 0),
    ("seconds", "s outside", 1.0, 0),
    ("watt_seconds", "kW s outside", 1e-3, 1),
    ("avoidable_s", "s avoidable", 1.0, 0),
    ("makespan_s", "makespan, s", 1.0, 0),
    ("wait_s", "mean wait, s", 1.0, 0),
    ("energy_kwh", "energy, kWh", 1.0, 3),
    ("resizes", "changes of width", 1.0, 0),
)
_ORIGIN_S = 1
"""Of the plot: an instant of 0 is unknown."""
Run = Mapping[str, Any]


def complete(data: Mapping[str, Any]) -> list[Run]:
    """The runs that were not interrupted."""
    return [run for run in data["runs"] if "error" not in run]


def in_short(run: Run) -> str:
    """One line about a run, as progress."""
    return (
        f"{run['right']} of {run['count']} results right; {run['violations']} violations, "
        f"{run['seconds']} s ({run['avoidable_s']} s avoidable); makespan "
        f"{run['makespan_s']:.0f} s; {run['resizes']} changes of "
        f"{run['change_s'].get('mean', 0):.2f} s, {run['not_done']} not done"
    )


def lines(data: Mapping[str, Any]) -> list[str]:
    """Two Markdown tables in one: the measures with those of the simulation, and the costs."""
    titles = [title for _, title, _, _ in _MEASURES]
    found = [
        f"| {' | '.join(['strategy', '', *titles])} |",
        "|---|---|" + "---:|" * len(titles),
    ]
    runs = complete(data)
    for run in runs:
        for name, values in (("cluster", run), ("simulated", run["simulated"])):
            cells = [f"{scale * values[key]:,.{digits}f}" for key, _, scale, digits in _MEASURES]
            found.append(f"| {' | '.join([run['strategy'], name, *cells])} |")
    found += [
        "",
        "| strategy | right results | changes not done | change, s: mean | 95th percentile |"
        " window, s: mean | beginning and end of a job, s | cycles | decision, ms: mean |"
        " within 20 ms, % | failed cycles | other load, CPUs |",
        "|---|" + "---:|" * 11,
    ]
    return found + [_took(run) for run in runs]


def _took(run: Run) -> str:
    change, decision = run["change_s"], run["decision"]
    cells = [run["strategy"], f"{run['right']} of {run['count']}", str(run["not_done"])]
    cells += [f"{change[key]:.2f}" if change else "–" for key in ("mean", "p95")]
    window = run["window_s"]
    cells.append(f"{window['mean']:.2f}" if window else "–")
    cells.append(f"{run['around_s'].get('mean', 0):.1f}")
    if decision:
        cells += [str(decision["cycles"]), f"{decision['mean_ms']:.1f}"]
        cells += [f"{100 * decision['within_20_ms']:.1f}", str(decision["failures"])]
    else:
        cells += ["–"] * 4
    cells.append(f"{run['load']['foreign_cpus']:.2f}")
    return f"| {' | '.join(cells)} |"


def plot(data: Mapping[str, Any], path: Path) -> None:
    """Draws system power and corridor over time: a panel for each run, with its simulation."""
    runs = complete(data)
    with mpl.rc_context({"svg.hashsalt": "power-cluster", "svg.fonttype": "none"}):
        figure, panels = plt.subplots(
            len(runs), 1, figsize=(9, 2.4 * len(runs)), layout="constrained", sharex=True
        )
        for axes, run in zip(np.atleast_1d(panels), runs, strict=True):
            given = Experiment(run["seed"], run["compression"], run["count"], run["nodes"])
            powers = [("cluster", _power(run)), ("simulated", _power(run["simulated"]))]
            bounds = PowerBounds(given.corridor.whole(_ORIGIN_S))
            span_s = _ORIGIN_S, max(power.end_s for _, power in powers)
            styles = [(LINE_COLOURS[0], ()), (LINE_COLOURS[1], DASHES[1])]
            draw_power(axes, powers, bounds, span_s, scale_s=1, styles=styles)
            axes.set_title(run["strategy"], loc="left", fontsize=10)
            axes.set_ylabel("W")
            axes.spines[["top", "right"]].set_visible(False)
        np.atleast_1d(panels)[0].legend(fontsize=8, loc="lower right")
        np.atleast_1d(panels)[-1].set_xlabel("time since the first submission, s")
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


def _power(values: Run) -> SystemPower:
    series = values["power"]
    at_s, end_s = np.array(series["at_s"]) + _ORIGIN_S, int(series["end_s"][0]) + _ORIGIN_S
    return SystemPower(at_s, np.array(series["power_w"]), end_s)
