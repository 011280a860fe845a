#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Waiting for few leaf switches: its gain in hops, and its cost in time.

`waiting.py [--case paper,kth] [--wait 0,60,300] [--traces DIR] [--json FILE] [--plot FILE.svg]`:
each case is simulated under EASY backfilling and `compact`; every job of possibly several nodes
waits up to this many seconds for the minimum number of leaf switches (`topology: {wait_s: ...}`).
0 is `prefer`: no job waits. Results that the file already has are not simulated again.

Cases
    paper   the TJAP paper's stream on 1,000 nodes: 10 on a leaf switch, 100 in a pod.
    kth     the log of KTH-SP2 (100 nodes) below made-up leaf switches of 16.

Hops of a pair are 2 below one leaf switch and 2 more for each level above; a job's are the mean
over its pairs, and the tables' the mean over all jobs of two nodes or more. `compact` is bounded by
steps, not by the clock, so the same figures come out on any machine.
"""

import argparse
import json
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from paper_stream import draw, workload

sys.path.append(str(Path(__file__).resolve().parents[1]))

from about import about
from results_file import write

from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.runs.simulation_result import SimulationResult
from bridge.lab.sim.workloads.swf import read_swf
from bridge.lab.sim.workloads.system import System, pool_of
from bridge.lab.sim.workloads.workload import Workload, workload_from
from bridge.measures import bounded_slowdown, wait_s
from bridge.model.hop_tree import HopTree
from bridge.model.topology import regular
from bridge.registry import build, parse_policy
from bridge.safe_cycle.decider import Decider

RESULTS = Path(__file__).parents[1] / "results"
DOCS = Path(__file__).parents[2] / "docs"
WAITS_S = (0, 60, 300, 900, 3600, 14400)
POLICY = {
    "order": "fcfs",
    "plan": "easy",
    "place": {"name": "compact", "budget_ms": 0, "effort": 100},
}
LOG = "KTH-SP2-1996-2.1-cln.swf.gz"
TITLES = {"paper": "the paper's stream", "kth": "KTH-SP2"}


def prepared(case: str, traces: Path, n_jobs: int | None) -> tuple[Workload, System]:
    """Jobs and machine of a case."""
    if case == "paper":
        workload, levels = stream(n_jobs or 2000), (10, 100)
    else:
        workload, levels = workload_from(read_swf(traces / LOG)), (16,)
        workload = workload.first(n_jobs) if n_jobs else workload
    system = pool_of(workload.processors_total)
    return workload, replace(system, topology=regular(len(system.nodes), *levels))


def stream(n_jobs: int, seed: int = 1) -> Workload:
    """The paper's stream, starting at second 0."""
    drawn = draw(np.random.default_rng(seed), n_jobs)
    return workload(replace(drawn, submit_s=1 + drawn.submit_s))


def measured(workload: Workload, system: System, patience_s: int) -> dict[str, Any]:
    """The figures of one simulation."""
    decider = Decider(build(parse_policy(POLICY)))
    outcome = simulate(workload, replace(system, wait_s=patience_s), decider.decide)
    assert decider.failures == 0, "every plan is legal"
    assert system.topology is not None
    hop_tree = HopTree.of(system.topology)
    width = np.diff(outcome.indptr)
    several = width > 1
    cost = hop_tree.costs((outcome.indptr, outcome.nodes))[several]
    few, leaves = on_leaves(outcome, hop_tree.topology.leaf_of_node)
    waited = wait_s(outcome.schedule)
    return {
        "wait_s": patience_s,
        "jobs": len(workload),
        "of_several_nodes": int(several.sum()),
        "hops_of_a_pair": float((cost / (1000 * (width[several] - 1))).mean()),
        "cost_of_a_job": float(cost.mean()),
        "leaf_switches": float(leaves[several].mean()),
        "on_fewest": float(few[several].mean()),
        "mean_wait_s": float(waited.mean()),
        "mean_wait_of_several_s": float(waited[several].mean()),
        "mean_bounded_slowdown": float(bounded_slowdown(outcome.schedule).mean()),
        "last_end_s": int(outcome.schedule.end_s.max() - outcome.schedule.submit_s.min()),
        "decision_ms": float(outcome.decision_ms.mean()),
    }


def on_leaves(
    outcome: SimulationResult, leaf: NDArray[np.int32]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Which jobs use as few leaf switches as an idle machine allows, and how many each uses."""
    largest = np.cumsum(np.sort(np.bincount(leaf))[::-1])
    few, count = [], []
    for begin, end in pairwise(outcome.indptr.tolist()):
        count.append(len(np.unique(leaf[outcome.nodes[begin:end]])))
        few.append(count[-1] <= 1 + int(np.searchsorted(largest, end - begin)))
    return np.array(few, dtype=bool), np.array(count, dtype=np.int64)


def table(cases: dict[str, list[dict[str, Any]]]) -> str:
    """Markdown."""
    lines = [
        "| jobs | waits for, s | hops of a pair | fewest leaf switches | mean wait, s "
        "| of several nodes, s | bounded slowdown | all done after, h |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for case, rows in cases.items():
        for row in rows:
            lines.append(
                f"| {TITLES[case]}, {row['jobs']:,} | {row['wait_s']:,} "
                f"| {row['hops_of_a_pair']:.3f} "
                f"| {row['on_fewest']:.1%} | {row['mean_wait_s']:,.0f} "
                f"| {row['mean_wait_of_several_s']:,.0f} | {row['mean_bounded_slowdown']:.1f} "
                f"| {row['last_end_s'] / 3600:,.1f} |"
            )
    return "\n".join(lines)


def plot(cases: dict[str, list[dict[str, Any]]], file: Path) -> None:
    """Hops against waits, one curve per case."""
    import matplotlib as mpl  # noqa: PLC0415  only for a plot

    mpl.use("Agg")
    mpl.rcParams["svg.hashsalt"] = "waiting"
    from matplotlib import pyplot as plt  # noqa: PLC0415

    figure, several = plt.subplots(1, len(cases), figsize=(4.4 * len(cases), 3.6), squeeze=False)
    for axes, (case, rows) in zip(several[0], cases.items(), strict=True):
        hops = [row["hops_of_a_pair"] for row in rows]
        waits = [row["mean_wait_s"] for row in rows]
        axes.plot(waits, hops, marker="o", color="#3b6ea5")
        for row, at in zip(rows, zip(waits, hops, strict=True), strict=True):
            axes.annotate(
                f"{row['wait_s']:,} s", at, xytext=(5, 4), textcoords="offset points", fontsize=8
            )
        axes.set_title(TITLES[case], loc="left", fontsize=10)
        axes.set_xlabel("mean wait, s")
        axes.set_ylabel("hops of a pair")
        axes.margins(x=0.15)
        axes.grid(alpha=0.3)
    figure.tight_layout()
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    """Simulates what is missing, and shows all results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", default="paper,kth", help="none: only print and plot")
    parser.add_argument("--wait", default=",".join(map(str, WAITS_S)), help="seconds")
    parser.add_argument("--jobs", type=int, help="the first ones only")
    parser.add_argument("--traces", type=Path, default=Path("traces"), help="where the log is")
    parser.add_argument("--json", type=Path, default=RESULTS / "placement-waiting.json")
    parser.add_argument("--plot", type=Path, default=DOCS / "waiting.svg")
    asked = parser.parse_args()
    cases = [case for case in asked.case.split(",") if case != "none"]
    if unknown := set(cases) - set(TITLES):
        parser.error(f"--case: {', '.join(sorted(unknown))}: there are {', '.join(TITLES)}")
    found: dict[str, list[dict[str, Any]]] = {}
    if asked.json.exists():
        found = json.loads(asked.json.read_text())
    for case in cases:
        workload, system = prepared(case, asked.traces, asked.jobs)
        for patience_s in map(int, asked.wait.split(",")):
            rows = found.setdefault(case, [])
            if any((row["wait_s"], row["jobs"]) == (patience_s, len(workload)) for row in rows):
                continue
            rows.append(measured(workload, system, patience_s) | about())
            rows.sort(key=lambda row: row["wait_s"])
            print(f"{case}: {rows[-1]}", file=sys.stderr, flush=True)
            write(asked.json, found)
    print(table(found))
    if found:
        plot(found, asked.plot)


if __name__ == "__main__":
    main()
