# SPDX-License-Identifier: Apache-2.0
"""Replays a workload under each of several policies, by the engine that each can have."""

from collections.abc import Callable, Sequence
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

    def of(self, specs: Sequence[PolicySpec]) -> tuple[list[Outcome], list[Run]]:
        """One replay for each policy, with progress on a terminal.

        Raises:
            ConfigError: the fast engine was requested but cannot replay one of them.
        """
        fast = [self._fast(spec) for spec in specs]
        outcomes: list[Outcome] = []
        runs: list[Run] = []
        with _progress() as bars:
            for spec, replayed in zip(specs, fast, strict=True):
                task = bars.add_task(spec.name, total=len(self.workload), state="")
                if replayed is not None:
                    few = int(self.workload.processors.sum()) <= MOST_PLACED
                    outcome = replayed(self.workload, self.machine, placed=self.placed and few)
                    run = run_of(spec.name, "fast", outcome)
                else:
                    outcome, run = self._by_cycle(spec, _advance(bars, task))
                bars.update(task, completed=len(self.workload))
                outcomes.append(outcome)
                runs.append(run)
        return outcomes, runs

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
