#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a Markdown table of a result of benchmarks/cluster.py: one row per figure.

usage: benchmarks/cluster_table.py [benchmarks/results/cluster.json]

Of several rounds the median round is shown, and the range of the rounds in brackets if it differs.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

Result = dict[str, Any]
TITLES = {
    "bridge": "bridge",
    "backfill": "Slurm backfill, default",
    "backfill-tuned": "Slurm backfill, tuned",
}


def rounds(values: Iterable[float], digits: int = 0) -> str:
    """The median of the rounds, and their range if there is one."""
    known = sorted(values)
    if not known:
        return "–"
    middle, low, high = (
        f"{v:,.{digits}f}" for v in (statistics.median(known), known[0], known[-1])
    )
    return middle if low == high else f"{middle} ({low}–{high})"


def pick(results: list[Result], *keys: str) -> list[float]:
    """One figure of every round that has it."""
    found = []
    for result in results:
        value: Any = result
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        if value is not None:
            found.append(value)
    return found


def announced(results: list[Result]) -> str:
    """When the whole queue had announced starts, or the part that had when time was up."""
    if times := pick(results, "all_announced_s"):
        return rounds(times, 1) + " s"
    if not results:
        return "–"
    best = max(results, key=lambda r: r["announced"])
    return (
        f"not within {best['watched_s']:.0f} s: {best['announced']:,} of {best['pending']:,}"
        f" ({best['announced_share']:.0%})"
    )


def pair(results: list[Result], key: str) -> str:
    p95 = rounds(pick(results, key, "p95"))
    return "–" if p95 == "–" else f"{p95} / {rounds(pick(results, key, 'max'))} ms"


Row = tuple[str, str, Callable[[list[Result]], str]]


def rows(results: list[Result]) -> list[tuple[str, str, str, Callable[[list[Result]], str]]]:
    """Part, title, target, and the function that makes a cell from the rounds of one scheduler."""
    table: list[tuple[str, str, str, Callable[[list[Result]], str]]] = []

    def add(part: str, title: str, aim: str, cell: Callable[[list[Result]], str]) -> None:
        table.append((part, title, aim, cell))

    wait = "submit_to_allocation_ms"
    add("latency", "submit to allocation, idle nodes, median", "< 20 ms",
        lambda r: rounds(pick(r, wait, "median")) + " ms")  # fmt: skip
    add("latency", "… p95", "< 100 ms", lambda r: rounds(pick(r, wait, "p95")) + " ms")
    add("throughput", "short jobs a second", "slurmd-bound",
        lambda r: rounds(pick(r, "jobs_per_s"), 1))  # fmt: skip
    add("throughput", "… controller (+ service) CPU per job", "≤ Slurm's",
        lambda r: rounds(pick(r, "controller_ms_per_job"), 1) + " ms")  # fmt: skip
    for part, title in (("array", "tasks of an array a second"), ("mixed", "mixed jobs a second")):
        add(part, title, "≥ Slurm's", lambda r: rounds(pick(r, "jobs_per_s"), 1))
    for jobs, nodes in dict.fromkeys(
        (r["jobs"], r["nodes"]) for r in results if r["part"] == "deep" and "nodes" in r
    ):
        part = f"deep {jobs}x{nodes}"
        add(part, f"{jobs:,} pending on {nodes:,} full nodes: all announced", "all", announced)
        add(part, "… queries meanwhile, p95 / max", "p95 < 20 ms", lambda r: pair(r, "query_ms"))
        add(part, "… submissions meanwhile, p95 / max", "p95 < 20 ms",
            lambda r: pair(r, "submit_ms"))  # fmt: skip
    return table


def belongs(result: Result, part: str) -> bool:
    if result["part"] == "deep":
        return part == f"deep {result['jobs']}x{result['nodes']}"
    return bool(result["part"] == part)


def table(report: Result) -> str:
    good = [r for r in report["results"] if "error" not in r]
    names = [n for n in TITLES if any(r.get("scheduler") == n for r in report["results"])]
    lines = [
        "| | " + " | ".join(TITLES[n] for n in names) + " | aim |",
        "|---|" + "---:|" * len(names) + "---|",
    ]
    for part, title, aim, cell in rows(good):
        mine = {n: [r for r in good if belongs(r, part) and r["scheduler"] == n] for n in names}
        if any(mine.values()):
            cells = [cell(mine[n]) if mine[n] else "–" for n in names]
            lines.append(f"| {title} | " + " | ".join(cells) + f" | {aim} |")
    return "\n".join(lines) + "\n\n" + footnote(report, good)


def footnote(report: Result, good: list[Result]) -> str:
    machine = report["machine"]
    foreign = pick(good, "load", "foreign_cpus")
    text = (
        f"{machine['cpus']} CPUs ({machine['cpu_model']}), {machine['memory_mib'] // 1024} GiB, "
        f"everything in containers on it; CPUs used by others meanwhile: {rounds(foreign, 2)}. "
    )
    failed = [r for r in report["results"] if "error" in r]
    for result in failed:
        text += f"\nFailed: {result['part']}, {result['scheduler']}: {result['error']}."
    return text.strip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n", maxsplit=1)[0])
    default = Path(__file__).parent / "results/cluster.json"
    parser.add_argument("file", nargs="?", type=Path, default=default)
    path = parser.parse_args().file
    try:
        report = json.loads(path.read_text())
        print(table(report), end="")
    except OSError as error:
        print(f"cluster_table: {path}: {error.strerror}", file=sys.stderr)
        return 1
    except (ValueError, KeyError) as error:
        print(f"cluster_table: {path} is not from cluster.py: {error!r}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
