#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""All placers on the same windows, under both metrics, with a bound: `lab bench placement`.

`windows.py [FILE.jsonl] [--solvers SECONDS] [--json OUT]`: without a file the bundled sample.
`--solvers` adds the paper's 0-1 program by CP-SAT and by SCIP, each with this time limit per
window, as independent checks of `contiguous-exact`. If the windows of the file state a `cost` by
name, as the bundled ones do, exact matches are counted.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from contiguous_program import BySolver, by_cp_sat, by_scip

sys.path.append(str(Path(__file__).resolve().parents[1]))

from about import about
from policy_bench import placement as bench
from results_file import write

from bridge.errors import BridgeError
from bridge.model.hop_tree import Metric

NAMES = (
    "sequential", "annealing-published@500", "annealing@500", "annealing-published@1000",
    "annealing@1000", "neural@500", "contiguous-exact", "compact@5",
)  # fmt: skip
RECORDED = {"sequential": "sequential", "contiguous-exact": "scas_optimum"}
"""Placer to the name of its cost in the file, under the metric `code`."""


SOLVERS = {"contiguous-cp-sat": by_cp_sat, "contiguous-scip": by_scip}


def main() -> None:
    """Measures, writes, and prints a table for each metric."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", nargs="?", type=Path, default=bench.SAMPLE)
    parser.add_argument("--solvers", type=int, default=0, help="seconds for a window; 0: none")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    asked = parser.parse_args()
    names = [name for name in NAMES if name.partition("@")[0] in bench.PLACERS]
    placers = bench.parse_placers(",".join(names))
    for solver, solve in SOLVERS.items() if asked.solvers else ():
        placers[f"{solver}@{asked.solvers}"] = BySolver(solve, float(asked.solvers)).place_jobs
    try:
        instances = list(bench.read_instances(asked.file))
    except BridgeError as error:
        sys.exit(f"windows.py: {error}")
    lines = filter(str.strip, asked.file.read_text().splitlines())
    stated = [json.loads(line).get("cost", {}) for line in lines]
    result: dict[str, Any] = {"windows": len(instances)}
    for metric in Metric:
        hop_tree = bench.hop_tree_for(metric, None, instances)
        measured = bench.measure(hop_tree, instances, placers, seed=asked.seed, bound=True)
        rows = measured["results"]
        totals: dict[str, Any] = measured["figures"]
        for name in placers:
            spent = np.array([row[name]["ms"] for row in rows])
            totals[name]["ms_p99"] = round(float(np.percentile(spent, 99)), 3)
            totals[name]["at_optimum"] = sum(
                row[name]["cost"] is not None
                and abs(row[name]["cost"] - row["contiguous-exact"]["cost"]) < 1e-3
                for row in rows
            )
        if metric is Metric.CODE:
            for name, known in RECORDED.items():
                totals[name]["as_recorded"] = sum(
                    row[name]["cost"] == cost.get(known)
                    for row, cost in zip(rows, stated, strict=True)
                )
        totals["compact@5"]["above_contiguous"] = sum(
            row["compact@5"]["cost"] > row["contiguous-exact"]["cost"] + 1e-3 for row in rows
        )
        result[metric.value] = totals
        print(_table(metric, totals, len(rows)), flush=True)
    if asked.json:
        write(asked.json, about() | result)
        print(f"written to {asked.json}", file=sys.stderr)


def _table(metric: Metric, totals: dict[str, Any], count: int) -> str:
    lines = [
        f"Metric `{metric.value}`, {count} windows:",
        "",
        "| placer | cost | to sequential | at the contiguous optimum | ms: mean | 99 % | most |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, row in totals.items():
        cells = [name, f"{row['cost']:,.0f}", f"{row['to_first']:.4f}"]
        if "ms_mean" in row:
            cells += [str(row["at_optimum"])]
            cells += [f"{row[key]:.3f}" for key in ("ms_mean", "ms_p99", "ms_max")]
        else:
            cells += ["–"] * 4
        lines.append("| " + " | ".join(cells) + " |")
    notes = [
        f"{name}: {row['as_recorded']} of {count} cost what the file says"
        for name, row in totals.items()
        if "as_recorded" in row
    ]
    above = totals["compact@5"]["above_contiguous"]
    notes.append(f"compact@5: {above} above contiguous-exact")
    return "\n".join([*lines, "", *notes, ""])


if __name__ == "__main__":
    main()
