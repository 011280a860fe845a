# SPDX-License-Identifier: Apache-2.0
"""`schedbridge simulate`: replays a trace under one or more policies and compares them."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bridge.cli.invocation import given_arguments
from bridge.cli.simulation.collected import Collected
from bridge.cli.simulation.outcomes import backlog_of, results_table, write_files
from bridge.cli.simulation.policies import SiteOption, read_planning, read_policy
from bridge.cli.simulation.power import POWER_PAPER, PowerOptions, paper_workload, powered
from bridge.cli.simulation.replays import MOST_PLACED, Engine, Replays
from bridge.cli.simulation.sharing import SharingOptions
from bridge.errors import ConfigError
from bridge.experiments.provenance import provenance, sha256_of
from bridge.model.policy import PolicySpec
from bridge.planning.site_rules.rules_text import parse_site
from bridge.power.sites import site_at
from bridge.registry import describe, predicting
from bridge.report.run import Run, figures
from bridge.sim.runs.faults import recorded_outages
from bridge.sim.runs.outcome import Outcome
from bridge.sim.workloads.change_costs import JOIN, ChangeCosts, parse_change_cost
from bridge.sim.workloads.esp import ESP_NODES, as_trace, esp
from bridge.sim.workloads.reading import Readable, read_workload
from bridge.sim.workloads.speedup import Speedup, parse_speedup
from bridge.sim.workloads.swf import Trace
from bridge.sim.workloads.system import System, pool_of, read_system
from bridge.sim.workloads.workload import Workload
from bridge.units import NEVER

_LONGEST_DECISION_MS = 3_600_000
STOPPED = 3
"""Exit code when a simulation was stopped because its backlog grew without end."""


def simulate(
    trace: Annotated[
        Path,
        typer.Argument(
            help="Trace in the Standard Workload Format (.swf[.gz]); or a site's own jobs"
            " (.workload.jsonl[.gz], by 'schedbridge import'); or esp:SHARE, the ESP workload"
            " on 32 nodes (--procs) with so many percent of its jobs malleable; or power-paper, 20"
            " malleable jobs in a corridor of power."
        ),
    ],
    *,
    policy: Annotated[
        list[str],
        typer.Option(help="A preset's name, or a YAML file with one policy. Repeat to compare."),
    ] = ["easy"],  # noqa: B006 - typer copies it
    procs: Annotated[
        int | None, typer.Option(help="Processors of the machine; default: as in the header.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Only the first N jobs.", min=1)] = None,
    system: Annotated[
        Path | None, typer.Option(help="YAML description of nodes and partitions.")
    ] = None,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Drop malformed lines instead of refusing the trace.")
    ] = False,
    seed: Annotated[
        int,
        typer.Option(help="Seed of all random numbers: policies, faults, the order of esp.", min=0),
    ] = 0,
    faults: Annotated[
        int,
        typer.Option(
            help="Lose nodes, cancel jobs and end jobs early, N times.", min=0, max=1_000_000
        ),
    ] = 0,
    predict: Annotated[
        list[str] | None,
        typer.Option(
            help="Predictor of run times, instead of the policy's own: time-limit, last-two,"
            " name-history, oracle. Repeat to run each policy with each."
        ),
    ] = None,
    decision_time: Annotated[
        str,
        typer.Option(
            help="Time that a decision takes in the simulation: free (nothing), counted (what it"
            " took here), or so many milliseconds."
        ),
    ] = "free",
    speed_up: Annotated[
        str | None,
        typer.Option(
            help="Speed-up of every malleable job of esp: amdahl:FRACTION,"
            " downey:PARALLELISM:VARIANCE, table:WIDTH=SPEEDUP,..., or phases:SHARE*MODEL,...;"
            " default: Amdahl's law with a serial fraction drawn for each job."
        ),
    ] = None,
    change_cost: Annotated[
        str | None,
        typer.Option(
            help="What a change of width takes: join (as measured of this engine), or seconds:"
            " WHOLE, or WHOLE:STILL of which the job stands still; default: join."
        ),
    ] = None,
    site: SiteOption = None,
    corridor: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Bounds of system power over time, YAML or JSON: steps from the"
            " start of the run, - {at: 0, lower: 1700W, upper: 2500W}.",
        ),
    ] = None,
    node_power: Annotated[
        str | None,
        typer.Option(metavar="IDLE:MAX", help="What each node draws, W: follow system power."),
    ] = None,
    power_error: Annotated[
        float | None,
        typer.Option(
            help="Jobs draw up to so many percent more or less than their model; default: 0,"
            " power-paper 10."
        ),
    ] = None,
    power_sensors: Annotated[
        bool, typer.Option("--power-sensors", help="Policies see what jobs draw, as measured.")
    ] = False,
    power_down: Annotated[
        int,
        typer.Option(
            min=0,
            max=86_400,
            metavar="SECONDS",
            help="Idle nodes can be powered down, and take so long to come back; default: 0,"
            " they cannot.",
        ),
    ] = 0,
    interference: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Jobs may share nodes, and slow each other down by this model, YAML or JSON.",
        ),
    ] = None,
    consent: Annotated[
        float | None,
        typer.Option(help="Percentage of the jobs that consent to share nodes; default: 100."),
    ] = None,
    over_time_limit: Annotated[
        str | None,
        typer.Option(
            metavar="MINUTES",
            help="How long jobs that share nodes may run beyond their limit; default: unlimited.",
        ),
    ] = None,
    engine: Annotated[
        Engine,
        typer.Option(
            help="cycle: the real cycle at every event; fast: a replay of counts, with the same"
            " starts; auto: fast where it can be. The results say which ran."
        ),
    ] = Engine.AUTO,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Directory for results, CSV, SWF, plots, HTML report.")
    ] = None,
) -> None:
    """Replay a trace under one or more policies and compare them."""
    specs = _named([read_policy(value) for value in policy], predict or [])
    decision_s = _decision_s(decision_time)
    planning = read_planning(site)
    parse_site(planning)  # report errors in it before the trace is read
    if system is not None and procs is not None:
        raise ConfigError(
            "procs", "the system description states the processors; leave out one of the two"
        )
    machine = read_system(system) if system is not None else None
    speedup = None if speed_up is None else parse_speedup(speed_up)
    changes = None if change_cost is None else parse_change_cost(change_cost)
    power_options = PowerOptions(
        corridor, node_power, power_error, power_sensors, power_down
    ).checked(bounded=str(trace) == POWER_PAPER or "power" in planning)
    readable = _workload(
        trace, machine, procs, power_options,
        lenient=lenient, seed=seed, speedup=speedup, changes=changes,
    )  # fmt: skip
    swf, workload = readable.trace, readable.workload
    machine = machine or pool_of(workload.processors_total)
    workload = workload if jobs is None else workload.first(jobs)
    workload, power = powered(workload, power_options, seed)
    workload, machine, planning = SharingOptions(interference, consent, over_time_limit).applied(
        workload, machine, planning, seed
    )
    rules = site_at(planning, int(workload.submit_s.min()), int(workload.submit_s.max()))
    replays = Replays(
        workload, machine, rules, power,
        seed=seed, faults=faults, decision_s=decision_s, engine=engine,
        special=bool(planning), placed=out is not None,
        recorded=recorded_outages(readable.outages),
    )  # fmt: skip
    summary = {
        **_summary(swf, workload, machine, specs, seed=seed, faults=faults),
        "decision_time": decision_time,
        "planning": planning,
        "trace_sha256": sha256_of(trace) if trace.is_file() else "",
        "provenance": provenance(given_arguments()),
        "not_honoured": list(readable.ignored),
    }
    collected = Collected(swf, summary, len(specs), out, quiet=json_output)
    collected.collect(replays.of(specs))
    outcomes, runs = collected.outcomes, collected.runs
    if json_output:
        print(json.dumps({**collected.summary, "results": [figures(run) for run in runs]}))
    else:
        _show(swf, workload, machine, runs)
    for what in readable.ignored:
        print(f"not honoured: {what}", file=sys.stderr)
    code = _warn(runs, outcomes)
    if out is not None:
        write_files(
            out,
            title=f"{Path(swf.path).name}: {', '.join(run.policy for run in runs)}",
            lead=f"{len(workload):,} jobs replayed on {machine.name}.",
            facts=_facts(swf, workload, runs, seed),
            trace=swf,
            outcomes=outcomes,
            runs=runs,
            summary=collected.summary,
        )
        if not json_output:
            print(f"\nreport: {out / 'report.html'}")
    if collected.stopped is not None:
        raise collected.stopped
    if code:
        raise typer.Exit(code)


def _workload(
    trace: Path,
    machine: System | None,
    procs: int | None,
    power: PowerOptions,
    *,
    lenient: bool,
    seed: int,
    speedup: Speedup | None,
    changes: ChangeCosts | None,
) -> Readable:
    """The jobs to simulate, and the trace that they come from."""
    if (share := _esp_share(str(trace))) is not None:
        if machine is not None:
            raise ConfigError("system", "esp runs on a pool of nodes: give --procs instead")
        size = procs or ESP_NODES
        workload = esp(share, nodes=size, seed=seed, speedup=speedup, changes=changes or JOIN)
        return Readable(as_trace(workload), workload)
    if str(trace) == POWER_PAPER:
        if machine is not None or procs is not None:
            raise ConfigError("procs", f"{POWER_PAPER} runs on nodes of its own: leave it out")
        if speedup is not None or changes is not None:
            raise ConfigError("speed-up", f"{POWER_PAPER} has its own speed-ups and costs")
        workload = paper_workload(power, seed)
        return Readable(as_trace(workload), workload)
    for option, given in (("speed-up", speedup), ("change-cost", changes)):
        if given is not None:
            raise ConfigError(
                option, "a trace has rigid jobs only; see 'schedbridge bench elastic'"
            )
    return read_workload(trace, machine, procs, lenient=lenient)


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
    swf: Trace,
    workload: Workload,
    system: System,
    specs: Sequence[PolicySpec],
    *,
    seed: int,
    faults: int,
) -> dict[str, object]:
    return {
        "trace": swf.path,
        "system": system.name,
        "processors": system.processors,
        "jobs": len(workload),
        "left_out": dict(workload.left_out),
        "malformed_lines_dropped": len(swf.dropped),
        "repeated_job_numbers": _repeated(workload),
        "seed": seed,
        "faults": faults,
        "policies": [describe(spec) for spec in specs],
    }


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
        else f"the nodes of jobs: together they hold more than {MOST_PLACED:,} nodes",
    }
    return {key: value for key, value in facts.items() if value}


def _show(swf: Trace, workload: Workload, system: System, runs: Sequence[Run]) -> None:
    print(f"{swf.path}: {len(workload):,} jobs on {system.name}; left out: {_left_out(workload)}\n")
    Console(highlight=False, soft_wrap=True).print(results_table(runs))
    for run in runs:
        if run.engine == "cycle":
            print(f"\nengine of {run.policy}: cycle, {run.extra['engine_because']}")
    if repeated := _repeated(workload):
        print(
            f"\n{repeated:,} jobs have the number of an earlier one: they are named NUMBER.POSITION"
        )
    if swf.dropped:
        print(f"\ndropped {len(swf.dropped):,} malformed lines; the first: {swf.dropped[0]}")


def _warn(runs: Sequence[Run], outcomes: Sequence[Outcome]) -> int:
    """Prints what is wrong with the results; returns the exit code."""
    code = 0
    for run, outcome in zip(runs, outcomes, strict=True):
        lines = []
        never = (outcome.schedule.start_s == NEVER) & ~outcome.cancelled
        if never.any():
            lines.append(f"{int(never.sum()):,} jobs never started")
        if fell_back := run.extra.get("fell_back"):
            lines.append(f"{fell_back} decisions fell back to the conservative plan")
        if refused := outcome.refusals:
            lines.append(f"{len(refused):,} decisions refused, the first {refused[0]}")
        if (backlog := backlog_of(outcome)) is not None:
            lines.append(backlog.sentence(stopped=outcome.stopped))
        for line in lines:
            print(f"warning: {run.policy}: {line}", file=sys.stderr)
        code = STOPPED if outcome.stopped else code
    return code
