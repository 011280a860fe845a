# SPDX-License-Identifier: Apache-2.0
"""A results file of `benchmarks/esp_cluster.py` as a table and as a plot, in ESP's seconds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

from bridge.lab.report.line_styles import LINE_COLOURS

_MEASURES = (
    ("makespan_s", "makespan, s", 0),
    ("utilization", "utilisation, %", 1),
    ("wait_s", "mean wait, s", 0),
    ("response_s", "mean response, s", 0),
)

_SHOWN = tuple(each for each in _MEASURES if each[0] != "utilization")


def in_short(run: Mapping[str, Any]) -> str:
    """One line about a run, as progress."""
    return (
        f"{run['right']} of {run['count']} results right; makespan {run['makespan_s']:.0f} s, "
        f"wait {run['wait_s']:.1f} s, response {run['response_s']:.1f} s, "
        f"{100 * run['utilization']:.1f} % used; {run['resizes']} changes of "
        f"{run['change_s'].get('mean', 0):.2f} s, {run['not_done']} not done"
    )


def real(run: Mapping[str, Any], key: str) -> float:
    """A measure of the cluster, in ESP's seconds or in percent."""
    return float(run[key]) * (100 if key == "utilization" else run["compression"])


def simulated(run: Mapping[str, Any], key: str) -> float:
    """The same of the simulation."""
    return float(run["simulated"][key]) * (100 if key == "utilization" else 1)


def complete(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The runs that were not interrupted."""
    return [run for run in data["runs"] if "error" not in run]


def lines(data: Mapping[str, Any]) -> list[str]:
    """Two Markdown tables in one: the measures, and the costs of changes."""
    titles = [f"{title}{end}" for _, title, _ in _MEASURES for end in ("", " (simulated)")]
    found = [
        f"| {' | '.join(['strategy', 'malleable, %', 'jobs', 'right', *titles])} |",
        "|---|---:|---:|---:|" + "---:|" * len(titles),
    ]
    for run in complete(data):
        cells = [run["strategy"], f"{run['share']:g}", str(run["count"]), str(run["right"])]
        for key, _, digits in _MEASURES:
            cells += [f"{value(run, key):,.{digits}f}" for value in (real, simulated)]
        found.append(f"| {' | '.join(cells)} |")
    found.append("")
    found += [
        "| strategy | malleable, % | changes | simulated | not done | change, s: mean | median "
        "| 95th percentile | window, s: mean | locks, ms: mean | most | started on other widths |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for run in complete(data):
        if not run["change_s"]:
            continue
        change, window, lock = run["change_s"], run["window_s"], run["lock_ms"]
        cells = [run["strategy"], f"{run['share']:g}", str(run["resizes"])]
        cells += [str(run["simulated"]["resizes"]), str(run["not_done"])]
        cells += [f"{change[key]:.2f}" for key in ("mean", "median", "p95")]
        cells += [f"{window.get('mean', 0):.3f}", f"{lock['mean']:.2f}", f"{lock['most']:.2f}"]
        found.append(f"| {' | '.join(cells)} | {run['started_elsewhere']} |")
    return found


def ways(data: Mapping[str, Any]) -> list[str]:
    """A Markdown table: the real runs with changes, and their simulations with various costs."""
    titles = [f"{title} | against the cluster, %" for _, title, _ in _SHOWN]
    found = [
        f"| strategy | | {' | '.join(titles)} |",
        "|---|---|" + "---:|---:|" * len(_SHOWN),
    ]
    for run in complete(data):
        if len(run.get("ways", ())) < 2:
            continue
        cells = [f"{real(run, key):,.{digits}f} |" for key, _, digits in _SHOWN]
        found.append(f"| {run['strategy']} | cluster | {' | '.join(cells)} |")
        for way, measured in run["ways"].items():
            cells = []
            for key, _, digits in _SHOWN:
                value = float(measured[key])
                cells += [f"{value:,.{digits}f}", f"{100 * (value / real(run, key) - 1):+.1f}"]
            found.append(f"| {run['strategy']} | {way} | {' | '.join(cells)} |")
    return found


def plot(data: Mapping[str, Any], path: Path) -> None:
    """Draws the four measures, real and simulated side by side."""
    runs = complete(data)
    names = [f"{run['strategy']}\n{run['share']:g} %" for run in runs]
    with mpl.rc_context({"svg.hashsalt": "esp", "svg.fonttype": "none"}):
        figure, panels = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
        for axes, (key, title, _) in zip(panels.flat, _MEASURES, strict=True):
            for at, (value, label) in enumerate(((real, "real"), (simulated, "simulated"))):
                places = [number + 0.4 * at - 0.2 for number in range(len(runs))]
                heights = [value(run, key) for run in runs]
                axes.bar(places, heights, 0.38, color=LINE_COLOURS[at], label=label)
            axes.set_title(title)
            axes.set_xticks(range(len(runs)), names, fontsize=8)
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(visible=True, axis="y", color="#dddddd", linewidth=0.6)
            axes.set_axisbelow(True)
        panels[0][0].legend()
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
