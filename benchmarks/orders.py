# SPDX-License-Identifier: Apache-2.0
"""Every order of jobs on whole logs, compared with EASY: `lab experiment` and its report.

    python benchmarks/orders.py DIRECTORY --keep FOLDER --out benchmarks/results/orders.json
    python benchmarks/orders.py --keep FOLDER --out benchmarks/results/orders.json    # reads only
    python benchmarks/orders.py --show benchmarks/results/orders.json
    python benchmarks/orders.py DIRECTORY --weeks --keep OTHER --out orders-weeks.json

The orders `fcfs`, `shortest` and `slowdown` under EASY and conservative backfilling, and
`responsive`, replayed on counts: a pool of processors without nodes and partitions. Intervals are
over the weeks of each log. Cells that are in FOLDER are not computed again; without DIRECTORY they
are only compared. Logs that are not in DIRECTORY are left out. `computed` says by which commit,
when and at which load the cells were computed. METACENTRUM has no size in its header: 20 nodes of
80 CPUs and 48 of 12, by the list of machines that comes with it.

With `--weeks`: policies that plan jointly (`search`, `recommended`, and the solvers' dispatchers
`hcp19`, `pcp19`, `pcp20`), with little effort, on one stated week of each log, alone, with five
orders of the jobs that were submitted in the same second. `--policies` and `--seeds` compute fewer;
what has no cell is in `missing`, and in the table as `not run`.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from about import about
from results_file import write

from bridge.lab.experiments.results import read_all
from bridge.lab.experiments.statistics.verdict import HERE_ALONE
from bridge.registry import PRESETS

LOGS = {
    "KTH-SP2": ("KTH-SP2-1996-2.1-cln", {}),
    "CTC-SP2": ("CTC-SP2-1996-3.1-cln", {}),
    "SDSC-SP2": ("SDSC-SP2-1998-4.2-cln", {}),
    "METACENTRUM": ("METACENTRUM-wagap-2013", {"procs": 2176, "lenient": True}),
    "HPC2N": ("HPC2N-2002-2.2-cln", {}),
    "CEA-Curie": ("CEA-Curie-2011-2.1-cln", {}),
}
POLICIES = [
    "easy",
    {"name": "easy-shortest", "preset": "easy", "order": "shortest"},
    {"name": "easy-slowdown", "preset": "easy", "order": "slowdown"},
    "responsive",
    "conservative",
    {"name": "conservative-shortest", "preset": "conservative", "order": "shortest"},
    {"name": "conservative-slowdown", "preset": "conservative", "order": "slowdown"},
]
SEARCHED = 4000
"""Jobs booked in a decision."""
SOLVED = 0.01
"""Deterministic time of a solver for a decision."""


def small(preset: str, effort: float) -> dict[str, Any]:
    """A preset with this effort for a decision."""
    plan = PRESETS[preset].plan
    parameters = {**plan.parameters, "budget_ms": 0, "effort": effort}
    return {"name": preset, "preset": preset, "plan": {"name": plan.name, **parameters}}


JOINT = [
    "easy",
    *(small(preset, SOLVED) for preset in ("hcp19", "pcp19", "pcp20")),
    *(small(preset, SEARCHED) for preset in ("search", "recommended")),
]
WEEKS = {
    "KTH-SP2": 20, "CTC-SP2": 20, "SDSC-SP2": 40, "HPC2N": 60, "METACENTRUM": 11, "CEA-Curie": 7,
}  # fmt: skip
"""Of each log, from 0. Week 11 is that in which jobs of METACENTRUM wait longest."""
MEASURES = ("wait_mean", "wait_p99", "wait_max", "bounded_slowdown")
KEPT = ("base", "other", "difference", "low", "high", "outcome", "verdict")


def names_of(weeks: bool) -> list[str]:
    """Of all policies."""
    return [
        one if isinstance(one, str) else str(one["name"]) for one in (JOINT if weeks else POLICIES)
    ]


def plan(
    path: Path,
    directory: Path,
    kept: Path,
    names: Sequence[str],
    policies: Sequence[str],
    *,
    seeds: int,
    weeks: bool,
) -> None:
    """Writes the file of the experiment on some logs and policies; JSON is YAML."""
    traces = [
        {"file": str(found), "name": name, **options}
        for name, (log, options) in LOGS.items()
        if name in names and (found := directory / f"{log}.swf.gz").is_file()
    ]
    definition = {"results": str(kept), "baseline": "easy", "traces": traces}
    if weeks:
        traces[:] = [
            {**trace, "weeks": {"first": WEEKS[trace["name"]], "count": 1}}
            for trace in traces
            if trace["name"] in WEEKS
        ]
        definition |= {"policies": JOINT, "seeds": seeds, "perturbations": ["ties"]}
    else:
        definition |= {
            "policies": POLICIES, "seeds": 1, "engine": "fast", "perturbations": ["none"],
        }  # fmt: skip
    every = zip(definition["policies"], names_of(weeks), strict=True)
    definition["policies"] = [one for one, name in every if name in policies]
    path.write_text(json.dumps(definition))


def called(*arguments: str) -> str:
    """What a command of schedbridge prints."""
    command = [sys.executable, "-m", "bridge.cli.main", *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout


def named(one: Mapping[str, Any]) -> str:
    """A log; with its week, if several of its weeks were computed."""
    week = re.fullmatch(r"weeks \[(\d+),1\]", one["mark"])
    return f"{one['trace']}, week {week[1]}" if week else str(one["trace"])


def rows(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One for each log and policy."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for one in report["comparisons"]:
        if one["class_kind"] == "all" and one["measure"] in MEASURES:
            row = found.setdefault((named(one), one["policy"]), {"jobs": one["jobs"]})
            row[one["measure"]] = {name: one[name] for name in KEPT}
    harms = {(named(one), one["policy"]): one for one in report["fairness"]}
    return [
        {
            "log": log,
            "policy": policy,
            "runs": len(harms[log, policy]["seeds"]),
            **row,
            **{name: harms[log, policy][name] for name in ("over", "units", "jobs_worse")},
        }
        for (log, policy), row in found.items()
    ]


def missing(found: Sequence[Mapping[str, Any]], *, weeks: bool) -> list[dict[str, str]]:
    """Logs and policies without a row."""
    have = {(row["log"].partition(",")[0], row["policy"]) for row in found}
    others = [name for name in names_of(weeks) if name != "easy"]
    return [
        {"log": log, "policy": name}
        for log in (WEEKS if weeks else LOGS)
        for name in others
        if (log, name) not in have
    ]


def computed(folder: Path) -> dict[str, Any]:
    """Where the cells come from."""
    cells = [result for result, _ in read_all(folder) if result.done]
    made = [result.provenance for result in cells]
    loads = [one["load_average"][0] for one in made]
    return {
        "cells": len(cells),
        "commits": sorted({result.cell.commit for result in cells}),
        "engines": sorted({str(result.results.get("engine")) for result in cells}),
        "from": min(one["date"] for one in made),
        "until": max(one["date"] for one in made),
        "load_average": [min(loads), max(loads)],
        "cpu_s": round(sum(result.cpu_s for result in cells), 1),
    }


def brief(one: Mapping[str, Any]) -> str:
    """A verdict for a table: `not shown (-3 to +4 %)`; `*`: only for Holm's correction."""
    words, holm, _ = str(one["verdict"]).removesuffix(f", {HERE_ALONE}").partition("; not after")
    return words.replace("no difference shown", "not shown") + (")*" if holm else "")


def lines(found: Mapping[str, Any]) -> Sequence[str]:
    """A table as lines of Markdown."""
    head = (
        "log", "policy", "runs", "mean wait, s", "easy, s", "verdict", "99 % of the waits",
        "longest wait", "bounded slowdown", "jobs worse off",
    )  # fmt: skip
    out = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    for row in found["rows"]:
        wait, longest = row["wait_mean"], row["wait_max"]
        cells = [
            f"{row['log']}, {row['jobs']:,} jobs", row["policy"], str(row["runs"]),
            f"{wait['other']:,.0f}", f"{wait['base']:,.0f}", brief(wait), brief(row["wait_p99"]),
            f"{100 * longest['difference']:+,.0f} %", brief(row["bounded_slowdown"]),
            f"{100 * row['jobs_worse']:.0f} %",
        ]  # fmt: skip
        out.append(f"| {' | '.join(cells)} |")
    for row in found["missing"]:
        cells = [row["log"], row["policy"], "0", "not run", *["–"] * (len(head) - 4)]
        out.append(f"| {' | '.join(cells)} |")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, nargs="?", help="of the logs")
    parser.add_argument("--keep", type=Path, help="folder of the cells")
    parser.add_argument("--logs", default=",".join(LOGS), help="names, with commas")
    parser.add_argument("--weeks", action="store_true", help="joint planners on stated weeks")
    parser.add_argument("--policies", help="names, with commas; default: all")
    parser.add_argument("--seeds", type=int, default=5, help="orders of a week's ties")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--show", type=Path)
    given = parser.parse_args()
    if given.show is not None:
        print("\n".join(lines(json.loads(given.show.read_text()))))
        return
    if given.directory is None and given.keep is None:
        parser.error("name the directory of the logs, or of the cells")
    logs = given.logs.split(",")
    policies = given.policies.split(",") if given.policies else names_of(given.weeks)
    for unknown in (*(set(logs) - set(LOGS)), *(set(policies) - set(names_of(given.weeks)))):
        parser.error(f"'{unknown}' is neither a log nor a policy of this table")
    with tempfile.TemporaryDirectory() as folder:
        path, kept = Path(folder, "plan.yaml"), given.keep or Path(folder, "kept")
        if given.directory is not None:
            plan(
                path, given.directory.resolve(), kept.resolve(), logs, policies,
                seeds=given.seeds, weeks=given.weeks,
            )  # fmt: skip
            called("lab", "experiment", str(path), "--workers", "1", "--json")
        report = json.loads(called("lab", "experiment-report", str(kept), "--json"))
        made = computed(kept)
    table = rows(report)
    found = {
        **about(),
        "computed": made,
        "trim": report["trim"],
        "notes": report["notes"],
        "rows": table,
        "missing": missing(table, weeks=given.weeks),
    }
    print("\n".join(lines(found)))
    if given.out:
        write(given.out, found)


if __name__ == "__main__":
    main()
