# SPDX-License-Identifier: Apache-2.0
"""`malleable` with and without learnt speed-ups, on ESP with applications that scale differently.

Usage: benchmarks/elastic_learning.py [--seeds N] [--shares P,...] [--json FILE]

Every type of ESP is an application with its own serial fraction, drawn from the seed between 0 and
`MOST_SERIAL`; jobs of a type differ from it by up to `APART`. "measured": jobs report their time in
MPI while they run, on two nodes or more; "unmeasured": none does, so that only run times can be
used for learning.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
from about import about
from policy_bench.elastic import ElasticCase, interval, run_case
from results_file import write

from bridge.lab.sim.workloads.esp import esp
from bridge.lab.sim.workloads.speedup import Amdahl
from bridge.lab.sim.workloads.workload import Workload
from bridge.model.policy import PolicySpec
from bridge.registry import parse_policy

MOST_SERIAL, APART = 0.5, 0.2
MEASURES = ("makespan_s", "wait_s", "response_s")


def policy(*, learn: bool) -> PolicySpec:
    """`malleable`, with or without learning."""
    spec = parse_policy({"preset": "malleable", "reshape": {"name": "malleable", "learn": learn}})
    return replace(spec, name="learning" if learn else "assuming")


def workload(share: float, seed: int, *, measured: bool) -> Workload:
    """ESP with applications that scale differently."""
    found = esp(share, seed=seed)
    rng = np.random.default_rng(seed)
    of_type = rng.uniform(0.0, MOST_SERIAL, int(found.executable.max()) + 1)
    own = of_type[found.executable] * rng.uniform(1 - APART, 1 + APART, len(found))
    widths = found.malleable
    assert widths is not None
    # A negative factor makes every measurement an unknown one.
    misread = None if measured else np.full(len(found), -1.0)
    speedup = np.array([Amdahl(float(part)) for part in own], dtype=object)
    return replace(found, malleable=replace(widths, speedup=speedup, misread=misread))


def compare(share: float, seeds: int, *, measured: bool) -> list[dict]:
    """Both policies on the same jobs, seed by seed."""
    name = "measured" if measured else "unmeasured"

    def drawn(share: float, seed: int) -> Workload:
        return workload(share, seed, measured=measured)

    return [
        run_case(name, drawn, ElasticCase(policy(learn=learn), share, seed))
        for seed in range(seeds)
        for learn in (False, True)
    ]


def lines(runs: list[dict]) -> list[str]:
    """The change by learning in percent of the mean without it, as a Markdown table."""
    rows = [
        "| time in MPI | malleable, % | makespan, % | mean wait, % | mean response, % "
        "| resizes, % |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for kind, share in dict.fromkeys((run["scenario"], run["share"]) for run in runs):
        mine = [run for run in runs if (run["scenario"], run["share"]) == (kind, share)]
        cells = [kind, f"{share:g}"]
        for key in (*MEASURES, "resizes"):
            before, after = (
                np.array([run[key] for run in mine if run["policy"] == name], dtype=np.float64)
                for name in ("assuming", "learning")
            )
            change = 100 * (after - before) / before.mean()
            low, high = interval(change)
            cells.append(f"{change.mean():+.1f} [{low:+.1f}, {high:+.1f}]")
        rows.append("| " + " | ".join(cells) + " |")
    return rows


def main() -> None:
    """Runs all, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--shares", default="50,100")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    runs = [
        run
        for measured in (True, False)
        for share in given.shares.split(",")
        for run in compare(float(share), given.seeds, measured=measured)
    ]
    if given.json is not None:
        write(given.json, {**about(), "runs": runs})
    print("\n".join(lines(runs)))


if __name__ == "__main__":
    main()
