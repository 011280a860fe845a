#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes Markdown tables of results of benchmarks/search_harm.py, and a plot of their frontier.

    benchmarks/search_harm_table.py FILE.jsonl [--plot FILE.svg | --class NAME]

All figures are relative to EASY on the same jobs. First: mean and longest wait by log and setting,
and the worst class. Second: the mean wait of each class, a mean over the logs. Third, where there
are several seeds: mean, least and greatest over the seeds. With `--class NAME`: how many jobs of
that class pay, by seed.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]


def named(setting: dict[str, Any]) -> str:
    """A setting as text."""
    parts = [f"{key} {value}" for key, value in setting.items() if value is not None]
    if "ageing_s" in setting and setting["ageing_s"] is None:
        parts.append("no ageing")
    if "most_wait_s" in setting and setting["most_wait_s"] is None:
        parts.append("no most wait")
    return ", ".join(parts).replace("_", " ") or "as preset `search`"


def ratio(row: Row, name: str, measure: int) -> float:
    """A measure of a class over that of EASY; 1 if both are 0."""
    own, easy = row["waits"][name][measure], row["easy"][name][measure]
    return float(own / easy) if easy else 1.0 if not own else float("inf")


def worst(row: Row) -> tuple[str, float]:
    """The class whose mean wait grew most; without classes that hardly wait (a minute)."""
    names = [name for name in row["waits"] if name != "all" and row["easy"][name][0] >= 60]
    return max(((name, ratio(row, name, 0)) for name in names), key=lambda pair: pair[1])


def by_log(rows: list[Row]) -> list[str]:
    """The first table."""
    lines = [
        "| log | setting | mean wait | p99 | longest | worst class |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        name, most = worst(row)
        lines.append(
            f"| {row['log']} | {named(row['setting'])} | {ratio(row, 'all', 0):.2f}"
            f" | {ratio(row, 'all', 1):.2f} | {ratio(row, 'all', 2):.2f} | {name}: {most:.2f} |"
        )
    return lines


def by_class(rows: list[Row]) -> list[str]:
    """The second table: means over logs."""
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        for name in row["waits"]:
            if row["easy"][name][0] >= 60:
                found[named(row["setting"])][name].append(ratio(row, name, 0))
    classes = list(dict.fromkeys(name for each in found.values() for name in each))
    lines = ["| setting | " + " | ".join(classes) + " |", "|---" * (len(classes) + 1) + "|"]
    for setting, each in found.items():
        cells = [f"{np.mean(each[name]):.2f}" if each[name] else "–" for name in classes]
        lines.append(f"| {setting} | " + " | ".join(cells) + " |")
    return lines


def by_seed(rows: list[Row]) -> list[str]:
    """The third table."""
    found: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        found[row["log"], named(row["setting"])].append(row)
    lines = [
        "| log | setting | seeds | mean wait | longest | worst class |",
        "|---|---|---|---|---|---|",
    ]
    for (log, setting), own in found.items():
        cells = []
        for values in (
            [ratio(row, "all", 0) for row in own],
            [ratio(row, "all", 2) for row in own],
            [worst(row)[1] for row in own],
        ):
            cells.append(f"{np.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})")
        lines.append(f"| {log} | {setting} | {len(own)} | " + " | ".join(cells) + " |")
    return lines


def by_jobs(rows: list[Row], name: str) -> list[str]:
    """Of one class, how many jobs pay."""
    lines = [
        "| log | seed | jobs | mean wait | longer | shorter | all, h | ten that lose most, h |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        jobs, longer, shorter, all_s, most_s = row["differences"][name]
        lines.append(
            f"| {row['log']} | {row['seed']} | {jobs} | {ratio(row, name, 0):.2f} | {longer}"
            f" | {shorter} | {all_s / 3600:+.1f} | {most_s / 3600:+.1f} |"
        )
    return lines


def plot(rows: list[Row], path: Path) -> None:
    """Mean wait against longest wait, a colour for each setting and a mark for each log."""
    import matplotlib as mpl  # noqa: PLC0415  only for a plot

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "search_harm"
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, axes = plt.subplots(figsize=(8, 5))
    logs = list(dict.fromkeys(row["log"] for row in rows))
    settings = list(dict.fromkeys(named(row["setting"]) for row in rows))
    for setting, colour in zip(settings, plt.cm.tab10.colors, strict=False):
        for log, mark in zip(logs, "osD^vP", strict=False):
            own = [r for r in rows if r["log"] == log and named(r["setting"]) == setting]
            if own:
                x, y = (float(np.mean([ratio(row, "all", at) for row in own])) for at in (0, 2))
                axes.plot(x, y, mark, color=colour, label=f"{setting}" if log == logs[0] else None)
    axes.axhline(1, color="grey", linewidth=0.8)
    axes.axvline(1, color="grey", linewidth=0.8)
    axes.set_xlabel("mean wait / EASY's")
    axes.set_ylabel("longest wait / EASY's")
    marks = ", ".join(f"{mark} {log}" for log, mark in zip(logs, "○□◇△▽✚", strict=False))
    axes.set_title(marks, fontsize=9)
    axes.legend(fontsize=7)
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--plot", type=Path, help="SVG to write")
    parser.add_argument("--class", dest="name", help="of size or requested time")
    given = parser.parse_args()
    rows = [json.loads(line) for line in given.file.read_text().splitlines() if line]
    if given.name is not None:
        print("\n".join(by_jobs(rows, given.name)))
    elif len({row["seed"] for row in rows}) > 1:
        print("\n".join(by_seed(rows)))
    else:
        print("\n".join([*by_log(rows), "", *by_class(rows)]))
    if given.plot is not None:
        plot(rows, given.plot)


if __name__ == "__main__":
    main()
