#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the planning kernels over sizes of queue and system.

    benchmarks/plan_kernel.py [--repeats N] [--quick]  > plan_kernel.json

Every case of `bench.py plan` (bench.py describes them):
clustered and log-uniform queues, 1,000 to 100,000 jobs, 1,000 and 10,000 nodes, a reservation for
every job; and shared nodes for up to 10,000 jobs. `--quick` leaves out cases of more than a second.
Prints JSON on standard output and a table on standard error.
"""

import argparse
import sys

from about import about
from bench import measure
from policy_bench.workloads import QueueShape
from results_file import as_text

from bridge.core import UNLIMITED

WHOLE = ["counts", "map", "whole_nodes"]
KERNELS = [*WHOLE, "shared_nodes"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="only what takes under a second")
    chosen = parser.parse_args()
    if chosen.repeats < 1:
        parser.error("--repeats must be 1 or more")
    print(f"{'':26}" + "".join(f"{kernel:>14}" for kernel in KERNELS) + "  ms", file=sys.stderr)
    cases = []
    for shape in QueueShape:
        for nodes in (1_000, 10_000):
            for jobs in (1_000, 10_000) if chosen.quick else (1_000, 10_000, 100_000):
                shared = jobs <= (1_000 if chosen.quick else 10_000)
                kernels = KERNELS if shared else WHOLE
                case = measure(
                    shape=shape,
                    jobs=jobs,
                    nodes=nodes,
                    depth=UNLIMITED,
                    seed=1,
                    kernels=kernels,
                    repeats=chosen.repeats,
                )
                cases.append(case)
                figures = "".join(f"{case[f'{kernel}_ms']:>14,.2f}" for kernel in kernels)
                print(f"{shape:<10}{jobs:>8,}{nodes:>8,}{figures}", file=sys.stderr, flush=True)
    result = {**about(), "repeats": chosen.repeats, "cases": cases}
    print(as_text(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
