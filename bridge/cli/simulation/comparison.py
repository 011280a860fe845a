# SPDX-License-Identifier: Apache-2.0
"""`schedbridge lab compare`: policies side by side on the same recorded cycles.

Every policy plans every instance, one after the other, so that other load on the machine affects
all of them equally. Every plan is completed (`bridge.lab.sim.recorded.rerun`, rule 2) and judged
(`bridge.lab.sim.recorded.judging`) with the run times that the recorded cycle predicted. A policy's
time is that of the whole cycle, from snapshot to checked plan, at the present load, which is in
the result.

| figure | is |
|---|---|
| mean | the objective, mean over instances |
| relative | objective / the best of this run, instance by instance, mean over instances |
| best of | number of instances on which no other policy of this run was better (by a millionth) |
| decision_ms | wall-clock time of a cycle |
| cpu_ms | CPU time of a cycle in this process; with budgets of work, all of its CPU time |

With budgets of work (`by_work`) a policy gets no clock and no solver process, so that its result is
the same on any machine at any load.
"""

import os
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from bridge.cli.simulation.policies import budgeted, read_policy, with_budget
from bridge.cli.simulation.solvers import a_solver, rerun_warm
from bridge.errors import ConfigError
from bridge.lab.sim.recorded.judging import MEASURES, PlanFigures, judge
from bridge.lab.sim.recorded.rerun import Rerun, completed, rerun
from bridge.model.policy import PolicySpec
from bridge.recording.recordings import Recording, find_recordings, read_recording
from bridge.registry import describe
from bridge.solver_process import ChildSolver

__all__ = ["MEASURES"]

SAME = 1 + 1e-6
"""Objectives closer than this are equally good."""


@dataclass(frozen=True)
class ComparedPolicy:
    """A policy of the comparison.

    Attributes:
        name: as given by the user, with its budget.
        budget_ms: None: it has no budget to set.
    """

    name: str
    spec: PolicySpec
    budget_ms: int | None


@dataclass(frozen=True)
class DispatchResult:
    """The result of one policy on one instance.

    Attributes:
        group: the directory of the instance.
        fallback: why the greedy plan is used; empty: it is not, or the policy is greedy.
        gap: to the lower bound, where the policy states one.
    """

    instance: str
    group: str
    jobs: int
    running: int
    nodes: int
    policy: str
    figures: PlanFigures
    decision_ms: float
    cpu_ms: float
    failed: bool
    fallback: str
    gap: float | None

    def objective(self, name: str) -> float:
        """One figure of the verdict."""
        return self.figures.costs[name]


def bundled() -> Path:
    """The instances that come with the package."""
    return Path(str(files("bridge.lab.sim").joinpath("data", "instances")))


def entries(policies: str, budget_ms: int, *, by_work: bool = False) -> list[ComparedPolicy]:
    """The policies of a list such as `easy,search@50,pcp20`.

    Raises:
        ConfigError: an unknown one, or one that is there twice.
    """
    found: list[ComparedPolicy] = []
    for text in (word.strip() for word in policies.split(",") if word.strip()):
        name, own_ms = budgeted(text)
        spec = read_policy(name)
        wished = with_budget(spec, own_ms or budget_ms, work=by_work)
        if wished is None and own_ms is not None:
            raise ConfigError("policies", f"'{text}': {name} has no budget; leave the @ out")
        shown = spec.name if wished is None else f"{spec.name}@{own_ms or budget_ms}"
        if any(one.name == shown for one in found):
            raise ConfigError("policies", f"{shown} is listed twice")
        budget = None if wished is None else own_ms or budget_ms
        found.append(ComparedPolicy(shown, wished or spec, budget))
    if not found:
        raise ConfigError("policies", "is empty; give for example easy,conservative")
    return found


def compare(
    instances: Sequence[Recording],
    groups: Sequence[str],
    policies: Sequence[ComparedPolicy],
    seed: int,
    *,
    by_work: bool = False,
) -> list[DispatchResult]:
    """Plans every instance with every policy; shows progress on a terminal."""
    results: list[DispatchResult] = []
    console = Console(stderr=True)
    with ExitStack() as stack:
        solvers = {
            one.name: None if by_work else stack.enter_context(a_solver()) for one in policies
        }
        for one in policies:  # exclude one-time loading and start-up
            _rerun(instances[0], one, seed, solvers[one.name])
        bars = stack.enter_context(
            Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeRemainingColumn(),
                console=console,
                disable=not console.is_terminal,
                transient=True,
            )
        )
        task = bars.add_task("", total=len(instances) * len(policies))
        for recording, group in zip(instances, groups, strict=True):
            for one in policies:
                bars.update(task, description=f"{recording.name}: {one.name}")
                results.append(_result(recording, group, one, seed, solvers[one.name]))
                bars.advance(task)
    return results


def _rerun(
    recording: Recording, entry: ComparedPolicy, seed: int, solver: ChildSolver | None
) -> Rerun:
    if solver is None:
        return rerun(recording, entry.spec, seed=seed)
    return rerun_warm(recording, entry.spec, seed=seed, solver=solver)


def _result(
    recording: Recording, group: str, entry: ComparedPolicy, seed: int, solver: ChildSolver | None
) -> DispatchResult:
    again = _rerun(recording, entry, seed, solver)
    snapshot, done = recording.snapshot, again.telemetry.dispatched
    return DispatchResult(
        instance=recording.name,
        group=group,
        jobs=len(snapshot.jobs),
        running=len(snapshot.running),
        nodes=len(snapshot.nodes),
        policy=entry.name,
        figures=judge(snapshot, completed(snapshot, again.plan, entry.spec, recording.planning)),
        decision_ms=again.decision_ms,
        cpu_ms=again.cpu_ms,
        failed=again.failed,
        fallback=done.fallback if done is not None else "",
        gap=done.gap if done is not None else None,
    )


def load_instances(directory: Path, minimum: int) -> tuple[list[Recording], list[str]]:
    """Reads all instances of a directory, and the sub-directory that each lies in.

    Raises:
        RecordingError: there is none, or one is damaged.
    """
    found = [(path, read_recording(path)) for path in find_recordings(directory)]
    found = [(path, one) for path, one in found if len(one.snapshot.jobs) >= minimum]
    if not found:
        raise ConfigError("min-queue", f"no instance in {directory} has {minimum} waiting jobs")
    groups = [str(path.parent.relative_to(directory)) for path, _ in found]
    return [one for _, one in found], ["all" if group == "." else group for group in groups]


# ------------------------------------------------------------ figures


def summary(
    results: Sequence[DispatchResult], policies: Sequence[ComparedPolicy], objective: str
) -> dict[str, Any]:
    """All figures of a comparison: group by group, and over all instances as group `all`."""
    groups = sorted({one.group for one in results})
    over = {"all": results} | {
        group: [one for one in results if one.group == group] for group in groups
    }
    return {
        "objective": objective,
        "instances": len({(one.group, one.instance) for one in results}),
        "policies": [
            {**describe(one.spec), "name": one.name, "budget_ms": one.budget_ms} for one in policies
        ],
        "groups": {
            name: {
                one.name: _figures([r for r in part if r.policy == one.name], part, objective)
                for one in policies
            }
            for name, part in over.items()
        },
        "results": [_plain(one) for one in results],
    }


def _plain(one: DispatchResult) -> dict[str, Any]:
    named = {key: _rounded(value) for key, value in vars(one).items() if key != "figures"}
    return named | {key: _rounded(value) for key, value in one.figures.plain().items()}


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value


def _figures(
    own: Sequence[DispatchResult], everybody: Iterable[DispatchResult], objective: str
) -> dict[str, Any]:
    best: dict[tuple[str, str], float] = {}
    for one in everybody:
        key = one.group, one.instance
        best[key] = min(best.get(key, float("inf")), one.objective(objective))
    relative = [_ratio(one.objective(objective), best[one.group, one.instance]) for one in own]
    times, cpu = [one.decision_ms for one in own], [one.cpu_ms for one in own]
    gaps = [one.gap for one in own if one.gap is not None]
    return {
        "mean": statistics.fmean(one.objective(objective) for one in own),
        "relative": statistics.fmean(relative),
        "best_of": sum(ratio <= SAME for ratio in relative),
        "decision_ms": {
            "mean": statistics.fmean(times),
            "p50": float(np.percentile(times, 50)),
            "p90": float(np.percentile(times, 90)),
            "max": max(times),
        },
        "cpu_ms": {"mean": statistics.fmean(cpu), "max": max(cpu)},
        "failed": sum(one.failed for one in own),
        "fallbacks": dict(Counter(one.fallback for one in own if one.fallback)),
        "gap_mean": statistics.fmean(gaps) if gaps else None,
        "longest_wait_s": max(one.figures.longest_wait_s for one in own),
    }


def _ratio(value: float, best: float) -> float:
    return 1.0 if value <= best else value / best if best > 0 else float(value > best) + 1.0


def machine() -> dict[str, object]:
    """The machine on which the figures were measured."""
    return {"cpus": os.cpu_count(), "load_average": [round(load, 2) for load in os.getloadavg()]}


def table(figures: Mapping[str, Any], group: str) -> Table:
    """One group's policies, a line each."""
    found = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="bold", title=group)
    found.title_justify = "left"
    found.add_column("policy")
    for name in ("mean", "relative", "best of", "ms mean", "ms p90", "ms max", "served greedily"):
        found.add_column(name, justify="right")
    for policy, one in figures["groups"][group].items():
        times = one["decision_ms"]
        fallbacks = ", ".join(f"{count} {why}" for why, count in one["fallbacks"].items())
        failed = f"{one['failed']} failed" if one["failed"] else ""
        found.add_row(
            policy,
            f"{one['mean']:,.3f}",
            f"{one['relative']:.4f}",
            str(one["best_of"]),
            *(f"{times[key]:,.1f}" for key in ("mean", "p90", "max")),
            ", ".join(part for part in (failed, fallbacks) if part),
        )
    return found
