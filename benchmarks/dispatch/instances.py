#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Regenerates the instances of `schedbridge lab compare`: `instances.py TRACES [--out DIR]`.

TRACES is a directory with logs of the Parallel Workloads Archive; missing logs are reported and
left out. The same logs give the same instances, because all random values are seeded.
"""

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUNDLED = HERE.parents[1] / "bridge" / "lab" / "sim" / "data" / "instances"

STREAMS = [
    # system, seed, load, least queue, every Nth cycle, how many, predictor
    ("eurora", 1, 0.7, 10, 120, 5, "last-two"),
    ("eurora", 2, 0.8, 20, 120, 5, "last-two"),
    ("eurora", 3, 0.9, 50, 120, 4, "time-limit"),
    ("eurora", 4, 1.1, 150, 120, 4, "oracle"),
    ("kit", 1, 0.8, 10, 120, 4, "last-two"),
    ("kit", 2, 0.9, 20, 120, 4, "last-two"),
    ("kit", 3, 1.1, 60, 120, 4, "oracle"),
]
LOGS = [
    # log, options, least queue, every Nth cycle, how many
    ("KTH-SP2-1996-2.1-cln", [], 15, 400, 5),
    ("SDSC-SP2-1998-4.2-cln", ["--jobs", "20000"], 20, 800, 5),
    ("CTC-SP2-1996-3.1-cln", ["--procs", "338", "--jobs", "20000"], 25, 800, 5),
    (
        "METACENTRUM-wagap-2013",
        ["--system", str(HERE.parent / "systems" / "METACENTRUM-wagap-2013-used.yaml")],
        10,
        100,
        5,
    ),
]


def main() -> int:
    """Records everything; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traces", type=Path)
    parser.add_argument("--out", type=Path, default=BUNDLED)
    options = parser.parse_args()
    for system, seed, load, queue, every, cycles, predictor in STREAMS:
        source = ["--system", system, "--seed", str(seed), "--load", str(load)]
        source += ["--predict", predictor]
        record(options.out / system, source, queue, every, cycles)
    code = 0
    for name, more, queue, every, cycles in LOGS:
        path = options.traces / f"{name}.swf.gz"
        if not path.exists():
            print(f"{path} is not there: left out", file=sys.stderr)
            code = 1
            continue
        record(options.out / "traces", ["--trace", str(path), *more], queue, every, cycles)
    return code


def record(out: Path, source: list[str], queue: int, every: int, cycles: int) -> None:
    """Runs the command, which reports its errors itself."""
    command = ["schedbridge", "lab", "record", "--out", str(out), *source, "--policy", "easy"]
    command += ["--min-queue", str(queue), "--every", str(every), "--cycles", str(cycles)]
    subprocess.run(command, check=True)
    for path in out.iterdir():
        path.chmod(0o644)  # not confidential: synthetic, or public


if __name__ == "__main__":
    sys.exit(main())
