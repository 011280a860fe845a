#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the simulator with AccaSim, that of the dispatching papers: same jobs, same EASY.

`accasim_peer.py TRACE [--procs N] [--jobs N] [--rounds N] [--json FILE]` installs AccaSim from the
Python package index into a temporary environment, replays the trace in both, and prints JSON.

| run | is |
|---|---|
| accasim shipped | AccaSim with its own EASYBackfilling |
| accasim textbook | AccaSim with the two rules of EASY (`benchmarks/accasim/run_accasim.py`) |
| fast | `schedbridge lab simulate --engine fast`: the whole trace in the C++ kernel |
| cycle | `--engine cycle`: snapshot, plan, check and reasons at every event, as the service does |

Times are those of the replay alone, without reading the trace and starting Python; AccaSim reads
its trace while it runs. All runs are repeated in turn; times are medians of the rounds, and
`cpu_s_of_rounds` has them all. On a shared machine, compare CPU times. Both get the same jobs,
cleaned by the rules of `bridge.lab.sim.workloads.workload`.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import numpy as np
from about import about
from results_file import write

from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.runs.replay import replay
from bridge.lab.sim.workloads.swf import Field, read_swf, write_swf
from bridge.lab.sim.workloads.system import pool_of
from bridge.lab.sim.workloads.workload import Workload, workload_from
from bridge.measures import ExecutedSchedule, measure
from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider

VERSION = "1.1.3"
DRIVER = Path(__file__).resolve().parent / "accasim" / "run_accasim.py"


def main() -> None:
    """Runs everything and prints the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace", type=Path)
    parser.add_argument("--procs", type=int)
    parser.add_argument("--jobs", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="also write the result to this file")
    options = parser.parse_args()
    if options.rounds < 1:
        parser.error("--rounds must be 1 or more")
    workload = workload_from(read_swf(options.trace), options.procs).first(options.jobs)
    load = os.getloadavg()
    with tempfile.TemporaryDirectory(prefix="accasim-") as text:
        home = Path(text)
        python = install(home)
        trace = home / "jobs.swf"
        write_plain(trace, workload)
        rounds = [one_round(python, trace, workload, home) for _ in range(options.rounds)]
    result = {
        "trace": options.trace.name,
        "jobs": len(workload),
        "processors": workload.processors_total,
        "accasim": VERSION,
        **about(),
        "load_before": [round(value, 2) for value in load],
        "rounds": options.rounds,
        "runs": compared(workload, list(map(middle, zip(*rounds, strict=True)))),
    }
    print(json.dumps(result, indent=2))
    if options.json:
        write(options.json, result)


def one_round(python: Path, trace: Path, workload: Workload, home: Path) -> list[dict[str, object]]:
    """Every run once."""
    peers = [run_peer(python, trace, workload, which, home) for which in ("shipped", "textbook")]
    return [*peers, run_fast(workload), run_cycle(workload)]


def middle(repeated: tuple[dict[str, object], ...]) -> dict[str, object]:
    """One run with the median times of its repetitions, which start every job alike."""
    first = repeated[0]
    for other in repeated[1:]:
        assert np.array_equal(np.asarray(other["start_s"]), np.asarray(first["start_s"]))
    times = {key: [float(str(one[key])) for one in repeated] for key in ("wall_s", "cpu_s")}
    medians = {key: statistics.median(values) for key, values in times.items()}
    return {**first, **medians, "cpu_s_of_rounds": [round(value, 4) for value in times["cpu_s"]]}


class Watch:
    """Wall-clock and CPU time since its creation."""

    def __init__(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def spent(self) -> dict[str, float]:
        """Both, in s."""
        wall, cpu = self._began
        return {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}


def install(home: Path) -> Path:
    """Creates an environment with AccaSim; returns its Python."""
    venv.create(home / "venv", with_pip=True)
    python = home / "venv" / "bin" / "python"
    command = [python, "-m", "pip", "install", "-q", f"accasim=={VERSION}"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"AccaSim cannot be installed: {done.stderr.strip().splitlines()[-1]}")
    return python


def write_plain(path: Path, workload: Workload) -> None:
    """The jobs in AccaSim's format, numbered by their rows."""
    columns = np.full((len(workload), 18), -1.0)
    columns[:, Field.JOB] = np.arange(1, len(workload) + 1)
    columns[:, Field.SUBMIT_S] = workload.submit_s
    columns[:, Field.RUNTIME_S] = workload.runtime_s
    columns[:, Field.ALLOCATED_PROCESSORS] = workload.processors
    columns[:, Field.REQUESTED_PROCESSORS] = workload.processors
    columns[:, Field.REQUESTED_TIME_S] = workload.time_limit_s
    columns[:, Field.STATUS] = 1
    write_swf(path, (), columns)


def run_peer(
    python: Path, trace: Path, workload: Workload, which: str, home: Path
) -> dict[str, object]:
    """One run of AccaSim in a separate process."""
    work = Path(tempfile.mkdtemp(prefix=which, dir=home))
    command = [python, DRIVER, trace, str(workload.processors_total), which, work]
    # Otherwise AccaSim would read the user's settings.
    done = subprocess.run(
        [str(part) for part in command], check=False, capture_output=True, text=True
    )
    if done.returncode:
        sys.exit(f"AccaSim ({which}) failed: {done.stderr.strip().splitlines()[-1]}")
    found = json.loads(done.stdout.strip().splitlines()[-1])
    start_s = np.full(len(workload), -1, dtype=np.int64)
    for number, at_s in found["start_s"].items():
        start_s[int(number) - 1] = at_s
    if (start_s < 0).any():
        sys.exit(f"AccaSim ({which}) never started {int((start_s < 0).sum())} jobs")
    spent = {key: found[key] for key in ("wall_s", "cpu_s")}
    return {"run": f"accasim {which}", "start_s": start_s, **spent}


def run_fast(workload: Workload) -> dict[str, object]:
    """The kernel's replay."""
    watch = Watch()
    outcome = replay(workload, pool_of(workload.processors_total), 1)
    return {"run": "fast", **watch.spent(), "start_s": outcome.schedule.start_s}


def run_cycle(workload: Workload) -> dict[str, object]:
    """The real cycle at every event."""
    decide = Decider(build(PRESETS["easy"])).decide
    watch = Watch()
    outcome = simulate(workload, pool_of(workload.processors_total), decide)
    return {"run": "cycle", **watch.spent(), "start_s": outcome.schedule.start_s}


def compared(workload: Workload, runs: list[dict[str, object]]) -> list[dict[str, object]]:
    """Quality of each run, its starts compared with `fast`, and the speed-up of `fast`."""
    ours = next(run for run in runs if run["run"] == "fast")
    entries = []
    for run in runs:
        start_s = np.asarray(run["start_s"])
        schedule = ExecutedSchedule(
            workload.processors_total,
            workload.submit_s,
            start_s,
            start_s + workload.runtime_s,
            workload.processors,
        )
        found = measure(schedule, np.zeros(0))
        entries.append(
            {
                "run": run["run"],
                "wall_s": round(float(str(run["wall_s"])), 4),
                "cpu_s": round(float(str(run["cpu_s"])), 4),
                "cpu_s_of_rounds": run["cpu_s_of_rounds"],
                "times_fast_cpu": round(float(str(run["cpu_s"])) / float(str(ours["cpu_s"])), 1),
                "wait_s_mean": round(found.wait_s.mean, 1),
                "bounded_slowdown_mean": round(found.bounded_slowdown.mean, 2),
                "other_starts_than_fast": int((start_s != np.asarray(ours["start_s"])).sum()),
            }
        )
    return entries


if __name__ == "__main__":
    main()
