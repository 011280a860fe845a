# SPDX-License-Identifier: Apache-2.0
"""The preset `responsive` compared with EASY on logs of the Parallel Workloads Archive.

Usage: benchmarks/responsive.py LOG.swf.gz ... [--jobs N] [--json FILE]

Runs `lab simulate` on the first N jobs (10,000) of each log under both presets and prints
the users' measures as a Markdown table; --json also writes every figure. Unreadable lines are left
out.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from about import about
from results_file import write

PRESETS = ("easy", "responsive")


def simulate(log: Path, jobs: int) -> dict[str, object]:
    command = [
        sys.executable,
        "-m",
        "bridge.cli.main",
        "lab",
        "simulate",
        str(log),
        "--lenient",
        "--json",
    ]
    command += ["--jobs", str(jobs)]
    for preset in PRESETS:
        command += ["--policy", preset]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:  # it has reported the error on stderr
        sys.exit(done.returncode)
    return {"log": log.name, **json.loads(done.stdout), "trace": log.name}


def row(found: dict) -> str:
    easy, ours = found["results"]
    cells = [found["log"].split(".swf")[0]]
    for key, unit_s in (("wait_s_mean", 3600), ("wait_s_p90", 3600), ("wait_s_max", 3600),
                        ("bounded_slowdown_mean", 1), ("utilization", 0.01)):  # fmt: skip
        cells.append(f"{easy[key] / unit_s:.1f} / {ours[key] / unit_s:.1f}")
    kept = [f"{one['starts']['first']['kept']:.0%} of {one['starts']['promised']:,}"
            for one in (easy, ours)]  # fmt: skip
    return "| " + " | ".join([*cells, " / ".join(kept)]) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logs", nargs="*", type=Path, metavar="LOG")
    parser.add_argument("--show", type=Path, help="only print the table of this file")
    parser.add_argument("--jobs", type=int, default=10_000, help="of each log [10000]")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    given = parser.parse_args()
    runs = []
    print("| log | mean wait, h | 90 % within, h | longest wait, h | bounded slowdown "
          "| utilisation, % | announced starts never later |")  # fmt: skip
    print("|---|---:|---:|---:|---:|---:|---:|")
    if given.show:
        for found in json.loads(given.show.read_text())["runs"]:
            print(row(found))
        return
    for log in given.logs:
        runs.append(simulate(log, given.jobs))
        print(row(runs[-1]), flush=True)
    if given.json:
        write(given.json, {**about(), "runs": runs})


if __name__ == "__main__":
    main()
