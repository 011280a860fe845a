# SPDX-License-Identifier: Apache-2.0
"""`schedbridge lab experiment`: computes the cells of an experiment that are not kept yet."""

import json
import shlex
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from bridge.cli.experiments.grid import Grid, grid_of
from bridge.cli.experiments.progress import words
from bridge.cli.experiments.running import Order, compute, jobs_of
from bridge.cli.experiments.session import RunSession
from bridge.cli.invocation import given_arguments
from bridge.errors import ConfigError, ResultError
from bridge.lab.experiments import workers
from bridge.lab.experiments.cell import Cell
from bridge.lab.experiments.cost import Cost, Estimates, calibrate, cost_of
from bridge.lab.experiments.definition import read_definition
from bridge.lab.experiments.provenance import provenance
from bridge.lab.experiments.results import CELLS, CellResult, read_all, write_about
from bridge.units import format_duration

_STOPPED = 130


class Where(StrEnum):
    """What starts workers."""

    LOCAL = "local"
    SLURM = "slurm"


def experiment(
    file: Annotated[Path, typer.Argument(help="The experiment, YAML (docs/EXPERIMENTS.md).")],
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Estimate the cost; compute no results.")
    ] = False,
    number: Annotated[
        int | None,
        typer.Option(
            "--workers", min=1, max=4096, help="Processes on this machine; default: one per CPU."
        ),
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="A running Dask scheduler: tcp://HOST:PORT or tls://...")
    ] = None,
    on: Annotated[
        Where, typer.Option(help="Where workers run: on this machine, or in Slurm jobs.")
    ] = Where.LOCAL,
    jobs: Annotated[
        int, typer.Option(min=1, max=10_000, help="With --on slurm: number of jobs.")
    ] = 1,
    cores: Annotated[
        int, typer.Option(min=1, max=4096, help="With --on slurm: CPUs, and workers, per job.")
    ] = 1,
    memory: Annotated[str, typer.Option(help="With --on slurm: memory per job.")] = "2 GiB",
    walltime: Annotated[
        str, typer.Option(help="With --on slurm: time limit per job, HH:MM:SS.")
    ] = "01:00:00",
    partition: Annotated[
        str, typer.Option(help="With --on slurm; default: Slurm's default partition.")
    ] = "",
    account: Annotated[
        str, typer.Option(help="With --on slurm; default: the user's default account.")
    ] = "",
    width: Annotated[
        float | None,
        typer.Option(
            "--until-sure",
            metavar="WIDTH",
            help="Add seeds until the intervals of the mean wait are at most this wide: 0.05 for"
            " 5 % of the baseline's mean wait.",
        ),
    ] = None,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Compute an experiment: policies, predictors, traces, seeds and perturbations.

    Kept results are not computed again: to continue, run the command again.
    """
    if scheduler is not None and (on is not Where.LOCAL or number is not None):
        raise ConfigError("scheduler", "it has its own workers: remove --on and --workers")
    if width is not None and not 0 < width < 1:
        raise ConfigError("until-sure", f"must be a share such as 0.05 for 5 %, not {width:g}")
    grid = grid_of(read_definition(file), file)
    kept = _kept(grid)
    estimates = Estimates(kept)
    cost = cost_of(grid.cells, kept, estimates)
    if dry_run:
        cost = _calibrated(grid, kept, cost, estimates)
    _announce(grid, cost, number or workers.cores(), quiet=json_output)
    if dry_run:
        if json_output:
            print(json.dumps(_plain(cost)))
        return
    retries = grid.definition.retries
    here: AbstractContextManager[Any]
    if scheduler is not None:
        here = workers.running(scheduler)
    elif on is Where.SLURM:
        slurm_jobs = workers.SlurmJobs(jobs, cores, memory, walltime, partition, account)
        here = workers.slurm(slurm_jobs, retries, grid.folder)
    else:
        wanted = number or workers.cores()
        here = workers.local(wanted if width else min(wanted, len(cost.missing) or 1), retries)
    write_about(grid.folder, _about(grid))
    session = RunSession(grid, kept, estimates, width=width, quiet=json_output)
    session.compute(here)
    _finish(session, kept, json_output=json_output)


def _kept(grid: Grid) -> list[CellResult]:
    """Results in the folder; files that are none are named, and computed again."""
    if not (grid.folder / CELLS).is_dir():
        return []

    def told(error: ResultError) -> None:
        print(f"warning: {error}", file=sys.stderr)

    return [
        result
        for result, path in read_all(grid.folder, told)
        if not result.done or path.with_suffix(".npz").is_file()
    ]


def _calibrated(grid: Grid, kept: list[CellResult], cost: Cost, estimates: Estimates) -> Cost:
    """The cost, when the cells of which nothing is known have been tried on few jobs."""

    def tried(cell: Cell) -> CellResult:
        return compute(Order(cell))[0]

    calibrate(cost.missing, estimates, tried, jobs_of)
    return cost_of(grid.cells, kept, estimates)


def _plain(cost: Cost) -> dict[str, object]:
    return {
        "cells_wanted": cost.cells,
        "kept": cost.kept,
        "failed_before": cost.failed,
        "to_compute": len(cost.missing),
        "cpu_s": round(cost.cpu_s, 3),
        "of_unknown_cost": cost.unknown,
    }


def _announce(grid: Grid, cost: Cost, cpus: int, *, quiet: bool) -> None:
    for note in grid.notes:
        print(f"note: {note}", file=sys.stderr)
    if quiet:
        return
    parts = [f"{cost.cells:,} cells", f"{cost.kept:,} kept", f"{len(cost.missing):,} to compute"]
    if cost.failed:
        parts[-1] += f" ({cost.failed:,} of them failed before)"
    line = ", ".join(parts)
    if cost.missing and cost.unknown < len(cost.missing):
        line += f"; about {format_duration(cost.cpu_s)} of CPU time"
        line += f", {format_duration(cost.cpu_s / cpus)} on {cpus} CPUs"
        if cost.unknown:
            line += f", and {cost.unknown:,} cells of unknown cost"
    elif cost.missing:
        line += "; their cost is unknown (--dry-run estimates it from a few jobs of each)"
    print(f"{line}\nresults: {grid.folder}", flush=True)


def _about(grid: Grid) -> dict[str, Any]:
    """What the folder of results says of the experiment."""
    return {
        "name": grid.definition.name or grid.path.stem,
        "baseline": "/".join(grid.baseline),
        "provenance": provenance(given_arguments()),
    }


def _finish(session: RunSession, kept: Sequence[CellResult], *, json_output: bool) -> None:
    """Says what is there now.

    Raises:
        Exit: it was stopped (130), or cells failed (1).
    """
    grid, found = session.grid, session.found
    failed = [result for result in found if not result.done]
    status = {result.cell.key: result for result in (*kept, *found)}
    cells = {cell.key for cell in grid.cells}
    were = sum(result.done for result in kept if result.cell.key in cells)
    left = len(cells) - were - len(found)
    if json_output:
        told = {
            "results": str(grid.folder),
            "cells_wanted": len(cells),
            "kept": were,
            "computed": len(found) - len(failed),
            "failed": len(failed),
            "left": left,
            "until_sure": session.words or None,
            "cells": [_row(cell, status.get(cell.key)) for cell in grid.cells],
        }
        print(json.dumps(told))
    else:
        alike: dict[str, list[str]] = {}
        for result in failed:
            alike.setdefault(words(result), []).append(result.cell.label)
        for text, labels in alike.items():
            more = f" and {len(labels) - 1:,} more" if len(labels) > 1 else ""
            print(f"failed: {labels[0]}{more}: {text.removeprefix('failed: ')}", file=sys.stderr)
        for cell in grid.cells:
            for doubt in status[cell.key].doubts if cell.key in status else ():
                print(f"warning: {cell.label}: {doubt}", file=sys.stderr)
        print(
            f"{len(found) - len(failed):,} computed, {were:,} were kept"
            + (f", {len(failed):,} failed" if failed else "")
            + (f", {left:,} left: run it again to continue" if left else "")
        )
        if session.words:
            print(session.words)
        if were + len(found) > len(failed):
            print(f"compare: schedbridge lab experiment-report {shlex.quote(str(grid.path))}")
    if session.stopped:
        raise typer.Exit(_STOPPED)
    if failed:
        raise typer.Exit(1)


def _row(cell: Cell, result: CellResult | None) -> dict[str, object]:
    """A cell in the JSON."""
    names = ("policy", "predictor", "trace", "seed", "perturbation")
    return {
        "key": cell.key,
        **{name: getattr(cell, name) for name in names},
        "status": "missing" if result is None else result.status,
        "error": None if result is None else result.error,
        "doubts": [] if result is None else list(result.doubts),
    }
