# SPDX-License-Identifier: Apache-2.0
"""A results file of `benchmarks/adaptation.py` as a table and as a plot."""

import statistics
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

from bridge.lab.report.line_styles import DASHES, LINE_COLOURS

SHOWN = (2, 4, 8, 16, 32)
"""The larger width of the changes that the table shows."""
BLANK = "–"
Step = Mapping[str, Any]


def done(run: Mapping[str, Any]) -> list[Step]:
    """The changes of a run that were carried out."""
    return [step for step in run["steps"] if step["done"]]


def in_short(run: Mapping[str, Any]) -> str:
    """One line about a run, as progress."""
    good = done(run)
    totals = sorted(step["total_s"] for step in good)
    locks = [ms for step in good for ms in step["lock_ms"]]
    failed = len(run["steps"]) - len(good)
    return (
        f"{len(good)} changes, {failed} not done; {statistics.median(totals):.2f} s in the middle, "
        f"{totals[-1]:.2f} s at most; locks {max(locks, default=0):.2f} ms at most"
    )


def _launcher(name: str) -> Callable[[Step], float | None]:
    return lambda step: step["launcher"].get(name)


def _standing(step: Step) -> float | None:
    """The application's window; under relaunch from the first end to the return."""
    found = [step["launcher"].get(name) for name in ("going", "parked", "restarting")]
    return sum(one for one in found if one is not None) if any(found) else None


COLUMNS: dict[str, Callable[[Step], float | None]] = {
    "total, s": lambda step: step["total_s"],
    "decided": lambda step: step["asked_s"],
    "granted": lambda step: step.get("granting_s"),
    "processes ready": _launcher("starting"),
    "probe": _launcher("asked"),
    "window": _standing,
    "left": _launcher("leaving"),
    "vacated": lambda step: step.get("vacating_s"),
    "released": lambda step: step.get("releasing_s"),
}


def lines(data: Mapping[str, Any]) -> list[str]:
    """A Markdown table: means over the runs."""
    head = ["engine", "redistribution", "nodes", *COLUMNS, "locks held, ms: mean", "most"]
    found = [f"| {' | '.join(head)} |", "|---|---|---:|" + "---:|" * (len(head) - 3)]
    for (engine, moves), steps in kinds(data).items():
        for grows in (True, False):
            for wide in SHOWN:
                pair = (wide - 1, wide) if grows else (wide, wide - 1)
                same = [step for step in steps if (step["from"], step["to"]) == pair]
                if not same:
                    continue
                cells = [_mean(column(step) for step in same) for column in COLUMNS.values()]
                locks = [ms for step in same for ms in step["lock_ms"]]
                cells += [_mean(locks), f"{max(locks, default=0):.2f}"]
                name = f"{pair[0]} to {pair[1]}"
                found.append(f"| {engine} | {moves} | {name} | {' | '.join(cells)} |")
    return found


def kinds(data: Mapping[str, Any]) -> dict[tuple[str, str], list[Step]]:
    """The changes that were carried out, of all runs, by engine and redistribution."""
    found: dict[tuple[str, str], list[Step]] = {}
    for run in data["runs"]:
        if "steps" in run:
            found.setdefault((run["engine"], run["redistribution"]), []).extend(done(run))
    return found


def _mean(values: Iterable[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{statistics.mean(known):.2f}" if known else BLANK


def plot(data: Mapping[str, Any], path: Path) -> None:
    """Draws the total by the larger width, growing and shrinking; the mean, and all runs' range."""
    with mpl.rc_context({"svg.hashsalt": "adaptation", "svg.fonttype": "none"}):
        figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
        for axes, grows in zip(panels, (True, False), strict=True):
            for at, ((engine, moves), steps) in enumerate(kinds(data).items()):
                by: dict[int, list[float]] = {}
                for step in steps:
                    if (step["to"] > step["from"]) == grows:
                        by.setdefault(max(step["from"], step["to"]), []).append(step["total_s"])
                widths = sorted(by)
                colour, dash = LINE_COLOURS[at % len(LINE_COLOURS)], DASHES[at % len(DASHES)]
                label = f"{engine}, {'with' if moves == 'yes' else 'without'} redistribution"
                mean = [statistics.mean(by[width]) for width in widths]
                axes.plot(widths, mean, color=colour, dashes=dash, label=label, marker="o", ms=3)
                low, high = ([f(by[width]) for width in widths] for f in (min, max))
                axes.fill_between(widths, low, high, color=colour, alpha=0.15, linewidth=0)
            axes.set_title("one node more" if grows else "one node fewer")
            axes.set_xlabel("nodes, the larger number")
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(visible=True, color="#dddddd", linewidth=0.6)
            axes.set_ylim(bottom=0)
        panels[0].set_ylabel("from the request to the end, s")
        panels[0].legend()
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
