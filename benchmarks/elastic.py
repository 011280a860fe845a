# SPDX-License-Identifier: Apache-2.0
"""Policies for malleable jobs: `bench.py elastic`, with the origin of the results.

Usage: benchmarks/elastic.py [--seeds N] [--first-seed N] [--mtct-error X] [--scenario FILE]
                             [--shares P,...] [--policies NAME,...] [--jobs N] [--nodes N]
                             [--speed-up MODEL] [--change-cost COST] [--json FILE] [--plot FILE]
       benchmarks/elastic.py --show FILE    only prints the table of this file
       benchmarks/elastic.py --against FILE the last policy against the others, seed by seed
       benchmarks/elastic.py --compare FILE OTHER   two such files, seed by seed
       benchmarks/elastic.py --kinds FILE   rigid and malleable jobs separately
       benchmarks/elastic.py --gains FILE   against the first policy, seed by seed
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from about import ROOT, about
from policy_bench.elastic import interval, lines, summary

from bridge.lab.report.elastic_plot import plot_elastic

PASSED = (
    "mtct-error", "scenario", "shares", "policies", "jobs",
    "nodes", "speed-up", "change-cost",
)  # fmt: skip


MEASURES = ("makespan_s", "utilization", "wait_s", "response_s", "throughput_per_h")
CHANGES = (
    "makespan, % | utilisation, % | mean wait, % | mean response, % | jobs an hour, % |",
    "---:|---:|---:|---:|---:|",
)


def against(runs: list[dict]) -> list[str]:
    """The difference of the last policy's measures from each other one's, percent of its mean."""
    rows = [f"| malleable, % | against | {CHANGES[0]}", f"|---:|---|{CHANGES[1]}"]
    ours = runs[-1]["policy"]
    of = {(run["policy"], run["share"], run["seed"]): run for run in runs}
    for share in sorted({run["share"] for run in runs}):
        for policy in dict.fromkeys(run["policy"] for run in runs if run["policy"] != ours):
            seeds = sorted(seed for name, at, seed in of if (name, at) == (policy, share))
            pairs = [(of[ours, share, seed], of[policy, share, seed]) for seed in seeds]
            rows.append(f"| {share:g} | {policy} | {changed(pairs)} |")
    return rows


def compared(runs: list[dict], others: list[dict]) -> list[str]:
    """The difference of measures from those of other runs, percent of their mean, by seed."""
    rows = [f"| malleable, % | policy | seeds | {CHANGES[0]}", f"|---:|---|---:|{CHANGES[1]}"]
    of = {(run["share"], run["policy"], run["seed"]): run for run in others}
    pairs: dict[tuple[float, str], list[tuple[dict, dict]]] = {}
    for run in runs:
        if (other := of.get((run["share"], run["policy"], run["seed"]))) is not None:
            pairs.setdefault((run["share"], run["policy"]), []).append((run, other))
    for (share, policy), members in pairs.items():
        if any(run["resizes"] for run, _ in members):
            rows.append(f"| {share:g} | {policy} | {len(members)} | {changed(members)} |")
    return rows


def changed(pairs: list[tuple[dict, dict]]) -> str:
    """Cells: for each measure the mean difference of pairs, in percent of the second ones' mean."""
    cells = []
    for key in MEASURES:
        mine, theirs = (np.array([pair[at][key] for pair in pairs]) for at in (0, 1))
        cells.append(with_interval(100 * (mine - theirs) / theirs.mean(), "+.1f"))
    return " | ".join(cells)


KINDS = {
    "rigid_wait_s": ("rigid jobs: mean wait, h", 1 / 3600, 2),
    "rigid_wait_p95_s": ("95th percentile, h", 1 / 3600, 1),
    "rigid_slowdown": ("slowdown", 1.0, 1),
    "malleable_wait_s": ("malleable jobs: mean wait, h", 1 / 3600, 2),
    "malleable_slowdown": ("slowdown", 1.0, 1),
    "longest_wait_s": ("longest wait, h", 1 / 3600, 1),
    "utilization": ("utilisation, %", 100.0, 1),
    "kept_first": ("announced starts kept, %", 100.0, 1),
}


def kinds(runs: list[dict]) -> list[str]:
    """Rigid and malleable jobs separately: means over the seeds, and their intervals."""
    titles = [title for title, *_ in KINDS.values()]
    rows = [f"| log | policy | seeds | {' | '.join(titles)} |", "|---|---|---:|" + "---:|" * 8]
    for (log, policy), members in by_policy(runs).items():
        cells = [log, policy, str(len(members))]
        for key, (_, scale, digits) in KINDS.items():
            values = [scale * run[key] for run in members.values() if run.get(key) is not None]
            cells.append(with_interval(np.array(values), f".{digits}f"))
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def gains(runs: list[dict]) -> list[str]:
    """Gain (negative) or loss of rigid and malleable jobs against the first policy, by seed."""
    first = runs[0]["policy"]
    keys = [key for key in KINDS if key.startswith(("rigid", "malleable", "longest"))]
    titles = [KINDS[key][0].partition(", ")[0] + ", %" for key in keys]
    rows = [f"| log | policy | {' | '.join(titles)} |", "|---|---|" + "---:|" * len(keys)]
    groups = by_policy(runs)
    for (log, policy), members in groups.items():
        if policy == first:
            continue
        base = groups[log, first]
        cells = [log, policy]
        for key in keys:
            pairs = [(run.get(key), base[seed].get(key)) for seed, run in members.items()]
            known = np.array([pair for pair in pairs if None not in pair]).reshape(-1, 2)
            change = 100 * (known[:, 0] / known[:, 1] - 1)
            cells.append(with_interval(change, "+.1f"))
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def by_policy(runs: list[dict]) -> dict[tuple[str, str], dict[int, dict]]:
    """By log and policy: by seed."""
    found: dict[tuple[str, str], dict[int, dict]] = {}
    for run in runs:
        found.setdefault((run["scenario"], run["policy"]), {})[run["seed"]] = run
    return found


def with_interval(values: np.ndarray, digits: str) -> str:
    """A mean, and its interval if there are several values."""
    if not len(values):
        return "–"
    mean = f"{values.mean() + 0.0:{digits}}"
    if len(values) == 1:
        return mean
    low, high = interval(values)
    return f"{mean} [{low:{digits}}, {high:{digits}}]"


def main() -> None:
    """Measures, shows, writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--show", type=Path, help="only print the table of this file")
    parser.add_argument("--against", type=Path, help="only print differences by seed")
    parser.add_argument("--kinds", type=Path, help="only print rigid and malleable jobs separately")
    parser.add_argument("--gains", type=Path, help="only print the gain of each kind of job")
    parser.add_argument("--json", type=Path, help="write every figure here")
    parser.add_argument("--seeds", type=int, default=3, help="[%(default)s]")
    parser.add_argument("--first-seed", type=int, default=0, help="[%(default)s]")
    parser.add_argument("--plot", type=Path, help="plot the measures over the share")
    for name in PASSED:
        parser.add_argument(f"--{name}")
    parser.add_argument("--compare", type=Path, nargs=2, help="two such files, seed by seed")
    given = parser.parse_args()
    if given.show:
        print("\n".join(lines(json.loads(given.show.read_text())["summary"])))
        return
    if given.compare:
        mine, theirs = (json.loads(path.read_text())["runs"] for path in given.compare)
        print("\n".join(compared(mine, theirs)))
        return
    if given.against:
        print("\n".join(against(json.loads(given.against.read_text())["runs"])))
        return
    if given.kinds:
        print("\n".join(kinds(json.loads(given.kinds.read_text())["runs"])))
        return
    if given.gains:
        print("\n".join(gains(json.loads(given.gains.read_text())["runs"])))
        return
    runs: list[dict] = []
    for seed in range(given.first_seed, given.first_seed + given.seeds):
        found = measured(given, seed)
        runs += found.pop("runs")
        found["summary"] = summary(runs)
        if given.json:
            write(given.json, found, runs)
    print("\n".join(lines(found["summary"])))
    if given.plot:
        plot_elastic(given.plot, found["summary"])


def measured(given: argparse.Namespace, seed: int) -> dict:
    """All policies and shares with one seed."""
    command = [sys.executable, str(ROOT / "benchmarks" / "bench.py"), "elastic", "--json"]
    command += ["--seeds", "1", "--first-seed", str(seed)]
    for name in PASSED:
        if (value := getattr(given, name.replace("-", "_"))) is not None:
            command += [f"--{name}", value]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:  # it has reported the error on stderr
        sys.exit(done.returncode)
    found: dict = json.loads(done.stdout)
    return found


def write(path: Path, found: dict, runs: list[dict]) -> None:
    """Writes the file; after each seed, so that an interrupted run keeps its results."""
    rows = ",\n  ".join(json.dumps(run) for run in runs)
    rest = json.dumps({**about(), **found}, indent=1).removesuffix("\n}")
    path.write_text(f'{rest},\n "runs": [\n  {rows}\n ]\n}}\n')


if __name__ == "__main__":
    main()
