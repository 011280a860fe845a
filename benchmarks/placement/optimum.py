#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The distance from the optimum of every window over all node sets, by CP-SAT.

`optimum.py FILE.jsonl [--metric code] [--seconds 40] [--json OUT]`: for each window the cost of
`compact` after 5 ms and after many steps, the core's lower bound, and that which CP-SAT proves.
Windows that it cannot prove in time keep its bound.

The model: job j has k nodes under leaf switch s, or K under a pod, between 0 and the number that
fits, each with its square as value; the idle nodes of a switch are a limit. `compact`'s placement
is the hint.
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from ortools.sat.python import cp_model

sys.path.append(str(Path(__file__).resolve().parents[1]))

from about import about
from policy_bench.placement import PlacementWindow, hop_tree_for, read_instances

from bridge.errors import BridgeError
from bridge.model.hop_tree import HopTree, Metric, NodeSets
from bridge.policies.place.compact import Compact

STEPS = 20_000
HOPS = {
    Metric.PAPER: lambda levels: [2 * level + 2 for level in range(levels + 1)],
    Metric.CODE: lambda levels: [2 * level + 1 for level in range(levels + 1)],
}
UNIT = {Metric.PAPER: 1000.0, Metric.CODE: 500.0}
"""Per hop of an ordered pair; rounding down reduces a job's cost by less than 1."""


def main() -> None:
    """Solves all windows and reports the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("instances", type=Path)
    parser.add_argument("--metric", type=Metric, action="append", help="default: both")
    parser.add_argument("--seconds", type=float, default=40.0, help="for one window")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    instances = list(read_instances(options.instances))
    found = {
        str(metric): all_windows(instances, metric, options.seconds)
        for metric in options.metric or (Metric.CODE, Metric.PAPER)
    }
    if options.json:
        options.json.write_text(lines(found) + "\n")
    for metric, one in found.items():
        sums = one["totals"]
        print(f"{metric}: {one['proved']} of {len(instances)} proved; relative to sequential:")
        for key in ("compact_5ms", "compact_steps", "least", "proved_bound", "core_bound"):
            print(f"  {key:14} {sums[key] / sums['sequential']:.5f}")


def all_windows(instances: list[PlacementWindow], metric: Metric, seconds: float) -> dict[str, Any]:
    """Every window under one metric, and sums."""
    hop_tree = hop_tree_for(metric, None, instances)
    rows = []
    for number, one in enumerate(instances):
        rows.append(judged(hop_tree, metric, one, number, seconds))
        print(f"\r{metric}: {number + 1} of {len(instances)} windows", end="", file=sys.stderr)
    print(file=sys.stderr)
    return {
        **about(),
        "seconds": seconds,
        "proved": sum(row["proved"] for row in rows),
        "totals": {
            key: round(sum(row[key] for row in rows), 3)
            for key in rows[0]
            if key not in ("id", "proved")
        },
        "windows": rows,
    }


def lines(found: dict[str, Any]) -> str:
    """JSON with a line for each window."""
    parts = []
    for metric, one in found.items():
        head = json.dumps({key: value for key, value in one.items() if key != "windows"})
        rows = ",\n  ".join(json.dumps(row) for row in one["windows"])
        parts.append(f' "{metric}": {head[:-1]}, "windows": [\n  {rows}]}}')
    return "{\n" + ",\n".join(parts) + "\n}"


def judged(
    hop_tree: HopTree, metric: Metric, one: PlacementWindow, number: int, seconds: float
) -> dict[str, float | str]:
    """One window: the cost found, and a lower bound."""

    def cost(sets: NodeSets) -> float:
        return float(hop_tree.costs(sets).sum())

    rng = np.random.default_rng((1, number))
    quick = cost(Compact().place_jobs(hop_tree, one.idle, one.sizes, rng))
    sets = Compact(budget_ms=0, effort=STEPS).place_jobs(hop_tree, one.idle, one.sizes, rng)
    steps = cost(sets)
    began = time.monotonic()
    least, bound, proved = solved(hop_tree, metric, one, sets, seconds)
    return {
        "id": one.name,
        "sequential": cost(hop_tree.tree.sequential(one.idle, one.sizes)),
        "compact_5ms": quick,
        "compact_steps": steps,
        "least": least,
        "proved_bound": bound,
        "core_bound": hop_tree.tree.bound(hop_tree.metric, one.idle, one.sizes, 200, steps),
        "proved": proved,
        "solver_s": round(time.monotonic() - began, 2),
    }


def solved(
    hop_tree: HopTree, metric: Metric, one: PlacementWindow, hint: NodeSets, seconds: float
) -> tuple[float, float, bool]:
    """The minimum cost found, a lower bound, and whether they are equal."""
    parent = hop_tree.topology.parent
    leaf_of = hop_tree.topology.leaf_of_node
    idle = np.bincount(leaf_of[one.idle], minlength=len(parent))
    leaves = np.flatnonzero(idle).tolist()
    ancestors = {leaf: [leaf] for leaf in leaves}
    for path in ancestors.values():
        while parent[path[-1]] >= 0:
            path.append(int(parent[path[-1]]))
    level = hop_tree.tree.level
    hops, unit, floors = HOPS[metric](int(level.max())), UNIT[metric], metric is Metric.CODE
    model = cp_model.CpModel()
    terms, everywhere = [], []
    base = 0.0
    for j, n in enumerate(one.sizes.tolist()):
        held = np.bincount(leaf_of[hint[1][hint[0][j] : hint[0][j + 1]]], minlength=len(parent))
        factor = unit / n
        base += factor * (hops[-1] * n * n - hops[0] * n)
        counts = {}
        switches = sorted({switch for path in ancestors.values() for switch in path})
        for switch in switches:
            below = [leaf for leaf in leaves if switch in ancestors[leaf]]
            if parent[switch] < 0:
                continue  # holds the whole job
            most = min(n, int(idle[below].sum()))
            weight = int(hops[level[parent[switch]]] - hops[level[switch]])
            picks = [model.new_bool_var("") for _ in range(most + 1)]
            model.add_exactly_one(picks)
            counts[switch] = sum(k * pick for k, pick in enumerate(picks))
            here = int(held[below].sum())
            for k, pick in enumerate(picks):
                terms.append((-factor * weight * k * k, pick))
                model.add_hint(pick, k == here)
            if switch not in ancestors:
                model.add(counts[switch] == sum(counts[leaf] for leaf in below))
        model.add(sum(counts[leaf] for leaf in leaves) == n)
        everywhere.append(counts)
    for leaf in leaves:
        model.add(sum(counts[leaf] for counts in everywhere) <= int(idle[leaf]))
    model.minimize(sum(cost * pick for cost, pick in terms))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.relative_gap_limit = 1e-9
    status = solver.solve(model)
    bound = base + solver.best_objective_bound - (len(one.sizes) if floors else 0)
    known = float(hop_tree.costs(hint).sum())
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return known, bound, False
    found = base + solver.objective_value
    return min(known, found), bound, status == cp_model.OPTIMAL


if __name__ == "__main__":
    try:
        main()
    except BridgeError as error:
        sys.exit(f"optimum.py: {error}")
