# SPDX-License-Identifier: Apache-2.0
"""`schedbridge lab replay`: plans recorded cycles again, and compares with the recorded plans."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from bridge.cli.operators.asking import when
from bridge.cli.simulation.policies import SiteOption, read_planning, read_policy
from bridge.cli.simulation.solvers import a_solver, rerun_warm
from bridge.errors import RecordingError
from bridge.lab.report.ascii import LETTERS, ascii_gantt
from bridge.lab.sim.recorded.anonymous import Pseudonyms
from bridge.lab.sim.recorded.judging import PlanFigures, judge
from bridge.lab.sim.recorded.rerun import Moved, Rerun, completed, moved
from bridge.model.plan import Plan
from bridge.model.policy import PolicySpec
from bridge.model.snapshot import Snapshot
from bridge.recording.recordings import Recording, find_recordings, read_recording, write_recording
from bridge.solver_process import ChildSolver
from bridge.units import NEVER, UNPLANNED, format_duration

_MAX_NODES, _MAX_JOBS, _MAX_SHOWN = 40, len(LETTERS), 20


@dataclass(frozen=True)
class _Compared:
    recording: Recording
    spec: PolicySpec
    again: Rerun
    moved: list[Moved]
    before: PlanFigures
    after: PlanFigures


def replay(
    files: Annotated[
        list[Path], typer.Argument(help="Recordings, or directories of them.", metavar="FILE...")
    ],
    *,
    policy: Annotated[
        str | None, typer.Option(help="A preset or a YAML file; default: the recorded policy.")
    ] = None,
    site: SiteOption = None,
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Seed of all random numbers; default: the recorded one."),
    ] = None,
    anonymise: Annotated[
        Path | None,
        typer.Option(
            help="Directory for copies without names of people and jobs; these are replayed."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Plan recorded cycles again; show which starts differ, and the quality of both plans."""
    spec = read_policy(policy) if policy is not None else None
    planning = read_planning(site) if site is not None else None
    found: list[_Compared] = []
    with a_solver() as solver:
        for path in _paths(files):
            recording = read_recording(path)
            if anonymise is not None:
                recording = _copy(recording, anonymise, found)
            compared = _compare(recording, spec, seed, solver, planning)
            found.append(compared)
            if not as_json:
                _show(compared)
    if as_json:
        print(json.dumps({"replays": [_figures(one) for one in found]}))
    elif len(found) > 1:
        same = sum(not one.moved for one in found)
        print(f"\n{len(found)} recordings, {same} with the same starts")


def _paths(files: Sequence[Path]) -> list[Path]:
    return [
        path for named in files for path in (find_recordings(named) if named.is_dir() else [named])
    ]


_PSEUDONYMS = Pseudonyms()


def _copy(recording: Recording, directory: Path, done: Sequence[_Compared]) -> Recording:
    path = directory / Path(recording.path).name
    if any(path == Path(one.recording.path) for one in done):
        raise RecordingError(recording.path, "", f"would overwrite {path}: two files of one name")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordingError(str(directory), "", f"cannot be made: {error.strerror}") from None
    nameless = replace(_PSEUDONYMS.of(recording), path=str(path))
    write_recording(path, nameless)
    return nameless


def _compare(
    recording: Recording,
    spec: PolicySpec | None,
    seed: int | None,
    solver: ChildSolver,
    planning: Mapping[str, object] | None,
) -> _Compared:
    chosen = spec or recording.policy
    again = rerun_warm(recording, chosen, seed=seed, solver=solver, planning=planning)
    snapshot = recording.snapshot
    return _Compared(
        recording,
        chosen,
        again,
        moved(snapshot, recording.plan, again.plan),
        judge(
            snapshot,
            completed(snapshot, recording.plan, recording.policy, recording.planning),
        ),
        judge(
            snapshot,
            completed(
                snapshot, again.plan, chosen, recording.planning if planning is None else planning
            ),
        ),
    )


# ------------------------------------------------------------ output


def _figures(one: _Compared) -> dict[str, object]:
    snapshot, plan = one.recording.snapshot, one.again.plan
    return {
        "file": one.recording.path,
        "now_s": snapshot.now_s,
        "jobs": len(snapshot.jobs),
        "running": len(snapshot.running),
        "nodes": len(snapshot.nodes),
        "recorded_policy": one.recording.policy.name,
        "policy": one.spec.name,
        "same_starts": not one.moved,
        "moved": [asdict(job) for job in one.moved],
        "recorded": one.before.plain(),
        "replayed": one.after.plain(),
        "decision_ms": one.again.decision_ms,
        "failed": one.again.failed,
        "fallback": _fallback(one),
        "notes": list(plan.notes),
    }


def _fallback(one: _Compared) -> str:
    """Why a greedy plan was used (`bridge.model.decisions.answer`); empty: it was not."""
    done = one.again.telemetry.dispatched
    return "" if done is None else done.fallback


def _show(one: _Compared) -> None:
    snapshot, recording = one.recording.snapshot, one.recording
    print(
        f"{recording.path}: {when(snapshot.now_s)}, {len(snapshot.jobs):,} jobs wait, "
        f"{len(snapshot.running):,} run on {len(snapshot.nodes):,} nodes"
    )
    for key, text in recording.origin.items():
        print(f"  {key}: {text}")
    print(f"  {'':<24}{'recorded':>16}{'replayed':>16}")
    print(f"  {'policy':<24}{recording.policy.name:>16} {one.spec.name:>15}")
    before, after = one.before.plain(), one.after.plain()
    for label, name in (
        ("jobs with a start", "rows"),
        ("start now", "starts_now"),
        ("mean slowdown", "slowdown"),
        ("mean bounded slowdown", "bounded-slowdown"),
        ("mean delay / length", "delay"),
        ("mean wait, s", "wait"),
        ("longest wait, s", "longest_wait_s"),
    ):
        form = ",.2f" if isinstance(before[name], float) else ","
        print(f"  {label:<24}{before[name]:>16{form}}{after[name]:>16{form}}")
    print(f"  {'decision, ms':<24}{'':>16}{one.again.decision_ms:>16,.1f}")
    if why := _fallback(one):
        print(f"  {'greedy plan used':<24}{'':>16}{why:>16}")
    for note in one.again.plan.notes:
        print(f"  note: {note}")
    _show_moved(one.moved, snapshot)
    if len(snapshot.nodes) <= _MAX_NODES:
        print(_gantt(snapshot, one.again.plan))


def _show_moved(jobs: Sequence[Moved], snapshot: Snapshot) -> None:
    if not jobs:
        print("  the same starts")
        return
    print(f"  {len(jobs):,} of {len(snapshot.jobs):,} jobs start at other times:")
    for job in jobs[:_MAX_SHOWN]:
        before = ", ".join(_start(at, snapshot.now_s) for at in job.before_s[:3]) or "no row"
        after = ", ".join(_start(at, snapshot.now_s) for at in job.after_s[:3]) or "no row"
        print(f"    {job.job:<14}{before:>22} -> {after}")
    if len(jobs) > _MAX_SHOWN:
        print(f"    and {len(jobs) - _MAX_SHOWN:,} more (--json has them all)")


def _start(at_s: int, now_s: int) -> str:
    if at_s == NEVER:
        return "never"
    if at_s == UNPLANNED:
        return "not planned"
    return "now" if at_s == now_s else f"in {format_duration(at_s - now_s)}"


def _gantt(snapshot: Snapshot, plan: Plan) -> str:
    """Running jobs first, then the plan by start; those beyond the letters are left out."""
    running = snapshot.running
    rows = np.flatnonzero((plan.start_s != NEVER) & (plan.start_s != UNPLANNED))
    rows = rows[np.argsort(plan.start_s[rows], kind="stable")]
    rows = rows[: max(_MAX_JOBS - len(running), 0)]
    names = [*running.id.tolist(), *snapshot.jobs.id[plan.job[rows]].tolist()]
    start = [*[snapshot.now_s] * len(running), *plan.start_s[rows].tolist()]
    end = [*np.maximum(running.end_s, snapshot.now_s + 1).tolist(), *plan.end_s[rows].tolist()]
    nodes = [running.nodes[a:b] for a, b in zip(running.indptr, running.indptr[1:], strict=False)]
    nodes += [plan.nodes_of(row) for row in rows.tolist()]
    chart = ascii_gantt(
        snapshot.nodes.names,
        np.array(start, dtype=np.int64),
        np.array(end, dtype=np.int64),
        np.concatenate(([0], np.cumsum([len(held) for held in nodes]))).astype(np.int64),
        np.concatenate([np.zeros(0, np.int32), *nodes]),
        origin_s=snapshot.now_s,
    )
    words = " ".join(
        f"{LETTERS[at % len(LETTERS)]}={name}" for at, name in enumerate(names[:_MAX_JOBS])
    )
    return f"{chart}\n{words}"
