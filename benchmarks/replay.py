#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays logs of the Parallel Workloads Archive: known results, and duration of the command.

    benchmarks/replay.py DIRECTORY [--repeat N] [--policy NAME ...]  > replay.json

For each log of `KNOWN` found in the directory (as LOG.swf.gz) the command `lab simulate LOG
--json` runs in a separate process, `--repeat` times. The seconds are wall time of the whole
command: start of Python, reading, replay, output.

Rules of the known results: docs/SIMULATOR.md. Source: figures of two independent EASY
implementations under these rules; ties and the order within a second explain their difference.

Exit code 1 if a figure is more than 1.5 % from the known one.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from about import about
from results_file import as_text

TOLERANCE = 0.015

MEASURES = ("jobs", "wait_s_mean", "bounded_slowdown_mean")

# log: jobs, and mean wait in s and mean bounded slowdown under EASY where they are known
KNOWN: dict[str, dict[str, float]] = {
    "KTH-SP2-1996-2.1-cln": dict(zip(MEASURES, (28_467, 6_837, 92.7), strict=True)),
    "SDSC-SP2-1998-4.2-cln": dict(zip(MEASURES, (54_034, 20_576, 88.5), strict=True)),
    "CTC-SP2-1996-3.1-cln": dict(zip(MEASURES, (77_205, 13_942, 48.8), strict=True)),
    "HPC2N-2002-2.2-cln": {"jobs": 202_871},
    "CEA-Curie-2011-2.1-cln": {"jobs": 295_540},
}


def run(log: Path, policy: str) -> tuple[float, dict[str, object]]:
    command = [sys.executable, "-m", "bridge.cli.main", "lab", "simulate", str(log), "--json"]
    began = time.perf_counter()
    done = subprocess.run([*command, "--policy", policy], capture_output=True, check=True)
    return time.perf_counter() - began, json.loads(done.stdout)["results"][0]


def deviations(known: dict[str, float], found: dict[str, object]) -> dict[str, float]:
    return {key: float(str(found[key])) / value - 1 for key, value in known.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, help="where the logs are")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--policy", action="append", help="default: easy and conservative")
    chosen = parser.parse_args()
    logs = {name: chosen.directory / f"{name}.swf.gz" for name in KNOWN}
    found_logs = {name: path for name, path in logs.items() if path.exists()}
    if not found_logs:
        print(f"replay.py: none of {', '.join(KNOWN)} in {chosen.directory}", file=sys.stderr)
        return 1
    entries, worst = [], 0.0
    for name, path in found_logs.items():
        for policy in chosen.policy or ["easy", "conservative"]:
            runs = [run(path, policy) for _ in range(chosen.repeat)]
            seconds = [took for took, _ in runs]
            entry: dict[str, object] = {
                "log": name,
                "policy": policy,
                "seconds_median": round(statistics.median(seconds), 3),
                "seconds": [round(took, 3) for took in seconds],
                **{key: runs[0][1][key] for key in MEASURES},
                "decision_ms_mean": runs[0][1]["decision_ms_mean"],
            }
            if policy == "easy":
                entry["deviation"] = deviations(KNOWN[name], runs[0][1])
                worst = max(worst, *map(abs, deviations(KNOWN[name], runs[0][1]).values()))
            entries.append(entry)
            print(f"{name} {policy}: {entry['seconds_median']} s", file=sys.stderr)
    found = {
        **about(),
        "worst_deviation": worst,
        "missing": sorted(set(logs) - set(found_logs)),
        "replays": entries,
    }
    print(as_text(found))
    return 1 if worst > TOLERANCE else 0


if __name__ == "__main__":
    sys.exit(main())
