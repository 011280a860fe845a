# SPDX-License-Identifier: Apache-2.0
"""`schedbridge lab simulate`: replays a trace under one or more policies and compares them."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import typer
from rich.console import Console

from bridge.cli.bundled import bundled
from bridge.cli.invocation import given_arguments
from bridge.cli.options import takes
from bridge.cli.simulation.collected import Collected
from bridge.cli.simulation.policies import read_planning, read_policy
from bridge.cli.simulation.replays import MAX_PLACED, Replays
from bridge.cli.simulation.run_results import backlog_of, results_table, write_files
from bridge.cli.simulation.simulate_options import SimulateOptions
from bridge.errors import ConfigError
from bridge.extensions.power.corridor.sites import site_at
from bridge.lab.experiments.provenance import provenance, sha256_of
from bridge.lab.report.run import Run, figures
from bridge.lab.sim.corridor.power import PowerSetting
from bridge.lab.sim.runs.faults import recorded_outages
from bridge.lab.sim.runs.power_options import POWER_PAPER, paper_workload, powered
from bridge.lab.sim.runs.simulation_result import SimulationResult
from bridge.lab.sim.workloads.change_costs import JOIN, parse_change_cost
from bridge.lab.sim.workloads.esp import ESP_NODES, as_trace, esp
from bridge.lab.sim.workloads.reading import Readable, read_workload
from bridge.lab.sim.workloads.speedup import parse_speedup
from bridge.lab.sim.workloads.swf import Trace
from bridge.lab.sim.workloads.system import System, pool_of, read_system
from bridge.lab.sim.workloads.workload import Workload
from bridge.model.policy import PolicySpec
from bridge.planning.site_rules.rules_text import parse_site
from bridge.registry import describe, predicting
from bridge.units import NEVER

_LONGEST_DECISION_MS = 3_600_000
STOPPED = 3
"""Exit code when a simulation was stopped because its backlog grew without end."""


@takes(SimulateOptions)
def simulate(given: SimulateOptions) -> None:
    """Replay a trace under one or more policies and compare them."""
    specs = _named([read_policy(value) for value in given.policy], given.predict or [])
    decision_s = _decision_s(given.decision_time)
    setting = _read(given)
    collected = Collected(
        setting.trace, _summary(given, setting, specs), len(specs), given.out,
        quiet=given.json_output,
    )  # fmt: skip
    collected.collect(setting.replays(given, decision_s).of(specs))
    if given.json_output:
        results = [figures(run) for run in collected.runs]
        print(json.dumps({**collected.summary, "results": results}))
    else:
        _show(setting, collected.runs)
    for what in setting.not_honoured:
        print(f"not honoured: {what}", file=sys.stderr)
    code = _warn(collected.runs, collected.results)
    if given.out is not None:
        _write(given.out, given, setting, collected)
    if collected.stopped is not None:
        raise collected.stopped
    if code:
        raise typer.Exit(code)


# ---------------------------------------------------------------- what is simulated


@dataclass(frozen=True)
class _Setting:
    """What the policies have in common.

    Attributes:
        readable: the trace as it was read.
        workload: its jobs, with what the options add.
        power: what nodes and jobs draw; None: power is not followed.
        planning: the section of the site's rules.
    """

    readable: Readable
    workload: Workload
    machine: System
    power: PowerSetting | None
    planning: dict[str, Any]

    @property
    def trace(self) -> Trace:
        return self.readable.trace

    @property
    def not_honoured(self) -> Sequence[str]:
        return self.readable.ignored

    def replays(self, given: SimulateOptions, decision_s: float | None) -> Replays:
        submit_s = self.workload.submit_s
        rules = site_at(self.planning, int(submit_s.min()), int(submit_s.max()))
        return Replays(
            self.workload, self.machine, rules, self.power,
            seed=given.seed, faults=given.faults, decision_s=decision_s, engine=given.engine,
            special=bool(self.planning), placed=given.out is not None,
            recorded=recorded_outages(self.readable.outages),
        )  # fmt: skip


def _read(given: SimulateOptions) -> _Setting:
    planning = read_planning(given.site)
    parse_site(planning)  # report errors in it before the trace is read
    if given.system is not None and given.procs is not None:
        raise ConfigError(
            "procs", "the system description states the processors; leave out one of the two"
        )
    machine = read_system(given.system) if given.system is not None else None
    readable = _workload(given, machine, planning)
    workload = readable.workload
    machine = machine or pool_of(workload.processors_total)
    workload = workload if given.jobs is None else workload.first(given.jobs)
    workload, power = powered(workload, given.power(bounded="power" in planning), given.seed)
    workload, machine, planning = given.sharing.applied(workload, machine, planning, given.seed)
    return _Setting(readable, workload, machine, power, planning)


def _workload(
    given: SimulateOptions, machine: System | None, planning: Mapping[str, Any]
) -> Readable:
    """The jobs to simulate, and the trace that they come from."""
    speedup = None if given.speed_up is None else parse_speedup(given.speed_up)
    changes = None if given.change_cost is None else parse_change_cost(given.change_cost)
    power, name = given.power(bounded="power" in planning), str(given.trace)
    if (share := _esp_share(name)) is not None:
        if machine is not None:
            raise ConfigError("system", "esp runs on a pool of nodes: give --procs instead")
        size = given.procs or ESP_NODES
        workload = esp(share, nodes=size, seed=given.seed, speedup=speedup, changes=changes or JOIN)
        return Readable(as_trace(workload), workload)
    if name == POWER_PAPER:
        if machine is not None or given.procs is not None:
            raise ConfigError("procs", f"{POWER_PAPER} runs on nodes of its own: leave it out")
        if speedup is not None or changes is not None:
            raise ConfigError("speed-up", f"{POWER_PAPER} has its own speed-ups and costs")
        workload = paper_workload(power, given.seed)
        return Readable(as_trace(workload), workload)
    for option, model in (("speed-up", speedup), ("change-cost", changes)):
        if model is not None:
            raise ConfigError(
                option, "a trace has rigid jobs only; see 'benchmarks/bench.py elastic'"
            )
    return read_workload(bundled(given.trace), machine, given.procs, lenient=given.lenient)


def _esp_share(text: str) -> float | None:
    """Percent of malleable jobs in `esp:SHARE`; None: it is the name of a file.

    Raises:
        ConfigError: the share is not a percentage.
    """
    name, colon, share = text.partition(":")
    if name != "esp" or not colon:
        return None
    try:
        return float(share)
    except ValueError as error:
        raise ConfigError(
            "trace", f"esp:{share:.20}: give a share in percent, for instance esp:50"
        ) from error


# ---------------------------------------------------------------- policies


def _named(specs: Sequence[PolicySpec], predictors: Sequence[str]) -> list[PolicySpec]:
    """The policies with each of the predictors; repeated names get a number.

    Raises:
        ConfigError: there is no such predictor.
    """
    if predictors:
        specs = [predicting(spec, predictor) for spec in specs for predictor in predictors]
    seen: dict[str, int] = {}
    named = []
    for spec in specs:
        seen[spec.name] = seen.get(spec.name, 0) + 1
        again = f" ({seen[spec.name]})" if seen[spec.name] > 1 else ""
        named.append(replace(spec, name=spec.name + again))
    return named


def _decision_s(text: str) -> float | None:
    """The simulated duration of a decision, s; None: the measured one.

    Raises:
        ConfigError: it is neither a keyword nor a time.
    """
    if text in ("free", "counted"):
        return 0.0 if text == "free" else None
    try:
        milliseconds = float(text)
    except ValueError:
        milliseconds = -1.0
    if not 0 <= milliseconds <= _LONGEST_DECISION_MS:
        raise ConfigError(
            "decision-time",
            f"must be free, counted or 0 to {_LONGEST_DECISION_MS} milliseconds, not '{text}'",
        )
    return milliseconds / 1e3


# ---------------------------------------------------------------- output


def _summary(
    given: SimulateOptions, setting: _Setting, specs: Sequence[PolicySpec]
) -> dict[str, object]:
    trace, workload = setting.trace, setting.workload
    return {
        "trace": trace.path,
        "system": setting.machine.name,
        "processors": setting.machine.processors,
        "jobs": len(workload),
        "left_out": dict(workload.left_out),
        "malformed_lines_dropped": len(trace.dropped),
        "repeated_job_numbers": _repeated(workload),
        "seed": given.seed,
        "faults": given.faults,
        "policies": [describe(spec) for spec in specs],
        "decision_time": given.decision_time,
        "planning": setting.planning,
        "trace_sha256": sha256_of(path) if (path := bundled(given.trace)).is_file() else "",
        "provenance": provenance(given_arguments()),
        "not_honoured": list(setting.not_honoured),
    }


def _write(
    directory: Path, given: SimulateOptions, setting: _Setting, collected: Collected
) -> None:
    trace, runs = setting.trace, collected.runs
    page = write_files(
        directory,
        title=f"{Path(trace.path).name}: {', '.join(run.policy for run in runs)}",
        lead=f"{len(setting.workload):,} jobs replayed on {setting.machine.name}.",
        facts=_facts(trace, setting.workload, runs, given.seed),
        trace=trace,
        results=collected.results,
        runs=runs,
        summary=collected.summary,
    )
    if page is not None and not given.json_output:
        print(f"\nreport: {page}")


def _repeated(workload: Workload) -> int:
    return 0 if workload.repeated_id is None else int(workload.repeated_id.sum())


def _left_out(workload: Workload) -> str:
    parts = [f"{count:,} {reason}" for reason, count in workload.left_out.items()]
    return "; ".join(parts) or "none"


def _facts(swf: Trace, workload: Workload, runs: Sequence[Run], seed: int) -> Mapping[str, str]:
    facts = {
        "trace": swf.path,
        "computer": swf.directive("Computer"),
        "installation": swf.directive("Installation"),
        "acknowledgement": swf.directive("Acknowledge"),
        "jobs left out": _left_out(workload),
        "malformed lines dropped": f"{len(swf.dropped):,}" if swf.dropped else None,
        "repeated job numbers": f"{_repeated(workload):,}" if _repeated(workload) else None,
        "seed": str(seed),
        "not shown": None
        if all(run.placed for run in runs)
        else f"the nodes of jobs: together they hold more than {MAX_PLACED:,} nodes",
    }
    return {key: value for key, value in facts.items() if value}


def _show(setting: _Setting, runs: Sequence[Run]) -> None:
    trace, workload, system = setting.trace, setting.workload, setting.machine.name
    print(f"{trace.path}: {len(workload):,} jobs on {system}; left out: {_left_out(workload)}\n")
    Console(highlight=False, soft_wrap=True).print(results_table(runs))
    for run in runs:
        if run.engine == "cycle":
            print(f"\nengine of {run.policy}: cycle, {run.extra['engine_because']}")
    if repeated := _repeated(workload):
        print(
            f"\n{repeated:,} jobs have the number of an earlier one: they are named NUMBER.POSITION"
        )
    if trace.dropped:
        print(f"\ndropped {len(trace.dropped):,} malformed lines; the first: {trace.dropped[0]}")


def _warn(runs: Sequence[Run], results: Sequence[SimulationResult]) -> int:
    """Prints what is wrong with the results; returns the exit code."""
    code = 0
    for run, result in zip(runs, results, strict=True):
        lines = []
        never = (result.schedule.start_s == NEVER) & ~result.cancelled
        if never.any():
            lines.append(f"{int(never.sum()):,} jobs never started")
        if fell_back := run.extra.get("fell_back"):
            lines.append(f"{fell_back} decisions fell back to the conservative plan")
        if refused := result.refusals:
            lines.append(f"{len(refused):,} decisions refused, the first {refused[0]}")
        if (backlog := backlog_of(result)) is not None:
            lines.append(backlog.sentence(stopped=result.stopped))
        for line in lines:
            print(f"warning: {run.policy}: {line}", file=sys.stderr)
        code = STOPPED if result.stopped else code
    return code
