# SPDX-License-Identifier: Apache-2.0
"""`schedbridge lab record`: records whole cycles of the running service or of a simulation.

| options | cycles of |
|---|---|
| none | the running service (administrators: a recording holds the jobs of all users) |
| `--trace FILE` | a replay of a trace, on a pool or on `--system FILE` |
| `--system eurora`, `kit` | synthetic jobs on that system (`bridge.lab.sim.workloads.streams`) |
"""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from bridge.cli.bundled import bundled
from bridge.cli.operators.asking import MAX, ConfigOption, SocketOption
from bridge.cli.simulation.policies import SiteOption, read_planning, read_policy
from bridge.errors import ConfigError, RecordingError
from bridge.lab.sim.recorded.anonymous import Pseudonyms
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.workloads.streams import MIXES, stream, stream_system
from bridge.lab.sim.workloads.swf import read_swf
from bridge.lab.sim.workloads.system import System, pool_of, read_system
from bridge.lab.sim.workloads.workload import Workload, workload_from
from bridge.model.policy import PolicySpec
from bridge.model.snapshot import Snapshot
from bridge.planning.site_rules.rules_text import parse_site
from bridge.ports import Decide, Environment
from bridge.recording.recorder import Recorder
from bridge.recording.recordings import SUFFIX, Recording, encode
from bridge.registry import build, predicting
from bridge.safe_cycle.decider import Decider

_STREAM_JOBS = 3000


@dataclass(frozen=True)
class _World:
    """The simulation, and its source as text."""

    name: str
    workload: Workload
    system: System
    origin: dict[str, str]


class _Enough(Exception):
    """All requested recordings have been made."""


def record(
    *,
    out: Annotated[Path, typer.Option(help="Directory for the files; created if it is missing.")],
    cycles: Annotated[int, typer.Option(min=1, help="Cycles recorded at most.")] = 10,
    min_queue: Annotated[
        int, typer.Option(min=0, max=MAX, help="Only cycles with at least this many waiting jobs.")
    ] = 1,
    anonymise: Annotated[
        bool,
        typer.Option(
            "--anonymise", help="Replace the names of users, accounts and jobs; remove free text."
        ),
    ] = False,
    trace: Annotated[
        Path | None, typer.Option(help="Simulate this trace (.swf[.gz]) instead.")
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            metavar="|".join([*MIXES, "FILE"]),
            help="A synthetic stream on this system; with --trace: YAML description of the nodes.",
        ),
    ] = None,
    policy: Annotated[str, typer.Option(help="Policy of the simulation.")] = "easy",
    predict: Annotated[
        str | None, typer.Option(help="Predictor of run times in the simulation.")
    ] = None,
    every: Annotated[
        int, typer.Option(min=1, help="Only each Nth of the cycles that qualify.")
    ] = 1,
    at: Annotated[
        list[int] | None,
        typer.Option(
            help="The first cycle at this many seconds from the first job; may be repeated."
        ),
    ] = None,
    procs: Annotated[int | None, typer.Option(help="Processors; default: as in the trace.")] = None,
    jobs: Annotated[int | None, typer.Option(min=1, help="Only the first N jobs.")] = None,
    load: Annotated[
        float, typer.Option(min=0.01, max=10.0, help="Load of a synthetic stream.")
    ] = 0.9,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all random numbers.")] = 0,
    site: SiteOption = None,
    patience_s: Annotated[
        int,
        typer.Option(
            "--patience", min=1, help="Seconds to wait for each cycle of the live service."
        ),
    ] = 600,
    config: ConfigOption = None,
    socket: SocketOption = None,
) -> None:
    """Record cycles, to plan them again (replay), compare policies (bench) or report a bug."""
    files = _Files(out, cycles, Pseudonyms() if anonymise else None)
    if trace is None and system is None:
        if at or every > 1 or {jobs, procs, predict, site} != {None}:
            raise ConfigError(
                "",
                "--at, --every, --jobs, --procs, --predict and --site are for simulations: give"
                " --trace or --system, too",
            )
        from bridge.cli.simulation.record_live import record_live  # noqa: PLC0415 (needs gRPC)

        record_live(
            files.keep, cycles, min_queue, patience_s=patience_s, config=config, socket=socket
        )
        return
    world = _world(trace, system, procs=procs, jobs=jobs, load=load, seed=seed)
    spec = read_policy(policy) if predict is None else predicting(read_policy(policy), predict)
    wanted = _Chosen(int(world.workload.submit_s[0]), min_queue, every, sorted(at or []))
    number = _simulate(
        world, spec, read_planning(site), seed=seed, wanted=wanted, files=files, cycles=cycles
    )
    if number == 0:
        raise RecordingError(
            str(out), "", f"nothing recorded: no cycle had {min_queue} waiting jobs at such a time"
        )
    print(f"{number} cycles in {out}")


def _simulate(
    world: _World,
    spec: PolicySpec,
    planning: Mapping[str, Any],
    *,
    seed: int,
    wanted: "_Chosen",
    files: "_Files",
    cycles: int,
) -> int:
    """Keeps the wanted cycles of a simulation; returns how many, at most `cycles`."""
    workload = world.workload
    truth = dict(zip(workload.id.tolist(), workload.runtime_s.tolist(), strict=True))
    decider = Decider(
        build(spec), seed=seed, site=parse_site(planning), environment=Environment(run_s=truth)
    )
    number = 0

    def keep(recording: Recording) -> None:
        nonlocal number
        number += 1
        origin = {**world.origin, "policy": spec.name}
        files.keep(replace(recording, origin=origin), f"{world.name}-{number:03d}")
        if number == cycles or wanted.over:
            raise _Enough

    decide: Decide = Recorder(decider, lambda: (spec, planning), wanted=wanted, keep=keep).decide
    console = Console(stderr=True)
    with console.status(f"simulating {len(world.workload):,} jobs ...") as status:

        def observe(point: object) -> None:
            del point
            status.update(f"{number} of {cycles} cycles recorded")

        with contextlib.suppress(_Enough):
            simulate(world.workload, world.system, decide, observe=observe)
    return number


# ------------------------------------------------------------ which cycles


class _Chosen:
    """Selects the cycles of a simulation to keep.

    Attributes:
        over: no further one will be kept.
    """

    def __init__(self, begin_s: int, min_queue: int, every: int, at_s: list[int]) -> None:
        self._begin_s, self._min_queue, self._every = begin_s, min_queue, every
        self._timed = bool(at_s)
        self._at_s = at_s
        self._seen = 0

    @property
    def over(self) -> bool:
        return self._timed and not self._at_s

    def __call__(self, snapshot: Snapshot) -> bool:
        if len(snapshot.jobs) < self._min_queue:
            return False
        if self._timed:
            due = [at_s for at_s in self._at_s if self._begin_s + at_s <= snapshot.now_s]
            self._at_s = self._at_s[len(due) :]
            return bool(due)
        self._seen += 1
        return (self._seen - 1) % self._every == 0


class _Files:
    """The directory that recordings are written to; only their owner may read them."""

    def __init__(self, out: Path, cycles: int, pseudonyms: Pseudonyms | None) -> None:
        self._out, self._cycles, self._pseudonyms = out, cycles, pseudonyms

    def keep(self, recording: Recording, name: str) -> Path:
        """Writes one file.

        Raises:
            RecordingError: it cannot be written.
        """
        if self._pseudonyms is not None:
            recording = self._pseudonyms.of(recording)
        path = self._out / f"{name}{SUFFIX}"
        try:
            self._out.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as to:
                to.write(encode(recording))
        except OSError as error:
            raise RecordingError(str(path), "", f"cannot be written: {error.strerror}") from None
        return path


# ------------------------------------------------------------ what is simulated


def _world(
    trace: Path | None,
    system: str | None,
    *,
    procs: int | None,
    jobs: int | None,
    load: float,
    seed: int,
) -> _World:
    if trace is None:
        assert system is not None
        if procs is not None:
            raise ConfigError("procs", "is for traces on a pool")
        machine = stream_system(system)
        made = stream(system, machine, jobs or _STREAM_JOBS, load=load, seed=seed)
        return _World(f"{system}-{seed}", made, machine, {"stream": made.name})
    if system is not None and procs is not None:
        raise ConfigError(
            "procs", "the system description states the processors; leave out one of the two"
        )
    described = read_system(Path(system)) if system is not None else None
    swf = read_swf(bundled(trace))
    if described is None:
        workload = workload_from(swf, procs)
        described = pool_of(workload.processors_total)
    else:
        workload = workload_from(swf, described.processors, described.dialect)
    notes = {key: swf.directive(key.capitalize()) for key in ("computer", "installation")}
    notes |= {"acknowledge": swf.directive("Acknowledge"), "system": described.name}
    return _World(
        trace.name.removesuffix(".gz").removesuffix(".swf"),
        workload if jobs is None else workload.first(jobs),
        described,
        {"trace": trace.name} | {key: text for key, text in notes.items() if text},
    )
