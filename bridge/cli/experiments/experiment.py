# SPDX-License-Identifier: Apache-2.0
"""`schedbridge experiment`: computes the cells of an experiment that are not kept yet."""

import json
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from bridge.cli.experiments.grid import Grid, grid_of
from bridge.cli.experiments.progress import Board, words
from bridge.cli.experiments.running import Order, compute, jobs_of
from bridge.cli.invocation import given_arguments
from bridge.errors import ConfigError, ResultError
from bridge.experiments import workers
from bridge.experiments.cell import Cell
from bridge.experiments.cost import Cost, Estimates, calibrate, cost_of
from bridge.experiments.definition import read_definition
from bridge.experiments.provenance import provenance, sources
from bridge.experiments.results import CELLS, Result, read_all
from bridge.experiments.run import interruptible, run
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
        bool, typer.Option("--dry-run", help="Say what it will cost; compute nothing else.")
    ] = False,
    number: Annotated[
        int | None,
        typer.Option(
            "--workers", min=1, max=4096, help="Processes of this machine; default: its CPUs."
        ),
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(help="A Dask scheduler that runs: tcp://HOST:PORT or tls://...")
    ] = None,
    on: Annotated[
        Where, typer.Option(help="Where workers are started: this machine, or jobs of Slurm.")
    ] = Where.LOCAL,
    jobs: Annotated[int, typer.Option(min=1, max=10_000, help="Of Slurm: how many.")] = 1,
    cores: Annotated[
        int, typer.Option(min=1, max=4096, help="Of Slurm: CPUs of a job, and workers in it.")
    ] = 1,
    memory: Annotated[str, typer.Option(help="Of Slurm: of a job.")] = "2 GiB",
    walltime: Annotated[str, typer.Option(help="Of Slurm: of a job, HH:MM:SS.")] = "01:00:00",
    partition: Annotated[str, typer.Option(help="Of Slurm; default: Slurm's.")] = "",
    account: Annotated[str, typer.Option(help="Of Slurm; default: Slurm's.")] = "",
    json_output: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Compute an experiment: policies, predictors, traces, seeds and perturbations.

    Results that are kept are not computed again: start it again to continue.
    """
    if scheduler is not None and (on is not Where.LOCAL or number is not None):
        raise ConfigError("scheduler", "its workers are there already: leave --on, --workers out")
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
    slurm_jobs = workers.SlurmJobs(jobs, cores, memory, walltime, partition, account)
    found, stopped = _computed(grid, kept, cost, estimates, json_output=json_output, where=(
        workers.running(scheduler) if scheduler is not None
        else workers.slurm(slurm_jobs, grid.definition.retries, grid.folder) if on is Where.SLURM
        else workers.local(min(number or workers.cores(), max(len(cost.missing), 1)),
                           grid.definition.retries)
    ))  # fmt: skip
    _finish(grid, cost, kept, found, stopped=stopped, json_output=json_output)


def _kept(grid: Grid) -> list[Result]:
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


def _calibrated(grid: Grid, kept: list[Result], cost: Cost, estimates: Estimates) -> Cost:
    """The cost, when the cells of which nothing is known have been tried on few jobs."""

    def tried(cell: Cell) -> Result:
        return compute(Order(cell))[0]

    calibrate(cost.missing, estimates, tried, jobs_of)
    return cost_of(grid.cells, kept, estimates)


def _plain(cost: Cost) -> dict[str, object]:
    return {
        "cells": cost.cells,
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
        line += "; their cost is not known yet (--dry-run tries each on a few jobs)"
    print(f"{line}\nresults: {grid.folder}", flush=True)


def _computed(
    grid: Grid,
    kept: Sequence[Result],
    cost: Cost,
    estimates: Estimates,
    *,
    json_output: bool,
    where: AbstractContextManager[Any],
) -> tuple[list[Result], bool]:
    """The results that were computed, and whether the user stopped it."""
    if not cost.missing:
        return [], False
    arguments = tuple(given_arguments())
    orders = [(cell, Order(cell, arguments, sources())) for cell in cost.missing]
    done = [result for result in kept if result.done]
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    board = Board(grid.cells, done, estimates, console, quiet=json_output)
    with interruptible() as stop, where as client, board.shown():
        found = run(
            client, orders, compute, grid.folder,
            retries=grid.definition.retries, observe=board.observe, stop=stop,
            provenance=lambda: provenance(arguments),
        )  # fmt: skip
    return found, stop.asked > 0


def _finish(
    grid: Grid,
    cost: Cost,
    kept: Sequence[Result],
    found: Sequence[Result],
    *,
    stopped: bool,
    json_output: bool,
) -> None:
    """Says what is there now.

    Raises:
        Exit: it was stopped (130), or cells failed (1).
    """
    failed = [result for result in found if not result.done]
    left = len(cost.missing) - len(found)
    if json_output:
        status = {result.cell.key: result for result in (*kept, *found)}
        print(
            json.dumps(
                {
                    "results": str(grid.folder),
                    **_plain(cost),
                    "computed": len(found) - len(failed),
                    "failed": len(failed),
                    "left": left,
                    "cells": [
                        {
                            "key": cell.key,
                            **{
                                name: getattr(cell, name)
                                for name in ("policy", "predictor", "trace", "seed", "perturbation")
                            },
                            "status": status[cell.key].status if cell.key in status else "missing",
                            "error": status[cell.key].error if cell.key in status else None,
                        }
                        for cell in grid.cells
                    ],
                }
            )
        )
    else:
        for result in failed:
            print(f"failed: {result.cell.label}: {words(result)}", file=sys.stderr)
        print(
            f"{len(found) - len(failed):,} computed, {cost.kept:,} were kept"
            + (f", {len(failed):,} failed" if failed else "")
            + (f", {left:,} left: run it again to continue" if left else "")
        )
    if stopped:
        raise typer.Exit(_STOPPED)
    if failed:
        raise typer.Exit(1)
