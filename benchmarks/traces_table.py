#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes Markdown tables of the results of benchmarks/traces.py: all jobs of each log, then classes.

benchmarks/traces_table.py [FILE]       (results/traces.json beside this program)
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Entry = dict[str, Any]
ORDER = ("easy", "slurm-like", "openccs")


def seconds(value: float) -> str:
    """A duration as text."""
    if abs(value) < 60:
        return f"{value:.0f} s"
    if abs(value) < 7200:
        return f"{value / 60:.0f} min"
    return f"{value / 3600:,.1f} h" if abs(value) < 172_800 else f"{value / 86_400:,.1f} d"


def several(entry: Entry, key: str, *names: str, show: Callable[[float], str] = seconds) -> str:
    """Some figures of a distribution."""
    spread = entry[key]
    return " / ".join(show(spread[name]) if name in spread else "–" for name in names)


def percent(value: float) -> str:
    """A share in percent; less than 1 is never shown as 100 %."""
    text = f"{100 * value:.1f} %"
    return f"{100 * value:.3f} %" if text == "100.0 %" and value < 1 else text


ROWS: tuple[tuple[str, Callable[[Entry], str]], ...] = (
    ("wait: mean / median", lambda e: several(e, "wait_s", "mean", "p50")),
    ("wait: p95 / max", lambda e: several(e, "wait_s", "p95", "max")),
    (
        "bounded slowdown: mean / p95",
        lambda e: several(e, "bounded_slowdown", "mean", "p95", show=lambda v: f"{v:,.1f}"),
    ),
    ("utilisation", lambda e: percent(e["utilisation"])),
    ("… to the last submission", lambda e: percent(e["utilisation_coming"])),
    ("idle beside a queue", lambda e: percent(e["idle_beside_queue"])),
    ("starts that had been announced", lambda e: f"{e['starts']['announced']:,}"),
    ("never later than first announced", lambda e: percent(e["starts"]["kept"])),
    (
        "error of the first announcement: median / p95",
        lambda e: several(e["starts"], "off_s", "p50", "p95"),
    ),
    (
        "error of the last announcement: median / p95",
        lambda e: several(e["starts"], "last_off_s", "p50", "p95"),
    ),
    ("announced starts that moved", lambda e: percent(e["starts"]["moved"])),
    ("… that moved to a later time", lambda e: percent(e["starts"]["moved_later"])),
    ("changes per announced start", lambda e: f"{e['starts']['changes']:.2f}"),
    (
        "total shift earlier / later per announced start",
        lambda e: f"{seconds(e['starts']['earlier_s'])} / {seconds(e['starts']['later_s'])}",
    ),
    (
        "decision: mean / p95, wall, ms",
        lambda e: several(e, "decision_ms", "mean", "p95", show=lambda v: f"{v:.1f}"),
    ),
    (
        "decision: mean / p95, CPU, ms",
        lambda e: several(e, "decision_cpu_ms", "mean", "p95", show=lambda v: f"{v:.1f}"),
    ),
)


def table(header: list[str], rows: Iterable[list[str]]) -> str:
    """A Markdown table; all columns but the first are numbers."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def classes(entries: list[Entry]) -> str:
    """Waits, slowdowns and announced starts of each class; in each cell all policies in order."""
    columns: tuple[tuple[str, Callable[[Entry], str]], ...] = (
        ("wait, mean", lambda c: several(c, "wait_s", "mean")),
        ("wait, p95", lambda c: several(c, "wait_s", "p95")),
        ("wait, max", lambda c: several(c, "wait_s", "max")),
        ("bounded slowdown, mean", lambda c: f"{c['bounded_slowdown']['mean']:,.1f}"),
        ("error of the first announcement, median", lambda c: several(c["starts"], "off_s", "p50")),
    )
    rows = []
    for name in (each["class"] for each in entries[0]["classes"]):
        own = [next(c for c in entry["classes"] if c["class"] == name) for entry in entries]
        cells = [" / ".join(show(c) for c in own) for _, show in columns]
        rows.append([name, f"{own[0]['jobs']:,}", *cells])
    return table(["class", "jobs", *(title for title, _ in columns)], rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "file", nargs="?", type=Path, default=Path(__file__).parent / "results/traces.json"
    )
    given = parser.parse_args()
    runs: list[Entry] = json.loads(given.file.read_text(encoding="utf-8"))["runs"]
    for name, limit in dict.fromkeys((run["trace"], run["limit_jobs"]) for run in runs):
        entries = [r for r in runs if (r["trace"], r["limit_jobs"]) == (name, limit)]
        known = {policy: at for at, policy in enumerate(ORDER)}
        entries.sort(key=lambda e: known.get(e["policy"]["name"], len(ORDER)))
        jobs = f"the first {limit:,} jobs" if limit else f"{entries[0]['jobs']:,} jobs"
        print(f"\n### {name}: {jobs}, {entries[0]['processors']:,} processors\n")
        header = ["", *(entry["policy"]["name"] for entry in entries)]
        print(table(header, ([title, *(show(e) for e in entries)] for title, show in ROWS)))
        print(f"\nBy class, {' / '.join(header[1:])}:\n\n{classes(entries)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
