#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The TJAP paper's experiment: tables III and IV, and figure 6, compared with the paper's figures.

`experiment.py [--part tables,lengths] [--metric code,paper] [--json FILE] [--plot FILE.svg]`

- tables: windows of ten epochs, each placed by all placers; some of them by SCIP, too. SCIP takes
  half a minute and more for a window: by default two windows an epoch are solved (`--solve`).
- lengths: windows every 10 to 60 s against first come first served and EASY, through the cycle and
  the simulator of the product.

The metric `code` is that of the public code and of the paper's tables: hops 1, 3, 5, pods of 40
nodes; `paper` is that of the paper's text: hops 2, 4, 6, pods of 100. The file keeps its results of
parts and metrics that are not run. Costs are the same on any machine, except for the column
`compact-5ms`, which has a time limit; seconds are not.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import experiment_report
import window_lengths
import window_tables

sys.path.append(str(Path(__file__).resolve().parents[1]))

from about import about
from results_file import write

from bridge.model.hop_tree import Metric

RESULTS = Path(__file__).parents[1] / "results"
PARTS = ("tables", "lengths")


def main() -> None:
    """Runs the requested parts, and prints the tables of all results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", default="tables,lengths", help="none: only print and plot")
    parser.add_argument("--metric", default="code,paper")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--windows", type=int, default=100, help="of an epoch, of the tables")
    parser.add_argument("--jobs", type=int, default=300, help="of an epoch, of the lengths")
    parser.add_argument("--solve", type=int, default=2, help="windows of an epoch that SCIP solves")
    parser.add_argument("--limit-s", type=float, default=30.0, help="SCIP's time limit")
    parser.add_argument(
        "--cap-s", type=float, default=0.0, help="where nothing was proved, again; 0: to the end"
    )
    parser.add_argument(
        "--driver", help="the column that goes on; default: nsa-500, or sa-500 without a network"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--resume", action="store_true", help="lengths: go on with the next epoch")
    parser.add_argument("--json", type=Path, default=RESULTS / "placement-experiment.json")
    parser.add_argument("--plot", type=Path, default=RESULTS / "placement-experiment.svg")
    parser.add_argument("--show", type=Path, help="only print the tables of this file")
    asked = parser.parse_args()
    if asked.show:
        print(experiment_report.markdown(json.loads(asked.show.read_text())))
        return
    parts = [part for part in asked.part.split(",") if part != "none"]
    if unknown := set(parts) - set(PARTS):
        parser.error(f"--part: {', '.join(sorted(unknown))}: there are {', '.join(PARTS)}")
    try:
        metrics = [Metric(name) for name in asked.metric.split(",")]
    except ValueError as error:
        parser.error(f"--metric: {error}; there are {', '.join(Metric)}")
    driver = asked.driver or ("nsa-500" if "nsa-500" in window_tables.columns() else "sa-500")
    if driver not in window_tables.columns():
        parser.error(f"--driver: {driver}: there are {', '.join(window_tables.columns())}")
    result = json.loads(asked.json.read_text()) if asked.json.exists() else {}
    for metric in metrics:
        for part in parts:
            _run(asked, metric, part, driver, result)
    print(experiment_report.markdown(result))
    experiment_report.plot(result, asked.plot)


def _run(
    asked: argparse.Namespace, metric: Metric, part: str, driver: str, result: dict[str, Any]
) -> None:
    """Runs one part; writes the results after each step."""
    own: dict[str, Any] = result.setdefault(metric.value, {})

    def tell(text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def save() -> None:
        write(asked.json, result)

    if part == "tables":
        own["tables"] = window_tables.run(
            metric,
            epochs=asked.epochs,
            count=asked.windows,
            solve=asked.solve,
            limit_s=asked.limit_s,
            cap_s=asked.cap_s,
            seed=asked.seed,
            driver=driver,
            tell=tell,
        )
        own["tables"] |= {**about(), "limit_s": asked.limit_s, "cap_s": asked.cap_s}
        save()
        return
    setting = {"jobs": asked.jobs, "seed": asked.seed}
    known = own.get("lengths", {})
    done = known["epochs"] if asked.resume and setting.items() <= known.items() else []
    for number in range(len(done), asked.epochs):
        row = {}
        steps = window_lengths.epoch(metric, number, n_jobs=asked.jobs, seed=asked.seed)
        for method, row[method] in steps:
            tell(f"{metric.value}, epoch {number + 1}, {method}: {row[method]}")
        done.append(row)
        own["lengths"] = {
            **about(),
            **setting,
            "epochs": done,
            "mean": window_lengths.mean(done),
        }
        save()


if __name__ == "__main__":
    main()
