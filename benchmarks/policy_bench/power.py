# SPDX-License-Identifier: Apache-2.0
"""`bench.py power`: policies in a corridor of power, on one workload over seeds.

A scenario is `power-paper` (`bridge.lab.sim.corridor.paper`) or a trace with a corridor. All
policies get the same jobs, whose draw depends on scenario and seed only.

Policies
    static      static backfill (conservative) that does not know of the corridor.
    hold        the same, under the bounds in force: starts that would exceed them are held.
    scenario-2, scenario-3
                `malleable-power` that chooses widths of running jobs only, or starts jobs, too.
    others      presets and files. All but the first two know the bounds in force and announced
                ones, unless a name is followed by `@nothing`, `@present` or `@announced`.

Measures of a run
    makespan_s, wait_s, response_s, energy_kwh, energy_delay_js, mean_w, peak_w
                        as in `bridge.measures` and `bridge.extensions.power.measures`; mean wait
                        and response.
    violations          times that the corridor, of both bounds, was not restored within the grace,
                        as the paper counts them; seconds and watt_seconds: theirs after the grace.
    avoidable, avoidable_s
                        of them, those that a configuration would have avoided; None: not judged.
    upper_s, lower_s    seconds outside of each bound, without the grace.
    unfinished          jobs that never ended.
    resizes, failures, refusals, decision_ms
                        changes of width, failed cycles, refused decisions, mean time of one.

`summary` holds the mean over the seeds and a 95 % interval of it (`policy_bench.elastic`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from bridge.cli.simulation.policies import read_policy
from bridge.errors import ConfigError
from bridge.extensions.power.measures import Violations
from bridge.lab.sim.corridor.power import PowerSetting
from bridge.lab.sim.corridor.sight import Sight, under_corridor
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.runs.power_options import (
    POWER_PAPER,
    PowerOptions,
    measured,
    paper_workload,
    powered,
)
from bridge.lab.sim.runs.simulation_result import SimulationResult
from bridge.lab.sim.workloads.swf import read_swf
from bridge.lab.sim.workloads.system import pool_of
from bridge.lab.sim.workloads.workload import Workload, workload_from
from bridge.measures import measure
from bridge.model.plan import Plan
from bridge.model.policy import PolicySpec, StageSpec
from bridge.model.snapshot import Snapshot
from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider
from policy_bench.elastic import interval

SUMMARISED: Final = (
    "violations", "seconds", "watt_seconds", "avoidable", "avoidable_s", "makespan_s",
    "energy_kwh", "wait_s", "response_s", "unfinished", "failures",
)  # fmt: skip
_NAMED: Final[dict[str, tuple[str, dict[str, object], Sight]]] = {
    # name -> (preset, parameters of its reshape stage, what it sees)
    "static": ("conservative", {}, Sight.NOTHING),
    "hold": ("conservative", {}, Sight.PRESENT),
    "scenario-2": ("malleable-power", {"waiting": 0}, Sight.ANNOUNCED),
    "scenario-3": ("malleable-power", {}, Sight.ANNOUNCED),
    "power-plan": ("power-plan", {}, Sight.ANNOUNCED),
}


@dataclass(frozen=True)
class PowerPolicy:
    """A policy, and what it sees of the corridor."""

    name: str
    spec: PolicySpec
    sight: Sight


@dataclass(frozen=True)
class JobSource:
    """The source of the jobs.

    Attributes:
        text: `power-paper`, or the file of a trace.
        options: of power.
        nodes: size of a trace's machine; None: as its header says.
        jobs: only the first ones; None: all.
    """

    text: str
    options: PowerOptions
    nodes: int | None = None
    jobs: int | None = None

    @property
    def name(self) -> str:
        """A text for display."""
        return Path(self.text).name.removesuffix(".gz").removesuffix(".swf")

    def drawn(self, seed: int) -> tuple[Workload, PowerSetting]:
        """The jobs, and what they draw.

        Raises:
            ConfigError, TraceError: there is no such file, or something does not fit.
        """
        given = self.options
        if self.text == POWER_PAPER:
            workload = paper_workload(given, seed)
        elif given.corridor is None or given.node_power is None:
            raise ConfigError("corridor", "a trace needs --corridor FILE and --node-power IDLE:MAX")
        else:
            workload = workload_from(read_swf(Path(self.text)), self.nodes)
        workload = workload if self.jobs is None else workload.first(self.jobs)
        workload, setting = powered(workload, given, seed)
        assert setting is not None
        return workload, setting


def known() -> list[str]:
    """The available named policies."""
    return [name for name, (preset, *_) in _NAMED.items() if preset in PRESETS]


def entries(text: str | None) -> list[PowerPolicy]:
    """Policies, separated by commas; None: the available named ones.

    Raises:
        ConfigError: there is no such policy, or one is named twice.
    """
    names = known() if text is None else [each.strip() for each in text.split(",")]
    if twice := {name for name in names if names.count(name) > 1}:
        raise ConfigError("policies", f"{min(twice)} is listed twice")
    return [_entry(name) for name in names]


def _entry(text: str) -> PowerPolicy:
    name, at, sight = text.partition("@")
    if at and sight not in list(Sight):
        raise ConfigError("policies", f"'{text:.60}': after the @, give one of {', '.join(Sight)}")
    preset, parameters, seen = _NAMED.get(name, (name, {}, Sight.ANNOUNCED))
    if name in _NAMED and preset not in PRESETS:
        raise ConfigError(
            "policies",
            f"'{name}' needs the preset {preset}, which does not exist; there are"
            f" {', '.join(known())}, and every other preset or file of a policy",
        )
    spec = read_policy(preset)
    if parameters:
        stage = StageSpec(spec.reshape.name, {**spec.reshape.parameters, **parameters})
        spec = replace(spec, reshape=stage)
    return PowerPolicy(text, replace(spec, name=name), Sight(sight) if at else seen)


def run_case(scenario: JobSource, entry: PowerPolicy, seed: int) -> dict[str, Any]:
    """One simulation: the case, and its measures."""
    workload, setting = scenario.drawn(seed)
    return run_on(workload, setting, entry, seed, scenario.name)


def run_on(
    workload: Workload, setting: PowerSetting, entry: PowerPolicy, seed: int, name: str
) -> dict[str, Any]:
    """One simulation of a workload on a pool: the case, and its measures."""
    outcome, counted = outcome_of(workload, setting, entry, seed)
    return {
        "scenario": name, "policy": entry.name, "seed": seed, **figures_of(outcome), **counted,
    }  # fmt: skip


def outcome_of(
    workload: Workload, setting: PowerSetting, entry: PowerPolicy, seed: int
) -> tuple[SimulationResult, dict[str, int]]:
    """One simulation, and its further counts."""
    decider, resizes = Decider(build(entry.spec), seed=seed), 0
    inner = under_corridor(decider, setting, int(workload.submit_s[0]), entry.sight)

    def decide(snapshot: Snapshot) -> Plan:
        nonlocal resizes
        plan = inner(snapshot)
        resizes += len(plan.resizes)
        return plan

    outcome = simulate(workload, pool_of(workload.processors_total), decide, power=setting)
    return outcome, {"resizes": resizes, "failures": decider.failures}


def figures_of(outcome: SimulationResult) -> dict[str, Any]:
    """The measures of a run with power."""
    found, power = measure(outcome.schedule, outcome.decision_ms), measured(outcome)
    assert power is not None
    assert power.upper is not None
    assert power.lower is not None
    both = (power.upper, power.lower)
    return {
        "violations": sum(side.late.number for side in both),
        "seconds": sum(side.late.seconds for side in both),
        "watt_seconds": sum(side.late.watt_seconds for side in both),
        "avoidable": _avoidable(both, "number"),
        "avoidable_s": _avoidable(both, "seconds"),
        "upper_violations": power.upper.late.number,
        "lower_violations": power.lower.late.number,
        "upper_s": power.upper.all.seconds,
        "lower_s": power.lower.all.seconds,
        "upper_avoidable_s": _avoidable(both[:1], "seconds"),
        "makespan_s": found.makespan_s,
        "energy_kwh": round(power.energy_kwh, 4),
        "energy_delay_js": power.energy_delay_js,
        "mean_w": round(power.mean_w, 1),
        "peak_w": power.peak_w,
        "wait_s": round(found.wait_s.mean, 2),
        "response_s": round(found.turnaround_s.mean, 2),
        "jobs": found.jobs,
        "unfinished": found.unfinished,
        "refusals": len(outcome.refusals),
        "decision_ms": round(found.decision_ms.mean, 3),
    }


def _avoidable(sides: Sequence[Violations], key: str) -> int | None:
    if any(side.avoidable is None for side in sides):
        return None
    return sum(int(getattr(side.avoidable, key)) for side in sides)


def summary(runs: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each policy: the mean of each measure, and its interval."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in runs:
        groups.setdefault((run["scenario"], run["policy"]), []).append(run)
    found = []
    for (scenario, policy), members in groups.items():
        entry: dict[str, Any] = {"scenario": scenario, "policy": policy, "seeds": len(members)}
        for key in SUMMARISED:
            if any(member[key] is None for member in members):
                continue
            values = np.array([member[key] for member in members], dtype=np.float64)
            entry[key] = {"mean": float(f"{values.mean():.6g}"), "interval": interval(values)}
        found.append(entry)
    return found


_TITLES: Final = {
    "violations": ("violations", 1.0, 2),
    "seconds": ("s outside", 1.0, 0),
    "watt_seconds": ("kW s outside", 1e-3, 1),
    "avoidable": ("avoidable", 1.0, 2),
    "avoidable_s": ("s avoidable", 1.0, 0),
    "makespan_s": ("makespan, s", 1.0, 0),
    "energy_kwh": ("energy, kWh", 1.0, 3),
    "wait_s": ("mean wait, s", 1.0, 0),
    "unfinished": ("jobs that never ended", 1.0, 1),
    "failures": ("failed cycles", 1.0, 1),
}


def lines(found: Sequence[dict[str, Any]]) -> list[str]:
    """A summary as a Markdown table, a line for each policy."""
    titles = [title for title, *_ in _TITLES.values()]
    rows = [f"| policy | {' | '.join(titles)} |", "|---|" + "---:|" * len(titles)]
    for entry in found:
        cells = [entry["policy"]]
        for key, (_, scale, digits) in _TITLES.items():
            if key not in entry:
                cells.append("not judged")
                continue
            low, high = (f"{scale * bound:,.{digits}f}" for bound in entry[key]["interval"])
            cells.append(f"{scale * entry[key]['mean']:,.{digits}f} [{low}, {high}]")
        rows.append("| " + " | ".join(cells) + " |")
    return rows
