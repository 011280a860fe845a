#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays whole logs under several policies through the cycle, and reports the users' measures.

    benchmarks/traces.py LOG[@SYSTEM] ... [--policy NAME|FILE ...] [--limit-jobs N]
                         [--fast] [--json FILE] [--plots DIR] [--processes N]

LOG is a trace in the Standard Workload Format, SYSTEM a description of its machine (see
docs/SIMULATOR.md); the default is `systems/LOG.yaml` next to this program, or without it a pool of
one-processor nodes from the trace's header. trace_bench/figures.py defines the measures,
docs/TRACES.md has the results.

With `--fast` EASY and conservative backfilling on a pool are replayed by the kernel in one call
(`bridge.lab.sim.runs.replay`), in seconds: the same starts and announcements, but no times of
decisions.

The JSON file (results/traces.json) gets one entry for each log, machine, policy and number of jobs,
with its origin (`about.py`); other entries are kept. The starts of an entry are reproducible: only
times of decisions differ.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import typer
import yaml
from about import about
from results_file import as_text
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn
from trace_bench.figures import Figures, figures
from trace_bench.plots import draw

from bridge.errors import BridgeError, ConfigError
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.runs.replay import replay as by_kernel
from bridge.lab.sim.runs.replay import replay_depth
from bridge.lab.sim.runs.simulation_result import SimulationProgress as Point
from bridge.lab.sim.runs.simulation_result import SimulationResult
from bridge.lab.sim.workloads.swf import read_swf
from bridge.lab.sim.workloads.system import System, pool_of, read_system
from bridge.lab.sim.workloads.workload import Workload, workload_from
from bridge.model.plan import Plan
from bridge.model.policy import PolicySpec
from bridge.model.snapshot import Snapshot
from bridge.registry import PRESETS, build, describe, parse_policy
from bridge.safe_cycle.decider import Decider

HERE = Path(__file__).resolve().parent
POLICIES = ["easy", "slurm-like", "openccs"]
_TELL_EVERY_S = 60.0


def log_name(path: Path) -> str:
    """A log's name without the suffix of its format."""
    return path.name.removesuffix(".gz").removesuffix(".swf")


@dataclass(frozen=True)
class Case:
    """One replay to make.

    Attributes:
        log, system: files; no system: a pool.
        spec: the policy.
        limit: number of jobs, the first ones; None: all.
        fast: by the kernel if its starts are the same.
    """

    log: Path
    system: Path | None
    spec: PolicySpec
    limit: int | None
    fast: bool = False

    @property
    def name(self) -> str:
        """Log and machine, for display and as a key."""
        log = log_name(self.log)
        if self.system is None or self.system.stem.startswith(log):
            return log if self.system is None else self.system.stem
        return f"{log}@{self.system.stem}"

    def load(self) -> tuple[Workload, System]:
        """Reads log and machine."""
        trace = read_swf(self.log)
        if self.system is None:
            workload = workload_from(trace)
            system = pool_of(workload.processors_total)
        else:
            system = read_system(self.system)
            workload = workload_from(trace, system.processors, system.dialect)
        return (workload if self.limit is None else workload.first(self.limit)), system


@dataclass
class Metered:
    """A decider whose CPU time is also measured."""

    decider: Decider
    cpu_ms: list[float] = field(default_factory=list)

    def decide(self, snapshot: Snapshot) -> Plan:
        """Decides, and records the duration."""
        began = time.process_time()
        try:
            return self.decider.decide(snapshot)
        finally:
            self.cpu_ms.append((time.process_time() - began) * 1e3)


def replay(
    case: Case, observe: Callable[[Point], None] | None = None
) -> tuple[Figures, SimulationResult]:
    """Makes one replay."""
    workload, system = case.load()
    decider = Metered(Decider(build(case.spec), seed=0))
    began_s, cpu_s = time.perf_counter(), time.process_time()
    depth = replay_depth(case.spec, system) if case.fast else None
    if depth is None:
        outcome = simulate(workload, system, decider.decide, observe=observe)
    else:
        outcome = by_kernel(workload, system, depth)
    found: Figures = {
        "trace": case.name,
        "policy": describe(case.spec),
        "engine": "cycle" if depth is None else "fast",
        "limit_jobs": case.limit,
        "processors": system.processors,
        "left_out": dict(workload.left_out),
        "fell_back": decider.decider.failures,
        "seconds": round(time.perf_counter() - began_s, 1),
        "cpu_seconds": round(time.process_time() - cpu_s, 1),
        "load_1min": round(os.getloadavg()[0], 2),
        **figures(outcome, decider.cpu_ms),
    }
    if depth is not None:
        found["decision_ms"] = {}  # the kernel's passes are not cycles
    return found, outcome


def one_by_one(cases: list[Case]) -> Iterator[tuple[Case, Figures, SimulationResult]]:
    """One replay after the other in this process, with progress on standard error."""
    console = Console(stderr=True)
    bars = Progress(
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(),
        TextColumn("{task.fields[state]}"), TimeElapsedColumn(),
        console=console, disable=not console.is_terminal, transient=True,
    )  # fmt: skip
    for case in cases:
        title = f"{case.name} {case.spec.name}"
        told_s = time.monotonic()
        with bars:
            task = bars.add_task(title, total=None, state="")

            def observe(point: Point, title: str = title, task: object = task) -> None:
                nonlocal told_s
                state = f"{point.running:,} running, {point.waiting:,} waiting"
                bars.update(task, completed=point.finished, total=point.jobs, state=state)  # type: ignore[arg-type]
                if not console.is_terminal and time.monotonic() - told_s > _TELL_EVERY_S:
                    told_s = time.monotonic()
                    print(f"{title}: {point.finished:,} of {point.jobs:,}", file=sys.stderr)

            found, outcome = replay(case, observe)
            bars.remove_task(task)
        yield case, found, outcome


def side_by_side(
    cases: list[Case], processes: int
) -> Iterator[tuple[Case, Figures, SimulationResult]]:
    """Several replays at a time; times of decisions then include waiting for a CPU."""
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        waiting = {pool.submit(replay, case): case for case in cases}
        for done in as_completed(waiting):
            yield waiting[done], *done.result()


def write(path: Path, found: Figures) -> None:
    """Puts one entry into the file and replaces its earlier version."""
    entries: list[Figures] = []
    if path.exists():
        try:
            entries = json.loads(path.read_text(encoding="utf-8"))["runs"]
        except (ValueError, KeyError, TypeError):
            raise ConfigError("json", "is not a result of this program", file=str(path)) from None

    def key(entry: Figures) -> str:
        return json.dumps([entry["trace"], entry["policy"], entry["limit_jobs"]], sort_keys=True)

    entries = [entry for entry in entries if key(entry) != key(found)]
    entries = sorted([*entries, found], key=lambda entry: str(entry["trace"]))
    text = as_text({"runs": entries})
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n", encoding="utf-8")


def read_policy(text: str) -> PolicySpec:
    """A preset by name, or a policy in a YAML file."""
    if text in PRESETS:
        return PRESETS[text]
    try:
        return parse_policy(yaml.safe_load(Path(text).read_text(encoding="utf-8")))
    except OSError:
        known = ", ".join(PRESETS)
        raise ConfigError("policy", f"'{text}' is neither a preset ({known}) nor a file") from None


def case_of(text: str, spec: PolicySpec, limit: int | None, *, fast: bool) -> Case:
    """Reads LOG[@SYSTEM]."""
    log, _, given = text.partition("@")
    system = Path(given) if given else None
    if system is None:
        own = HERE / "systems" / f"{log_name(Path(log))}.yaml"
        system = own if own.exists() else None
    return Case(Path(log), system, spec, limit, fast)


def main(
    traces: Annotated[list[str], typer.Argument(help="LOG or LOG@SYSTEM.yaml, one or more.")],
    *,
    policy: Annotated[list[str], typer.Option(help="Preset or YAML file; repeat.")] = POLICIES,
    limit_jobs: Annotated[int | None, typer.Option(help="Only the first N jobs.", min=1)] = None,
    fast: Annotated[
        bool, typer.Option("--fast", help="By the kernel where that gives the same starts.")
    ] = False,
    json_file: Annotated[Path, typer.Option("--json", help="Where results are kept.")] = (
        HERE / "results" / "traces.json"
    ),
    plots: Annotated[Path | None, typer.Option(help="Directory for plots, one a trace.")] = None,
    processes: Annotated[int, typer.Option(help="Replays at a time.", min=1)] = 1,
) -> None:
    """Replay whole logs under several policies and keep what users would get of each."""
    try:
        specs = [read_policy(text) for text in policy]
        cases = [case_of(text, spec, limit_jobs, fast=fast) for text in traces for spec in specs]
        for case in {case.name: case for case in cases}.values():
            case.load()  # errors are reported before the first long run
        came: dict[str, dict[str, SimulationResult]] = {}
        runs = one_by_one(cases) if processes == 1 else side_by_side(cases, processes)
        for case, found, outcome in runs:
            write(json_file, found | about())
            print(
                f"{case.name} {case.spec.name}: {found['jobs']:,} jobs in {found['seconds']} s",
                file=sys.stderr,
            )
            came.setdefault(case.name, {})[case.spec.name] = outcome
            if plots is not None:
                plots.mkdir(parents=True, exist_ok=True)
                draw(plots / f"{case.name}.png", case.name, came[case.name])
            else:
                came.clear()
    except BridgeError as error:
        print(f"traces.py: {error}", file=sys.stderr)
        raise typer.Exit(1) from None


if __name__ == "__main__":
    typer.run(main)
