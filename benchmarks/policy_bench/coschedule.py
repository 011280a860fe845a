# SPDX-License-Identifier: Apache-2.0
"""`bench.py coschedule`: the experiment of ASA_X in simulation, beside its Table 3.

The workload is that of `bridge.lab.sim.workloads.coscheduling_paper`: sets of 15 workflows, the
next one submitted `GAP_S` after the last job of the one before has ended. Policies keep what they
have learnt from set to set. For a seed all policies get the same jobs; only the begins of sets
differ.

Measures of a run
    wait_h, response_h  means over all jobs, h.
    makespan_h          mean over the sets: from submission to the last end, h.
    cpu_percent         CPU time used over cores * makespan, all sets together; memory_percent
                        likewise.
    slower_percent      run time beyond that alone: mean of all jobs; by workflow in `workflows`.
    runtimes_h          mean run time of each workflow, h.
    host_mean_percent   slowdown of the hosts by their guests; host_p95_percent: what 95 % of the
                        hosts do not exceed.
    above_bound_percent share of the hosts slowed down by more than 10 % of their whole run.
    above_s_mean        for how long hosts worked more than 10 % slower than alone, s: mean of those
                        that did so at any time; above_s_p95 likewise.
    overrun_percent     share of the jobs that ran beyond their time limit; hosts_overrun_percent:
                        of the hosts that did because of their guests.
    hosts, guests, requeued  numbers.
    pairs               for each guest whose host was no guest itself: workflows of host and guest,
                        and the slowdown of the whole run of the host, %.
    repeats             wait, response, makespan and slower_percent of each set: the learning curve.
    failures, refusals  cycles that the policy failed, and decisions that the controller refused;
                        both should be 0.

`summary` holds means over the seeds and 95 % intervals, as in `policy_bench.elastic`.
`paper` holds the paper's Table 3, with the lost +- signs restored.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from bridge.cli.bundled import bundled
from bridge.cli.simulation.policies import read_policy
from bridge.cli.simulation.sharing import EVERYWHERE
from bridge.errors import ConfigError
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.runs.sharing_measures import BOUND, sharing_measures
from bridge.lab.sim.runs.simulation_result import SimulationResult
from bridge.lab.sim.sharing.interference import Interference, read_interference
from bridge.lab.sim.workloads.coscheduling_paper import (
    CORES,
    MAX_CORES,
    SET,
    WORKFLOWS,
    paper_model,
    paper_sets,
    paper_system,
)
from bridge.measures import turnaround_s, wait_s
from bridge.model.policy import PolicySpec
from bridge.planning.site_rules.rules_text import parse_site
from bridge.registry import build
from bridge.safe_cycle.decider import Decider
from policy_bench.elastic import interval

GAP_S: Final = 60
ORIGIN_S: Final = 1_400_000_000
SUMMARISED: Final = (
    "wait_h", "response_h", "makespan_h", "cpu_percent", "memory_percent", "slower_percent",
    "host_mean_percent", "host_p95_percent", "above_bound_percent", "above_s_mean", "above_s_p95",
    "overrun_percent", "hosts_overrun_percent",
)  # fmt: skip
PAPER: Final = tuple(
    {"policy": policy, "cores": cores, "wait_h": wait, "cpu_percent": cpu, "response_h": response}
    for policy, rows in (
        ("easy", ((64, 3.5, 53, 4.4), (128, 1.5, 45, 2.4), (256, 0.5, 32, 1.4))),
        ("static-half", ((64, 1.7, 90, 4.8), (128, 0.8, 92, 2.8), (256, 0.3, 89, 2.0))),
        ("asax", ((64, 1.8, 82, 3.5), (128, 1.0, 84, 2.0), (256, 0.3, 83, 0.9))),
    )
    for cores, wait, cpu, response in rows
)
"""Table 3; `easy` stands for its Slurm, which shared no nodes."""


@dataclass(frozen=True)
class SharingCase:
    """What is simulated."""

    policy: PolicySpec
    cores: int
    seed: int


def model_of(path: Path | None) -> Interference:
    """The interference model in a file, or the bundled one.

    Raises:
        ConfigError: the file is wrong, or lacks one of the workflows.
    """
    found = read_interference(bundled(path or Path("interference.json")))
    paper_model(found, CORES[0])
    return found


def cases(policies: str, cores: str, seeds: Sequence[int]) -> list[SharingCase]:
    """All combinations, seed by seed.

    Raises:
        ConfigError: there is no such policy or cluster, one is named twice, or a policy resizes
            jobs.
    """
    specs = [read_policy(each.strip()) for each in policies.split(",")]
    for spec in specs:
        if spec.reshape.name != "none":
            raise ConfigError("policies", f"{spec.name} resizes jobs, and here no job is malleable")
    sizes = [_cores(each.strip()) for each in cores.split(",")]
    named: tuple[tuple[str, list[str]], ...] = (
        ("policies", [spec.name for spec in specs]),
        ("cores", [str(size) for size in sizes]),
    )
    for key, names in named:
        if twice := [name for name in names if names.count(name) > 1]:
            raise ConfigError(key, f"{twice[0]} is listed twice")
    for size in sizes:
        paper_system(size)
    return [SharingCase(spec, size, seed) for seed in seeds for size in sizes for spec in specs]


def _cores(text: str) -> int:
    """A number of cores; 0, of which there is no cluster: it is none, or too large."""
    return int(text) if text.isdecimal() and len(text) <= len(str(MAX_CORES)) else 0


def run_case(model: Interference, case: SharingCase, repeats: int) -> dict[str, Any]:
    """All sets of one seed under one policy: the case, and its measures.

    The begin of a set is known only when the one before has ended. So with each further set, all
    sets are simulated again from the first one, with the same result.
    """
    system, model = paper_system(case.cores), paper_model(model, case.cores)
    site = parse_site({"coscheduling": [dict(EVERYWHERE)]})
    begins_s = [ORIGIN_S]
    while True:
        workload = paper_sets(system, model, seed=case.seed, begins_s=begins_s)
        decider = Decider(build(case.policy), seed=case.seed, site=site)
        outcome = simulate(workload, system, decider.decide)
        if len(begins_s) == repeats:
            return {
                "policy": case.policy.name,
                "cores": case.cores,
                "seed": case.seed,
                **_measures(outcome, begins_s),
                "failures": decider.failures,
                "refusals": len(outcome.refusals),
            }
        begins_s.append(int(outcome.schedule.end_s.max()) + GAP_S)


def _measures(outcome: SimulationResult, begins_s: Sequence[int]) -> dict[str, Any]:
    schedule, workload, log = outcome.schedule, outcome.workload, outcome.sharing
    assert log is not None
    assert workload.sharing is not None
    found = sharing_measures(outcome)
    ran_s = schedule.end_s - schedule.start_s
    slower = ran_s / workload.runtime_s - 1
    slower_by = (log.lost_s / workload.runtime_s).tolist()
    span_s = schedule.end_s.reshape(-1, SET).max(axis=1) - np.array(begins_s)
    cores, nodes = outcome.system.processors, len(outcome.system.nodes)
    memory_s = float((log.memory_s * np.diff(outcome.indptr)).sum())
    names = workload.sharing.interference.applications
    kind = workload.sharing.application
    waits_s, responses_s = wait_s(schedule), turnaround_s(schedule)
    return {
        "wait_h": _hours(waits_s.mean()),
        "response_h": _hours(responses_s.mean()),
        "makespan_h": _hours(span_s.mean()),
        "cpu_percent": round(100 * float(log.cpu_s.sum()) / (cores * int(span_s.sum())), 2),
        "memory_percent": round(100 * memory_s / (nodes * int(span_s.sum())), 2),
        "slower_percent": round(100 * float(slower.mean()), 2),
        "host_mean_percent": round(100 * found["host_slowdown"]["mean"], 2),
        "host_p95_percent": round(100 * found["host_slowdown"]["p95"], 2),
        "above_bound_percent": round(100 * found["above_bound"], 2),
        "above_s_mean": round(found["above_s"]["mean"], 1),
        "above_s_p95": round(found["above_s"]["p95"], 1),
        "overrun_percent": round(100 * found["overrun"], 2),
        "hosts_overrun_percent": round(100 * found["hosts_overrun"], 2),
        "hosts": found["hosts"],
        "guests": found["guests"],
        "requeued": found["requeued"],
        "pairs": [
            [names[kind[host]].name, names[kind[guest]].name, round(100 * slower_by[host], 2)]
            for guest, host in enumerate(log.host.tolist())
            if host >= 0 and log.host[host] < 0
        ],
        "workflows": {
            names[number].name: round(100 * float(slower[kind == number].mean()), 2)
            for number in range(len(WORKFLOWS))
        },
        "runtimes_h": {
            names[number].name: _hours(ran_s[kind == number].mean())
            for number in range(len(WORKFLOWS))
        },
        "repeats": [
            {
                "wait_h": _hours(waits_s[part].mean()),
                "response_h": _hours(responses_s[part].mean()),
                "makespan_h": _hours(span_s[number]),
                "slower_percent": round(100 * float(slower[part].mean()), 2),
            }
            for number, part in enumerate(np.arange(len(workload)).reshape(-1, SET))
        ],
    }


def _hours(seconds: float) -> float:
    return round(float(seconds) / 3600, 4)


def summary(runs: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each size and policy: the mean of each measure, and its interval."""
    groups: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for run in runs:
        groups.setdefault((run["cores"], run["policy"]), []).append(run)
    return [
        {
            "cores": cores,
            "policy": policy,
            "seeds": len(members),
            **{key: _summed([run[key] for run in members]) for key in SUMMARISED},
            **{
                key: {name: _summed([run[key][name] for run in members]) for name in WORKFLOWS}
                for key in ("workflows", "runtimes_h")
            },
            "repeats": [
                {
                    key: _summed([run["repeats"][number][key] for run in members])
                    for key in members[0]["repeats"][number]
                }
                for number in range(len(members[0]["repeats"]))
            ],
        }
        for (cores, policy), members in groups.items()
    ]


def _summed(values: Sequence[float]) -> dict[str, Any]:
    column = np.array(values, dtype=np.float64)
    return {"mean": round(float(column.mean()), 3), "interval": interval(column)}


def lines(found: Sequence[dict[str, Any]]) -> list[str]:
    """A summary as a Markdown table, with the paper's figures in brackets."""
    paper = {(row["cores"], row["policy"]): row for row in PAPER}
    rows = [
        "| cores | policy | wait, h (paper) | response, h (paper) | CPU, % (paper) | memory, % "
        f"| makespan, h | slower, % | hosts above {BOUND:.0%} | overrun |",
        "|---:|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for entry in found:
        theirs = paper.get((entry["cores"], entry["policy"]), {})
        cells = [str(entry["cores"]), entry["policy"]]
        for key, digits in (
            ("wait_h", 2), ("response_h", 2), ("cpu_percent", 1), ("memory_percent", 1),
            ("makespan_h", 2), ("slower_percent", 1),
        ):  # fmt: skip
            low, high = (f"{bound:.{digits}f}" for bound in entry[key]["interval"])
            beside = f" ({theirs[key]:g})" if key in theirs else ""
            cells.append(f"{entry[key]['mean']:.{digits}f} [{low}, {high}]{beside}")
        cells += [
            f"{entry[key]['mean']:.1f} %" for key in ("above_bound_percent", "overrun_percent")
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return rows
