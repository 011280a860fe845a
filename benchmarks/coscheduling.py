# SPDX-License-Identifier: Apache-2.0
"""Policies for jobs that share nodes, in simulations: the experiment of ASA_X, and whole logs.

Usage: benchmarks/coscheduling.py [--policies NAMES] [--seeds N] [--cores LIST] [--json FILE]
       benchmarks/coscheduling.py LOG.swf.gz ... [--policies NAMES] [--seeds N] [--jobs N]
                                                 [--json FILE]
       (both: --add goes on with FILE, which is written after each simulation)
       benchmarks/coscheduling.py --show FILE [--table NAME]
       benchmarks/coscheduling.py --plot FILE      # FILE.svg: the paper's Figures 3a and 3b;
                                                   # FILE-curve.svg: the learning curve

Without a log it is `lab bench coschedule`. Of a log the first N jobs are replayed on a pool
of as many nodes as the machine had processors; 10, 30 and 50 % of the jobs consent to be host and
guest, by chance, and run applications of the bundled interference model
(`bridge.lab.sim.sharing.setting`). Jobs may run beyond their time limit. Tables of the experiment:
experiment, workflows, curve, harm, pairs; of logs: traces, and gains relative to `easy`.
"""

import argparse
import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from about import ROOT, about
from coscheduling_bench.curve_figure import plot as plot_curve
from coscheduling_bench.paper_figures import plot
from coscheduling_bench.simulated_table import TABLES, lines, traces
from policy_bench import coschedule as bench
from results_file import write

from bridge.cli.simulation.policies import read_policy
from bridge.cli.simulation.sharing import EVERYWHERE
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.runs.sharing_measures import sharing_measures
from bridge.lab.sim.sharing.interference import read_interference
from bridge.lab.sim.sharing.setting import sharing_of
from bridge.lab.sim.workloads.swf import read_swf
from bridge.lab.sim.workloads.system import pool_of
from bridge.lab.sim.workloads.workload import workload_from
from bridge.measures import bounded_slowdown, makespan_s, turnaround_s, wait_s
from bridge.planning.site_rules.rules_text import parse_site
from bridge.registry import build
from bridge.safe_cycle.decider import Decider

CONSENT_PERCENT = (10, 30, 50)
MODEL = ROOT / "bridge" / "lab" / "sim" / "data" / "interference.json"


def replay(log: Path, policy: str, consent: int, jobs: int, seed: int) -> dict[str, Any]:
    """One simulation of a log."""
    workload = workload_from(read_swf(log)).first(jobs)
    sharing = sharing_of(
        read_interference(MODEL), workload.executable, workload.user,
        consent_percent=consent, seed=seed,
    )  # fmt: skip
    workload = replace(workload, sharing=sharing)
    site = parse_site({"coscheduling": [dict(EVERYWHERE)]})
    decider = Decider(build(read_policy(policy)), seed=seed, site=site)
    system = pool_of(workload.processors_total).with_shared_nodes()
    outcome = simulate(workload, system, decider.decide)
    schedule, found = outcome.schedule, sharing_measures(outcome)
    return {
        "log": log.name.split(".")[0],
        "policy": policy,
        "consent_percent": consent,
        "seed": seed,
        "jobs": len(workload),
        "wait_s": round(float(wait_s(schedule).mean()), 1),
        "bounded_slowdown": round(float(bounded_slowdown(schedule).mean()), 2),
        "response_s": round(float(turnaround_s(schedule).mean()), 1),
        "makespan_s": makespan_s(schedule),
        "cpu_percent": round(100 * found["cpu_use"], 2),
        "guests": found["guests"],
        "pair_h": found["pair_h"],
        "host_mean_percent": round(100 * found["host_slowdown"]["mean"], 2),
        "host_p95_percent": round(100 * found["host_slowdown"]["p95"], 2),
        "above_bound_percent": round(100 * found["above_bound"], 2),
        "above_s_mean": round(found["above_s"]["mean"], 1),
        "above_s_p95": round(found["above_s"]["p95"], 1),
        "overrun_percent": round(100 * found["overrun"], 2),
        "hosts_overrun_percent": round(100 * found["hosts_overrun"], 2),
        "requeued": found["requeued"],
        "failures": decider.failures,
        "refusals": len(outcome.refusals),
        "decision_ms": round(float(outcome.decision_ms.mean()), 2),
    }


def main() -> None:
    """Simulates, or shows a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("logs", type=Path, nargs="*")
    parser.add_argument("--policies", default="easy,static-half,asax,pairs")
    parser.add_argument("--seeds", type=int, help="number [20; of logs 1]")
    parser.add_argument("--cores", default="64,128,256", help="of the experiment")
    parser.add_argument("--repeats", type=int, default=3, help="sets of the experiment [3]")
    parser.add_argument("--jobs", type=int, default=5000, help="of each log [5000]")
    parser.add_argument("--seed", type=int, default=0, help="the first one of logs [0]")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--add", action="store_true", help="keep the simulations in FILE")
    parser.add_argument("--show", type=Path, metavar="FILE", help="show these figures")
    parser.add_argument("--plot", type=Path, metavar="FILE",
                        help="draw the experiment in this file, as SVG beside it")  # fmt: skip
    parser.add_argument("--table", default="experiment", choices=TABLES)
    options = parser.parse_args()
    if options.show:
        print("\n".join(lines(json.loads(options.show.read_text()), options.table)))
        return
    if options.plot:
        found, path = json.loads(options.plot.read_text()), options.plot
        plot(found, path.with_suffix(".svg"))
        plot_curve(found, path.with_name(f"{path.stem}-curve.svg"))
        return
    if options.add and not options.json:
        parser.error("--add needs --json FILE")
    runs: list[dict[str, Any]] = []
    if options.add and options.json.exists():
        runs = json.loads(options.json.read_text())["runs"]
    result: dict[str, Any] = {}
    for run in _log_runs(options, runs) if options.logs else _experiment_runs(options, runs):
        runs.append(run)
        result = {**about(), "runs": runs}
        if not options.logs:
            result |= {"summary": bench.summary(runs), "paper": list(bench.PAPER)}
        if options.json:
            write(options.json, result)
    if result:
        print("\n".join(lines(result, "traces" if options.logs else "experiment")))


def _log_runs(
    options: argparse.Namespace, done: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    known = {
        (run["log"], run["consent_percent"], run["policy"], run.get("seed", 0)) for run in done
    }
    seeds = range(options.seed, options.seed + (options.seeds or 1))
    cases = itertools.product(seeds, options.logs, CONSENT_PERCENT, options.policies.split(","))
    for seed, log, consent, policy in cases:
        if (log.name.split(".")[0], consent, policy, seed) not in known:
            run = replay(log, policy, consent, options.jobs, seed)
            print(traces([run])[-1], file=sys.stderr)
            yield run


def _experiment_runs(
    options: argparse.Namespace, done: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    known, model = (
        {(run["policy"], run["cores"], run["seed"]) for run in done},
        bench.model_of(None),
    )
    for case in bench.cases(options.policies, options.cores, range(options.seeds or 20)):
        if (case.policy.name, case.cores, case.seed) not in known:
            print(case.policy.name, case.cores, case.seed, file=sys.stderr)
            yield bench.run_case(model, case, options.repeats)


if __name__ == "__main__":
    main()
