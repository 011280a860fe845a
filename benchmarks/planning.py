#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the OpenCCS paper's figures for the book, and its table of shared nodes.

    benchmarks/planning.py [--repeats N] [--jobs N]  > planning.json

policy_bench/planning.py describes the measurements. The system's figures are measured in a
separate process each time (memory does not shrink); all of them are printed, the table once, with
`plan_nodes` in the same run. Prints JSON on standard output.
"""

import argparse
import json
import subprocess
import sys

from about import ROOT, about
from results_file import as_text

COMMAND = [sys.executable, str(ROOT / "benchmarks" / "bench.py"), "planning", "--json"]


def run(*options: str) -> dict[str, object]:
    done = subprocess.run([*COMMAND, *options], check=True, stdout=subprocess.PIPE)
    result = json.loads(done.stdout)
    assert isinstance(result, dict)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=15_000)
    chosen = parser.parse_args()
    if chosen.repeats < 1:
        parser.error("--repeats must be 1 or more")
    jobs = ("--jobs", str(chosen.jobs))
    first = run(*jobs)
    table = first.pop("table")
    runs = [first]
    for _ in range(chosen.repeats - 1):
        again = run(*jobs, "--no-table")
        again.pop("table")
        runs.append(again)
    print(as_text({**about(), "runs": runs, "table": table}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
