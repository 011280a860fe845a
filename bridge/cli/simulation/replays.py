# SPDX-License-Identifier: Apache-2.0
"""Replays a workload under each of several policies, by the engine that each can have."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from functools import partial

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from bridge.cli.simulation.outcomes import run_of
from bridge.errors import ConfigError
from bridge.model.policy import PolicySpec
from bridge.model.rules.site import Site
from bridge.ports import Environment
from bridge.registry import build
from bridge.report.run import Run
from bridge.safe_cycle.decider import Decider
from bridge.sim.corridor.power import PowerSetting
from bridge.sim.corridor.sight import under_corridor
from bridge.sim.runs.engine import simulate
from bridge.sim.runs.faults import random_faults
from bridge.sim.runs.foreseen import foreseeable, replay_foreseen
from bridge.sim.runs.outcome import Outcome
from bridge.sim.runs.outcome import Progress as Point
from bridge.sim.runs.replay import replay, replay_depth
from bridge.sim.workloads.system import System
from bridge.sim.workloads.workload import Workload

SILENT_S = 30.0
"""Without a terminal, progress is one line each so many seconds."""
MOST_PLACED = 50_000_000
"""Most node assignments computed after a fast replay; a Gantt chart shows fewer anyway."""


class Engine(StrEnum):
    """The engine of a simulation."""

    AUTO = "auto"
    CYCLE = "cycle"
    FAST = "fast"


@dataclass(frozen=True)
class Replays:
    """What is the same for all policies.

    Attributes:
        workload, machine, rules: jobs, nodes, rules of the site.
        power: what nodes and jobs draw; None: it is not followed.
        seed: of policies and faults.
        faults: how many.
        decision_s: simulated duration of a decision, s; None: the measured one.
        engine: that is asked for.
        special: the site has rules, which only the cycle keeps.
        placed: whether the nodes of each job are wanted.
    """

    workload: Workload
    machine: System
    rules: Site
    power: PowerSetting | None
    _: KW_ONLY
    seed: int
    faults: int
    decision_s: float | None
    engine: Engine
    special: bool
    placed: bool

    def of(self, specs: Sequence[PolicySpec]) -> Iterator[tuple[Outcome, Run]]:
        """One replay after the other, each given as soon as it is there; with progress.

        Raises:
            ConfigError: the fast engine was requested but cannot replay one of them; before any.
        """
        return self._of(specs, [self._fast(spec) for spec in specs])

    def _of(
        self, specs: Sequence[PolicySpec], fast: Sequence[Callable[..., Outcome] | None]
    ) -> Iterator[tuple[Outcome, Run]]:
        with _progress() as bars:
            for number, (spec, replayed) in enumerate(zip(specs, fast, strict=True), 1):
                task = bars.add_task(spec.name, total=len(self.workload), state="")
                if replayed is not None:
                    few = int(self.workload.processors.sum()) <= MOST_PLACED
                    outcome = replayed(self.workload, self.machine, placed=self.placed and few)
                    run = run_of(spec.name, "fast", outcome)
                else:
                    of = f"{number} of {len(specs)}: {spec.name}"
                    advance = _say_now_and_then(of) if bars.disable else _advance(bars, task)
                    outcome, run = self._by_cycle(spec, advance)
                bars.update(task, completed=len(self.workload))
                yield outcome, run

    def _by_cycle(self, spec: PolicySpec, observe: Callable[[Point], None]) -> tuple[Outcome, Run]:
        workload, power = self.workload, self.power
        truth = dict(zip(workload.id, workload.runtime_s.tolist(), strict=True))
        known = Environment(run_s=truth)
        decider = Decider(build(spec), seed=self.seed, site=self.rules, environment=known)
        origin_s = int(workload.submit_s[0])
        outcome = simulate(
            workload,
            self.machine,
            under_corridor(decider, power, origin_s) if power else decider.decide,
            faults=random_faults(self.seed, workload, len(self.machine.nodes), self.faults),
            observe=observe,
            decision_s=self.decision_s,
            power=power,
        )
        return outcome, run_of(spec.name, "cycle", outcome, fell_back=decider.failures)

    def _fast(self, spec: PolicySpec) -> Callable[..., Outcome] | None:
        """Replays a workload with the fast engine; None: only the cycle engine can.

        Raises:
            ConfigError: the fast engine was requested but cannot replay this.
        """
        if self.engine is Engine.CYCLE:
            return None
        special = self.special or self.faults or self.decision_s != 0 or self.power
        if not (special or self.workload.sharing):
            if (depth := replay_depth(spec, self.machine)) is not None:
                return partial(replay, depth=depth)
            if foreseeable(spec, self.machine):
                return partial(replay_foreseen, spec=spec)
        if self.engine is Engine.FAST:
            raise ConfigError(
                "engine",
                "'fast' replays order fcfs or slurm with plan easy, or conservative by time limits,"
                " on a pool, with free decisions, without --site and faults; policy"
                f" {spec.name} needs 'cycle'",
            )
        return None


def _progress() -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[state]}"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
        transient=True,
    )


def _advance(bars: Progress, task: TaskID) -> Callable[[Point], None]:
    def advance(point: Point) -> None:
        state = f"{point.running:,} running, {point.waiting:,} waiting"
        bars.update(task, completed=point.finished, state=state)

    return advance


def _say_now_and_then(what: str) -> Callable[[Point], None]:
    """Progress where there is no terminal: lines in a log."""
    said = time.monotonic()

    def say(point: Point) -> None:
        nonlocal said
        if time.monotonic() - said >= SILENT_S:
            said = time.monotonic()
            print(
                f"{what}: {point.finished:,} of {point.jobs:,} jobs have ended,"
                f" {point.waiting:,} wait",
                file=sys.stderr,
                flush=True,
            )

    return say
