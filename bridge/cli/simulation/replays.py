# SPDX-License-Identifier: Apache-2.0
"""Replays a workload under each of several policies, by the engine that each can have."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from bridge.cli.simulation.run_results import run_of
from bridge.errors import ConfigError
from bridge.lab.report.run import Run
from bridge.lab.sim.corridor.power import PowerSetting
from bridge.lab.sim.corridor.sight import under_corridor
from bridge.lab.sim.runs.backlog import Watch
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.runs.faults import Fault, random_faults
from bridge.lab.sim.runs.ordered import replay_ordered, unordered_because
from bridge.lab.sim.runs.replay import replay, replay_depth
from bridge.lab.sim.runs.simulation_result import Observe, SimulationResult
from bridge.lab.sim.runs.simulation_result import SimulationProgress as Point
from bridge.lab.sim.workloads.system import System
from bridge.lab.sim.workloads.workload import Workload
from bridge.model.policy import PolicySpec
from bridge.model.rules.site import Site
from bridge.ports import Environment
from bridge.registry import build
from bridge.safe_cycle.decider import Decider

SILENT_S = 30.0
"""Without a terminal, progress is one line each so many seconds."""
MAX_PLACED = 50_000_000
"""Most node assignments computed after a fast replay; a Gantt chart shows fewer anyway."""


_Fast = Callable[[Workload, System, bool, Observe], SimulationResult]
"""Replays jobs on a machine, with the nodes of each or not, and reports the progress."""


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
        decision_s: simulated duration of a decision, s; None: the measured one.
        special: the site has rules, which only the cycle keeps.
        placed: whether the nodes of each job are wanted.
        recorded: outages of nodes as they were.
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
    recorded: tuple[Fault, ...] = ()

    def of(self, specs: Sequence[PolicySpec]) -> Iterator[tuple[SimulationResult, Run]]:
        """One replay after the other, each given as soon as it is there; with progress.

        Raises:
            ConfigError: the fast engine was requested but cannot replay one of them; before any.
        """
        return self._of(specs, [self._choose(spec) for spec in specs])

    def _of(
        self, specs: Sequence[PolicySpec], chosen: Sequence[tuple[_Fast | None, str]]
    ) -> Iterator[tuple[SimulationResult, Run]]:
        with _progress() as bars:
            for number, (spec, choice) in enumerate(zip(specs, chosen, strict=True), 1):
                replayed, because = choice
                task = bars.add_task(spec.name, total=len(self.workload), state="")
                of = f"{number} of {len(specs)}: {spec.name}"
                observe = _say_now_and_then(of) if bars.disable else _advance(bars, task)
                if replayed is not None:
                    few = int(self.workload.processors.sum()) <= MAX_PLACED
                    placed = self.placed and few
                    result = replayed(self.workload, self.machine, placed, observe)
                    run = run_of(spec.name, "fast", result, because=because)
                else:
                    result, run = self._by_cycle(spec, observe, because)
                bars.update(task, completed=len(self.workload))
                yield result, run

    def _by_cycle(
        self, spec: PolicySpec, observe: Callable[[Point], None], because: str
    ) -> tuple[SimulationResult, Run]:
        workload, power = self.workload, self.power
        truth = dict(zip(workload.id, workload.runtime_s.tolist(), strict=True))
        known = Environment(run_s=truth)
        decider = Decider(build(spec), seed=self.seed, site=self.rules, environment=known)
        origin_s = int(workload.submit_s[0])
        result = simulate(
            workload,
            self.machine,
            under_corridor(decider, power, origin_s) if power else decider.decide,
            faults=(
                *self.recorded,
                *random_faults(self.seed, workload, len(self.machine.nodes), self.faults),
            ),
            observe=observe,
            decision_s=self.decision_s,
            power=power,
            watch=self._watch(),
        )
        return result, run_of(
            spec.name, "cycle", result, fell_back=decider.failures, because=because
        )

    def _watch(self) -> Watch:
        return Watch(self.workload, self.machine.processors)

    def _choose(self, spec: PolicySpec) -> tuple[_Fast | None, str]:
        """A replay by the fast engine (None: the cycle's), and why this engine.

        Raises:
            ConfigError: the fast engine was requested but cannot replay this.
        """
        if self.engine is Engine.CYCLE:
            return None, "as asked by --engine"
        because = self._only_by_cycle(spec)
        if because is None:
            return self._fast(spec), "its starts depend on counts alone"
        if self.engine is Engine.FAST:
            raise ConfigError(
                "engine", f"policy {spec.name} cannot run by 'fast', it needs 'cycle': {because}"
            )
        return None, because

    def _only_by_cycle(self, spec: PolicySpec) -> str | None:
        """Why the fast engine cannot replay a policy; None: it can."""
        for given, why in (
            (self.special, "rules of --site are kept by the cycle only"),
            (self.faults, "faults happen in the cycle only"),
            (self.recorded, "outages of nodes happen in the cycle only"),
            (self.workload.after is not None, "jobs wait for others in the cycle only"),
            (self.decision_s != 0, "fast is with free decisions only (--decision-time free)"),
            (self.power, "power is followed in the cycle only"),
            (self.workload.sharing, "jobs that share nodes run in the cycle only"),
            (self.workload.malleable, "malleable jobs run in the cycle only"),
        ):
            if given:
                return why
        return unordered_because(spec, self.machine)

    def _fast(self, spec: PolicySpec) -> _Fast:
        """The fastest of the replays that give the cycle's starts."""
        if (depth := replay_depth(spec, self.machine)) is not None:
            return lambda jobs, pool, placed, _: replay(jobs, pool, depth, placed=placed)
        return lambda jobs, pool, placed, observe: replay_ordered(
            jobs, pool, spec,
            seed=self.seed, placed=placed, watch=self._watch(), observe=observe,
        )  # fmt: skip


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
    printed_s = time.monotonic()

    def say(point: Point) -> None:
        nonlocal printed_s
        if time.monotonic() - printed_s >= SILENT_S:
            printed_s = time.monotonic()
            print(
                f"{what}: {point.finished:,} of {point.jobs:,} jobs have ended,"
                f" {point.waiting:,} wait",
                file=sys.stderr,
                flush=True,
            )

    return say
