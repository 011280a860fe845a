# SPDX-License-Identifier: Apache-2.0
"""`bench.py elastic`: policies for malleable jobs on one workload, at several shares.

A scenario is `esp` (`bridge.lab.sim.workloads.esp`) or a trace in which a share of the jobs is made
malleable (`bridge.lab.sim.workloads.malleable_jobs`). All policies get the same jobs: order, choice
and speed-ups depend on scenario, share and seed only.

Measures of a run
    makespan_s, utilization, wait_s, response_s, throughput_per_h, longest_wait_s
                        as in `bridge.measures`; mean wait and mean response.
    rigid_wait_s, rigid_slowdown, malleable_wait_s, malleable_slowdown
                        means of the two kinds of jobs; bounded slowdown. None: there are none.
    rigid_wait_p95_s    the wait that 95 % of the rigid jobs do not exceed.
    kept_first, kept_last
                        share of announced starts that were kept, by the first and the last
                        announcement; None: none was announced.
    resizes             changes of width.
    failures            cycles that the policy failed, which should be 0.
    decision_ms         mean.

`summary` holds the mean over the seeds and a 95 % interval of it: percentile bootstrap, `RESAMPLES`
resamples of the seeds, the same for all policies.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bridge.cli.simulation.policies import read_policy
from bridge.errors import ConfigError
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.workloads.change_costs import parse_change_cost
from bridge.lab.sim.workloads.esp import ESP_NODES, esp
from bridge.lab.sim.workloads.malleable_jobs import with_malleable
from bridge.lab.sim.workloads.speedup import parse_speedup
from bridge.lab.sim.workloads.swf import read_swf
from bridge.lab.sim.workloads.system import pool_of
from bridge.lab.sim.workloads.workload import Workload, workload_from
from bridge.measures import bounded_slowdown, measure, turnaround_s, wait_s
from bridge.model.plan import Plan
from bridge.model.policy import PolicySpec
from bridge.model.snapshot import Snapshot
from bridge.registry import build
from bridge.safe_cycle.decider import Decider

RESAMPLES: Final = 2000
SUMMARISED: Final = ("makespan_s", "utilization", "wait_s", "response_s", "throughput_per_h")


@dataclass(frozen=True)
class ElasticCase:
    """A workload to simulate."""

    policy: PolicySpec
    share: float
    seed: int


Scenario = Callable[[float, int], Workload]
"""The workload for a share in percent and a seed."""


def scenario_of(
    text: str,
    *,
    nodes: int | None,
    jobs: int | None,
    mtct_error: float,
    speed_up: str | None = None,
    change_cost: str = "join",
) -> tuple[str, Scenario]:
    """A scenario and its name.

    Args:
        text: `esp`, or the file of a trace.
        nodes: size of the machine; None: 32, or as the trace's header says.
        jobs: only the first ones; None: all.
        mtct_error: see `bridge.lab.sim.workloads.esp.esp`.
        speed_up: a model (`bridge.lab.sim.workloads.speedup`); None: drawn for each job.
        change_cost: see `bridge.lab.sim.workloads.change_costs.parse_change_cost`.

    Raises:
        ConfigError, TraceError: there is no such file, or no job of it fits.
    """
    speedup = None if speed_up is None else parse_speedup(speed_up)
    given: dict[str, Any] = {
        "mtct_error": mtct_error, "speedup": speedup, "changes": parse_change_cost(change_cost),
    }  # fmt: skip
    if not 0 <= mtct_error < 10:
        raise ConfigError("mtct-error", f"must be 0 or more and less than 10, not {mtct_error:g}")
    if text == "esp":
        size = nodes or ESP_NODES
        esp(0, nodes=size)

        def drawn(share: float, seed: int) -> Workload:
            return _first(esp(share, nodes=size, seed=seed, **given), jobs)

        return "esp", drawn
    path = Path(text)
    whole = _first(workload_from(read_swf(path), nodes), jobs)

    def made(share: float, seed: int) -> Workload:
        return with_malleable(whole, share, seed=seed, **given)

    return path.name.removesuffix(".gz").removesuffix(".swf"), made


def _first(workload: Workload, jobs: int | None) -> Workload:
    return workload if jobs is None else workload.first(jobs)


def percentages(key: str, text: str) -> list[float]:
    """Shares in percent, separated by commas.

    Raises:
        ConfigError: one of them is not a percentage.
    """
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = [-1.0]
    if not all(0 <= share <= 100 for share in found):
        raise ConfigError(key, f"'{text:.40}': give percentages from 0 to 100, separated by commas")
    return list(dict.fromkeys(found))


def cases(policies: str, shares: Sequence[float], seeds: Sequence[int]) -> list[ElasticCase]:
    """All combinations, seed by seed.

    Raises:
        ConfigError: there is no such policy, or one is named twice.
    """
    specs = [read_policy(each.strip()) for each in policies.split(",")]
    names = [spec.name for spec in specs]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigError("policies", f"{min(twice)} is listed twice")
    return [ElasticCase(spec, share, seed) for seed in seeds for share in shares for spec in specs]


def run_case(name: str, scenario: Scenario, case: ElasticCase) -> dict[str, Any]:
    """One simulation: the case, and its measures."""
    workload = scenario(case.share, case.seed)
    decider = Decider(build(case.policy), seed=case.seed)
    resizes = 0

    def decide(snapshot: Snapshot) -> Plan:
        nonlocal resizes
        plan = decider.decide(snapshot)
        resizes += len(plan.resizes)
        return plan

    outcome = simulate(workload, pool_of(workload.processors_total), decide)
    schedule = outcome.schedule
    found = measure(schedule, outcome.decision_ms)
    starts = outcome.starts.accuracy()
    waits_s, slow = wait_s(schedule), bounded_slowdown(schedule)
    assert workload.malleable is not None
    malleable = workload.malleable.max_nodes > 0
    return {
        "scenario": name,
        "policy": case.policy.name,
        "share": case.share,
        "seed": case.seed,
        "makespan_s": found.makespan_s,
        "utilization": round(found.utilization, 5),
        "wait_s": _mean(waits_s),
        "response_s": _mean(turnaround_s(schedule)),
        "throughput_per_h": round(len(workload) * 3600 / max(found.makespan_s, 1), 3),
        "longest_wait_s": float(waits_s.max()),
        "rigid_wait_s": _mean(waits_s[~malleable]),
        "rigid_wait_p95_s": _percentile(waits_s[~malleable], 95),
        "rigid_slowdown": _mean(slow[~malleable]),
        "malleable_wait_s": _mean(waits_s[malleable]),
        "malleable_slowdown": _mean(slow[malleable]),
        "kept_first": _share(starts.first.kept),
        "kept_last": _share(starts.last.kept),
        "resizes": resizes,
        "failures": decider.failures,
        "decision_ms": round(float(outcome.decision_ms.mean()), 3),
    }


def _mean(column: NDArray[Any]) -> float | None:
    return round(float(column.mean()), 2) if len(column) else None


def _percentile(column: NDArray[Any], percent: float) -> float | None:
    return round(float(np.percentile(column, percent)), 2) if len(column) else None


def _share(share: float | None) -> float | None:
    return None if share is None else round(share, 5)


def summary(runs: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each policy and share: the mean of each measure, and its interval."""
    groups: dict[tuple[str, str, float], list[dict[str, Any]]] = {}
    for run in runs:
        groups.setdefault((run["scenario"], run["policy"], run["share"]), []).append(run)
    found = []
    for (scenario, policy, share), members in groups.items():
        entry: dict[str, Any] = {
            "scenario": scenario,
            "policy": policy,
            "share": share,
            "seeds": len(members),
        }
        for key in SUMMARISED:
            values = np.array([member[key] for member in members], dtype=np.float64)
            entry[key] = {"mean": float(f"{values.mean():.6g}"), "interval": interval(values)}
        found.append(entry)
    return found


def interval(values: NDArray[np.float64]) -> list[float]:
    """The 95 % interval of the mean, by percentile bootstrap."""
    drawn = np.random.default_rng(0).integers(0, len(values), (RESAMPLES, len(values)))
    low, high = np.percentile(values[drawn].mean(axis=1), [2.5, 97.5])
    return [float(f"{low:.6g}"), float(f"{high:.6g}")]


_TITLES: Final = {
    "makespan_s": ("makespan, s", 1.0, 0),
    "utilization": ("utilisation, %", 100.0, 1),
    "wait_s": ("mean wait, s", 1.0, 0),
    "response_s": ("mean response, s", 1.0, 0),
    "throughput_per_h": ("jobs an hour", 1.0, 1),
}


def lines(found: Sequence[dict[str, Any]]) -> list[str]:
    """A summary as a Markdown table, a line for each share and policy."""
    titles = [title for title, *_ in _TITLES.values()]
    rows = [
        "| malleable, % | policy | " + " | ".join(titles) + " |",
        "|---:|---|" + "---:|" * len(titles),
    ]
    for entry in sorted(found, key=lambda one: float(one["share"])):
        cells = [f"{entry['share']:g}", entry["policy"]]
        for key, (_, scale, digits) in _TITLES.items():
            low, high = (f"{scale * bound:,.{digits}f}" for bound in entry[key]["interval"])
            cells.append(f"{scale * entry[key]['mean']:,.{digits}f} [{low}, {high}]")
        rows.append("| " + " | ".join(cells) + " |")
    return rows
