#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models fitted to logs, beside the logs: quantiles, and waits under EASY; and Lublin's model.

    benchmarks/generated.py DIRECTORY [--seeds 5] [--json benchmarks/results/generated.json]
    benchmarks/generated.py DIRECTORY --whole-days --json benchmarks/results/generated-days.json

DIRECTORY has logs of the Parallel Workloads Archive. docs/results/generated.md has the tables.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from about import about
from results_file import write

from bridge.lab.experiments.statistics.student import quantile

LOGS = {
    "KTH-SP2": "KTH-SP2-1996-2.1-cln.swf.gz",
    "SDSC-SP2": "SDSC-SP2-1998-4.2-cln.swf.gz",
    "HPC2N": "HPC2N-2002-2.2-cln.swf.gz",
}
KEPT = ("jobs", "wait_s_mean", "wait_s_p95", "bounded_slowdown_mean", "utilization")
PROGRAM = (sys.executable, "-c", "from bridge.cli.main import main; main()")


def main() -> None:
    """Runs everything, and prints it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--logs", nargs="+", choices=LOGS, default=list(LOGS))
    parser.add_argument("--whole-days", action="store_true", help="days are drawn, not sessions")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    how = ["--whole-days"] if given.whole_days else []
    found: dict[str, Any] = {"logs": {}}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "drawn.swf.gz"
        for name in given.logs:
            log = given.directory / LOGS[name]
            row: dict[str, Any] = {"log": _waits(log), "drawn": []}
            for seed in range(given.seeds):
                words = ("--seed", str(seed), "--out", str(out), "--force", *how)
                told = _run("lab", "generate", str(log), *words)
                row.setdefault("quantiles", told["quantiles"])
                row["drawn"].append({"load": told["load"], **_waits(out)})
            row["drawn_mean"] = {
                key: sum(one[key] for one in row["drawn"]) / given.seeds for key in ("load", *KEPT)
            }
            waits = [one["wait_s_mean"] / row["log"]["wait_s_mean"] for one in row["drawn"]]
            row["wait_ratio"] = _interval(waits)
            found["logs"][name] = row
            print(name, row["log"], row["drawn_mean"], flush=True)
        if not given.whole_days:
            told = _run(
                "lab", "generate", "lublin", "--jobs", "50000", "--out", str(out), "--force"
            )
            found["lublin"] = {"load": told["load"], "jobs": told["jobs"], **_waits(out)}
            print("lublin", found["lublin"])
    if given.json:
        write(given.json, {**about(), **found})


def _interval(values: list[float]) -> dict[str, float]:
    """Mean and 95 % interval over seeds, by Student's t."""
    mean, half = fmean(values), 0.0
    if len(values) > 1:
        half = quantile(0.975, len(values) - 1) * stdev(values) / len(values) ** 0.5
    return {"mean": mean, "low": mean - half, "high": mean + half}


def _waits(path: Path) -> dict[str, float]:
    (result,) = _run("lab", "simulate", str(path), "--policy", "easy")["results"]
    return {key: result[key] for key in KEPT}


def _run(*arguments: str) -> dict[str, Any]:
    done = subprocess.run(
        [*PROGRAM, *arguments, "--json"], check=True, stdout=subprocess.PIPE, text=True
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return told


if __name__ == "__main__":
    main()
