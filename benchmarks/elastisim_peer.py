#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the simulator with ElastiSim: the same jobs under the same decisions, end by end.

Usage: benchmarks/elastisim_peer.py --elastisim BINARY --interface DIR [--policies NAME,...]
           [--shares P,...] [--seeds N] [--step S] [--json FILE] [--keep DIR]
       benchmarks/elastisim_peer.py --show FILE    only prints the table of this file

BINARY is ElastiSim's simulator (github.com/elastisim/elastisim, on SimGrid), DIR the checkout of
its Python interface (elastisim-python; it needs pyzmq, which is installed into a temporary
environment).

This program simulates ESP under a policy and records when each job got which nodes. ElastiSim then
simulates the same jobs, with the same speed-ups and the same duration of a change of width, under
the recorded decisions. It computes by itself how each job progresses, when a change takes effect
and when the job ends. Starts and ends should agree.

They cannot agree to the second. In ElastiSim a job changes its width only between two steps of its
phase (`--step`, seconds at its nominal width), as a real program does; in this project's simulator
it changes at once. Decisions that wait for a node wait until the next invocation, up to a second.
"""

import argparse
import json
import os
import resource
import subprocess
import tempfile
import time
import venv
from csv import DictReader
from pathlib import Path
from typing import Any

import numpy as np
from about import about

from bridge.cli.simulation.policies import read_policy
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.runs.simulation_result import SimulationResult
from bridge.lab.sim.workloads.change_costs import flat
from bridge.lab.sim.workloads.esp import esp
from bridge.lab.sim.workloads.speedup import Amdahl
from bridge.lab.sim.workloads.system import pool_of
from bridge.lab.sim.workloads.workload import Workload
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.registry import build
from bridge.safe_cycle.decider import Decider

SCHEDULER = Path(__file__).resolve().parent / "elastisim" / "scheduler.py"
INTERVAL_S = 1
CHANGE_S = 2
"""How long a job stands still when it changes its width, in both."""
PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="all" routing="Full">
    <zone id="control" routing="Full">
      <host id="batch" speed="1Gf"><prop id="batch_system" value="true"/></host>
    </zone>
    <cluster id="nodes" prefix="n" radical="0-{last}" suffix="" speed="1Gf" bw="100Gbps" lat="1us"/>
  </zone>
</platform>
"""
Decision = tuple[int, int, list[int]]


def main() -> None:
    """Runs both simulators and prints their differences."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elastisim", type=Path, help="its simulator")
    parser.add_argument("--interface", type=Path, help="its Python interface")
    parser.add_argument("--policies", default="easy,malleable-performance,malleable")
    parser.add_argument("--shares", default="0,50,100", help="percent of malleable jobs")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--step", type=float, default=1.0, help="length of a phase's step, s")
    parser.add_argument("--json", type=Path, help="write all figures to this file")
    parser.add_argument("--keep", type=Path, help="keep ElastiSim's files there")
    parser.add_argument("--show", type=Path, help="only print the table of this file")
    options = parser.parse_args()
    if options.show:
        print("\n".join([*HEAD, *map(line, json.loads(options.show.read_text())["runs"])]))
        return
    for name in ("elastisim", "interface"):
        path = getattr(options, name)
        if path is None or not path.exists():
            parser.error(f"--{name}: give the path of ElastiSim's, not {path}")
    runs = []
    with tempfile.TemporaryDirectory(prefix="elastisim-") as text:
        options.python = interpreter(Path(text))
        print("\n".join(HEAD), flush=True)
        for share in map(float, options.shares.split(",")):
            for name in options.policies.split(","):
                for seed in range(options.seeds):
                    home = (options.keep or Path(text)) / f"{name}-{share:g}-{seed}"
                    home.mkdir(parents=True, exist_ok=True)
                    runs.append(run(name, share, seed, home, options))
                    print(line(runs[-1]), flush=True)
    if options.json:
        rows = ",\n  ".join(json.dumps(row) for row in runs)
        rest = json.dumps({**about(), "step_s": options.step}, indent=1).removesuffix("\n}")
        options.json.write_text(f'{rest},\n "runs": [\n  {rows}\n ]\n}}\n')


HEAD = (
    "| policy | malleable, % | seed | resizes | same starts | difference of ends, s: median "
    "| p99 | most | makespan, % | mean response, % | CPU here, s | ElastiSim, s |",
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
)


def line(row: dict[str, Any]) -> str:
    """A run as a row of the table."""
    return (
        f"| {row['policy']} | {row['share']:g} | {row['seed']} | {row['resizes']} "
        f"| {100 * row['same_starts']:.1f} % | {row['end_s_median']:.1f} | {row['end_s_p99']:.1f} "
        f"| {row['end_s_most']:.1f} | {row['makespan_percent']:+.3f} "
        f"| {row['response_percent']:+.3f} | {row['here_cpu_s']:.1f} | {row['there_cpu_s']:.1f} |"
    )


def interpreter(home: Path) -> Path:
    """An environment with the requirements of ElastiSim's interface."""
    venv.create(home / "venv", with_pip=True)
    python = home / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "pyzmq"], check=True)
    return python


def run(
    name: str, share: float, seed: int, home: Path, options: argparse.Namespace
) -> dict[str, Any]:
    """One workload under one policy, in both simulators."""
    workload = esp(share, seed=seed, changes=flat(CHANGE_S))
    began_s = time.process_time()
    outcome, decisions = decided(name, workload)
    here_cpu_s = time.process_time() - began_s
    write_input(home, workload, decisions, options.step)
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    start_s, end_s = simulated(home, options)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    there_cpu_s = sum(getattr(ended, key) - getattr(began, key) for key in ("ru_utime", "ru_stime"))
    ours = outcome.schedule
    late_s = np.abs(end_s - ours.end_s)
    response_s, theirs_s = (
        float((ends - workload.submit_s).mean()) for ends in (ours.end_s, end_s)
    )
    return {
        "policy": name,
        "share": share,
        "seed": seed,
        "jobs": len(workload),
        "resizes": len(decisions) - len(workload),
        "same_starts": float((np.abs(start_s - ours.start_s) < 0.5).mean()),
        "start_s_most": float(np.abs(start_s - ours.start_s).max()),
        "end_s_median": float(np.median(late_s)),
        "end_s_p99": float(np.percentile(late_s, 99)),
        "end_s_most": float(late_s.max()),
        "makespan_percent": 100 * float(end_s.max() / ours.end_s.max() - 1),
        "response_percent": 100 * (theirs_s / response_s - 1),
        "here_cpu_s": here_cpu_s,
        "there_cpu_s": there_cpu_s,
    }


def decided(name: str, workload: Workload) -> tuple[SimulationResult, list[Decision]]:
    """Our simulation, and when each job was given which nodes."""
    decider = Decider(build(read_policy(name)))
    decisions: list[Decision] = []

    def decide(snapshot: Snapshot) -> Plan:
        plan = decider.decide(snapshot)
        for row in np.flatnonzero(plan.start_s == snapshot.now_s).tolist():
            nodes = plan.nodes[plan.indptr[row] : plan.indptr[row + 1]]
            at = int(snapshot.jobs.id[plan.job[row]]) - 1
            decisions.append((snapshot.now_s, at, nodes.tolist()))
        for row in range(len(plan.resizes)):
            at = int(snapshot.running.id[plan.resizes.job[row]]) - 1
            decisions.append((snapshot.now_s, at, plan.resizes.nodes_of(row).tolist()))
        return plan

    outcome = simulate(workload, pool_of(workload.processors_total), decide)
    if outcome.refusals:
        raise RuntimeError(f"refused: {outcome.refusals[0]}")
    return outcome, decisions


def write_input(home: Path, workload: Workload, decisions: list[Decision], step_s: float) -> None:
    """ElastiSim's input: platform, jobs, one application, configuration; and the decisions."""
    widths = workload.malleable
    assert widths is not None
    jobs = []
    for at in range(len(workload)):
        serial = widths.speedup[at]
        assert isinstance(serial, Amdahl)
        nominal = int(widths.nominal[at])
        steps = round(int(workload.runtime_s[at]) / step_s)
        # Also rigid jobs: the policy's decisions name their nodes, and never change them.
        jobs.append(
            {
                "type": "malleable",
                "submit_time": int(workload.submit_s[at]),
                "walltime": 0,
                "num_nodes_min": 1,
                "num_nodes_max": workload.processors_total,
                "application_model": str(home / "application.json"),
                "arguments": {
                    "steps": steps,
                    "nominal_s": float(workload.runtime_s[at]) / steps * serial.at(nominal),
                    "serial": serial.serial,
                    "parallel": 1.0 - serial.serial,
                },
            }
        )
    step = {"type": "idle", "delay": "nominal_s*(serial+parallel/num_nodes)", "pattern": "uniform"}
    pause = {"type": "idle", "delay": str(CHANGE_S), "pattern": "uniform"}
    application = {
        "on_reconfiguration": {"tasks": [pause]},
        "phases": [{"iterations": "steps", "tasks": [step]}],
    }
    configuration = {
        "jobs_file": str(home / "jobs.json"),
        "platform_file": str(home / "platform.xml"),
        "zmq_url": f"ipc://{home}/socket",
        "schedule_on_job_submit": True,
        "schedule_on_job_finalize": True,
        "scheduling_interval": INTERVAL_S,
        "sensing": False,
        "show_progress_bar": False,
        "job_statistics": str(home / "statistics.csv"),
        "node_utilization": str(home / "nodes.csv"),
    }
    texts = {
        "platform.xml": PLATFORM.format(last=workload.processors_total - 1),
        "jobs.json": json.dumps({"jobs": jobs}),
        "application.json": json.dumps(application),
        "configuration.json": json.dumps(configuration),
        "decisions.json": json.dumps(decisions),
    }
    for name, text in texts.items():
        (home / name).write_text(text)


def simulated(home: Path, options: argparse.Namespace) -> tuple[Any, Any]:
    """ElastiSim's run: start and end of every job, s."""
    scheduler = subprocess.Popen(
        [options.python, SCHEDULER, home / "decisions.json", f"ipc://{home}/socket"],
        env={**os.environ, "PYTHONPATH": str(options.interface)},
    )
    try:
        with (home / "log").open("w") as log:
            subprocess.run(
                [options.elastisim, home / "configuration.json", "--log=root.thresh:error"],
                check=True,
                stdout=log,
                stderr=log,
            )
        scheduler.wait(60)
    finally:
        scheduler.kill()
    with (home / "statistics.csv").open() as file:
        rows = sorted(DictReader(file, skipinitialspace=True), key=lambda row: int(row["ID"]))
    return tuple(np.array([float(row[key]) for row in rows]) for key in ("Start Time", "End Time"))


if __name__ == "__main__":
    main()
