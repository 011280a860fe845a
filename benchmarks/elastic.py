# SPDX-License-Identifier: Apache-2.0
"""Policies for malleable jobs: `schedbridge bench elastic`, kept with its origin.

Usage: benchmarks/elastic.py [--seeds N] [--first-seed N] [--mtct-error X] [--scenario FILE]
                             [--shares P,...] [--policies NAME,...] [--json FILE] [--plot FILE]
       benchmarks/elastic.py --show FILE    prints the table of such a file, no more
       benchmarks/elastic.py --against FILE the last policy against the others, seed by seed
       benchmarks/elastic.py --kinds FILE   rigid and malleable jobs apart
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from about import about

from bridge.cli.bench_elastic import interval, lines

PASSED = ("seeds", "first-seed", "mtct-error", "scenario", "shares", "policies", "plot")


def against(runs: list[dict]) -> list[str]:
    """By how much a measure of the last policy differs from each other one, percent of its mean."""
    keys = ("makespan_s", "utilization", "wait_s", "response_s", "throughput_per_h")
    rows = [
        "| malleable, % | against | makespan, % | utilisation, % | mean wait, % | mean response, % "
        "| jobs an hour, % |",
        "|---:|---|---:|---:|---:|---:|---:|",
    ]
    ours = runs[-1]["policy"]
    of = {(run["policy"], run["share"], run["seed"]): run for run in runs}
    for share in sorted({run["share"] for run in runs}):
        for policy in dict.fromkeys(run["policy"] for run in runs if run["policy"] != ours):
            seeds = sorted(seed for name, at, seed in of if (name, at) == (policy, share))
            cells = [f"{share:g}", policy]
            for key in keys:
                theirs = np.array([of[policy, share, seed][key] for seed in seeds])
                mine = np.array([of[ours, share, seed][key] for seed in seeds])
                change = 100 * (mine - theirs) / theirs.mean()
                low, high = interval(change)
                cells.append(f"{change.mean():+.1f} [{low:+.1f}, {high:+.1f}]")
            rows.append("| " + " | ".join(cells) + " |")
    return rows


def kinds(runs: list[dict]) -> list[str]:
    """Rigid and malleable jobs of each run."""
    rows = [
        "| log | policy | rigid jobs: mean wait, h | slowdown | malleable jobs: mean wait, h "
        "| slowdown | longest wait, h | utilisation, % | announced starts kept, % |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for run in runs:
        cells = [run["scenario"], run["policy"]]
        for kind in ("rigid", "malleable"):
            cells += [f"{run[kind + '_wait_s'] / 3600:.2f}", f"{run[kind + '_slowdown']:.1f}"]
        cells += [
            f"{run['longest_wait_s'] / 3600:.1f}",
            f"{100 * run['utilization']:.1f}",
            f"{100 * run['kept_first']:.1f}",
        ]
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def main() -> None:
    """Measures, shows, writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--show", type=Path, help="print the table of such a file, no more")
    parser.add_argument("--against", type=Path, help="print differences by seed, no more")
    parser.add_argument("--kinds", type=Path, help="print rigid and malleable jobs apart, no more")
    parser.add_argument("--json", type=Path, help="write every figure here")
    for name in PASSED:
        parser.add_argument(f"--{name}")
    given = parser.parse_args()
    if given.show:
        print("\n".join(lines(json.loads(given.show.read_text())["summary"])))
        return
    if given.against:
        print("\n".join(against(json.loads(given.against.read_text())["runs"])))
        return
    if given.kinds:
        print("\n".join(kinds(json.loads(given.kinds.read_text())["runs"])))
        return
    command = [sys.executable, "-m", "bridge.cli.main", "bench", "elastic", "--json"]
    for name in PASSED:
        if (value := getattr(given, name.replace("-", "_"))) is not None:
            command += [f"--{name}", value]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:  # it has said on stderr what is wrong
        sys.exit(done.returncode)
    found = json.loads(done.stdout)
    print("\n".join(lines(found["summary"])))
    if given.json:
        rows = ",\n  ".join(json.dumps(run) for run in found.pop("runs"))
        rest = json.dumps({**about(), **found}, indent=1).removesuffix("\n}")
        given.json.write_text(f'{rest},\n "runs": [\n  {rows}\n ]\n}}\n')


if __name__ == "__main__":
    main()
