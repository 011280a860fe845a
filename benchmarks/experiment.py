# SPDX-License-Identifier: Apache-2.0
"""How well `lab experiment` uses two cores: the whole command against its cells' own time.

    python benchmarks/experiment.py --out benchmarks/results/experiment.json

Runs the command on 100 cells (two policies, 50 seeds of ties, the first jobs of the bundled trace,
the cycle engine) with two workers, and once more when all cells are kept. `ideal_s` is the sum of
the cells' times over two; `over_ideal` what the command takes beyond it, everything included:
Python, Dask's processes, keeping results. A measurement of time: nothing else may run.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from about import about
from results_file import as_text, write

from bridge.lab.experiments.results import read_all

ROOT = Path(__file__).parents[1]
TRACE = ROOT / "bridge/lab/sim/data/KTH-SP2-1996-excerpt.swf.gz"
WORKERS = 2


def plan(folder: Path, seeds: int, jobs: int) -> Path:
    """The file of the experiment."""
    path = folder / "plan.yaml"
    path.write_text(
        f"results: kept\npolicies: [easy, conservative]\nengine: cycle\nseeds: {seeds}\n"
        f"perturbations: [ties]\ntraces: [{{file: {TRACE}, jobs: {jobs}}}]\n"
    )
    return path


def timed(path: Path) -> tuple[float, dict[str, object]]:
    """Duration of the command, s, and what it says."""
    command = ["-m", "bridge.cli.main", "lab", "experiment", str(path), "--workers", str(WORKERS)]
    began_s = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *command, "--json"], stdout=subprocess.PIPE, text=True, check=True
    )
    return time.perf_counter() - began_s, json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=1000, help="of the trace, in each cell")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path = plan(Path(name), given.seeds, given.jobs)
        took_s, said = timed(path)
        again_s, _ = timed(path)
        results = [result for result, _ in read_all(Path(name) / "kept")]
    ideal_s = sum(result.wall_s for result in results) / WORKERS
    found = {
        **about(),
        "workers": WORKERS,
        "jobs": given.jobs,
        "cells": len(results),
        "failed": said["failed"],
        "command_s": round(took_s, 2),
        "ideal_s": round(ideal_s, 2),
        "over_ideal": round(took_s / ideal_s - 1, 4),
        "ideal_cpu_s": round(sum(result.cpu_s for result in results) / WORKERS, 2),
        "all_kept_s": round(again_s, 2),
    }
    if given.out is not None:
        write(given.out, found)
    print(as_text(found))


if __name__ == "__main__":
    main()
