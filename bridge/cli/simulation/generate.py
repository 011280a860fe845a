# SPDX-License-Identifier: Apache-2.0
"""`lab generate`: jobs of a model, or of one fitted to a given trace or site workload."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from bridge.cli.bundled import bundled
from bridge.errors import ConfigError, TraceError
from bridge.lab.sim.workloads.generation.fitted import MAX_JOBS, fit
from bridge.lab.sim.workloads.generation.lublin import PROCESSORS, lublin
from bridge.lab.sim.workloads.generation.mixes import (
    load_of,
    records_of,
    records_of_trace,
    with_gpus,
    with_load,
    with_memory,
)
from bridge.lab.sim.workloads.records.as_swf import as_swf
from bridge.lab.sim.workloads.records.job_record import JobRecord, SiteWorkload
from bridge.lab.sim.workloads.records.record_file import (
    is_site_workload,
    read_site_workload,
    write_site_workload,
)
from bridge.lab.sim.workloads.swf import read_swf, write_swf
from bridge.lab.sim.workloads.system import LARGEST_POOL
from bridge.lab.sim.workloads.workload import machine_size

LUBLIN = "lublin"
QUANTILES = (10, 25, 50, 75, 90, 95, 99)
_MAX_MIB = 1 << 30


def generate(
    model: Annotated[
        str,
        typer.Argument(
            help="lublin: the model of Lublin and Feitelson. Or a trace or site workload: a model"
            " of sessions is fitted to it."
        ),
    ],
    *,
    out: Annotated[
        Path,
        typer.Option(help="The jobs: .swf[.gz], or .workload.jsonl[.gz], which loses nothing."),
    ],
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Number of jobs (lublin only); default: 10,000.")
    ] = None,
    weeks: Annotated[
        float | None,
        typer.Option(help="Number of weeks (fitted models only); default: as in the file."),
    ] = None,
    whole_days: Annotated[
        bool,
        typer.Option(
            "--whole-days",
            help="Fitted models: draw all sessions of a recorded day together.",
        ),
    ] = False,
    procs: Annotated[
        int | None,
        typer.Option(
            min=1, help="Processors of the machine; default: lublin 128, else as in the file."
        ),
    ] = None,
    load: Annotated[
        float | None,
        typer.Option(help="Offered load, as a share of the machine; default: the model's."),
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option(
            metavar="LOW:HIGH",
            help="Draw memory per CPU, MiB; default: as in the file; lublin: none.",
        ),
    ] = None,
    gpus: Annotated[
        str | None,
        typer.Option(
            metavar="SHARE:MOST",
            help="SHARE percent of the jobs request up to MOST GPUs per node.",
        ),
    ] = None,
    node_cpus: Annotated[
        int | None, typer.Option(min=1, help="CPUs of a node, for --gpus.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same jobs.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Generate jobs, seeded, and write them as a trace or a site workload."""
    if not is_site_workload(out) and not out.name.endswith((".swf", ".swf.gz")):
        raise ConfigError("out", f"{out.name} must end in .swf[.gz] or .workload.jsonl[.gz]")
    if out.exists() and not force:
        raise ConfigError("out", "is there already; give --force to replace it", file=str(out))
    if load is not None and not 0 < load <= 100:
        raise ConfigError("load", f"is a share of the machine, 0.8 for example, not {load}")
    amounts = _pair("memory", memory, int, 1, _MAX_MIB)
    share = _pair("gpus", gpus, float, 0, 1024)
    if share is not None and (node_cpus is None or not is_site_workload(out)):
        raise ConfigError("gpus", "needs --node-cpus, and a --out with .workload.jsonl")
    if model == LUBLIN:
        if whole_days:
            raise ConfigError("whole-days", f"{LUBLIN} has no recorded days: leave it out")
        source = _lublin(jobs, weeks, procs, seed)
    else:
        source = _fitted(
            bundled(Path(model)), jobs, weeks, procs, load, seed, whole_days=whole_days
        )
    drawn, dice = source.drawn, np.random.default_rng((seed, 1))
    if amounts is not None:
        drawn = with_memory(drawn, int(amounts[0]), int(amounts[1]), dice)
    if share is not None and node_cpus is not None:
        drawn = with_gpus(drawn, share[0] / 100, int(share[1]), node_cpus, dice)
    if load is not None and model == LUBLIN:
        drawn = with_load(drawn, source.processors, load)
    about = {"generator": source.what, "seed": str(seed)}
    site = SiteWorkload(source.name, drawn, processors=source.processors, about=about)
    _write(out, site)
    facts = {
        "written": str(out),
        "jobs": len(drawn),
        "processors": source.processors,
        "load": load_of(drawn, source.processors) if source.processors else None,
        "seed": seed,
        "quantiles": _quantiles(source.given, drawn),
    }
    if json_output:
        print(json.dumps(facts))
        return
    shown = "" if facts["load"] is None else f", load {facts['load']:.3f}"
    print(f"{len(drawn):,} jobs on {source.processors:,} processors{shown}; written: {out}")
    if source.given:
        print()
        Console(highlight=False, soft_wrap=True).print(_table(source.given, drawn))


@dataclass(frozen=True)
class _Source:
    """Drawn jobs, and those that the model was fitted to."""

    name: str
    what: str
    drawn: Sequence[JobRecord]
    processors: int
    given: Sequence[JobRecord] = ()


def _lublin(jobs: int | None, weeks: float | None, procs: int | None, seed: int) -> _Source:
    if weeks is not None:
        raise ConfigError("weeks", "the model draws a number of jobs: give --jobs")
    count, processors = jobs or 10_000, procs or PROCESSORS
    if count > MAX_JOBS or processors > LARGEST_POOL:
        raise ConfigError("jobs", f"at most {MAX_JOBS:,}, on at most {LARGEST_POOL:,} processors")
    drawn = records_of(lublin(count, processors, seed))
    return _Source("lublin", "Lublin and Feitelson 2003", drawn, processors)


def _fitted(  # noqa: PLR0917 - each is an option
    path: Path,
    jobs: int | None,
    weeks: float | None,
    procs: int | None,
    load: float | None,
    seed: int,
    *,
    whole_days: bool,
) -> _Source:
    if jobs is not None:
        raise ConfigError("jobs", "a fitted model draws weeks: give --weeks")
    if is_site_workload(path):
        site = read_site_workload(path)
        given, processors = list(site.jobs), procs or site.processors
    else:
        trace = read_swf(path)
        given, processors = records_of_trace(trace), procs or machine_size(trace)
    if not any(job.cpus > 0 and job.runtime_s > 0 for job in given):
        raise TraceError(str(path), None, "has no job that ran: there is nothing to fit")
    model = fit(given)
    wanted = model.weeks if weeks is None else weeks
    if not 1 / 168 <= wanted <= 5200:
        raise ConfigError("weeks", f"must be an hour (0.006) to 5200, not {wanted}")
    factor = 1.0
    if load is not None:
        if not processors or not (had := load_of(given, processors)):
            raise ConfigError("load", "the given jobs have none: give --procs, or more jobs")
        factor = load / had
    what = f"{'days' if whole_days else 'sessions'} fitted to {path.name}"
    drawn = model.draw(wanted, seed, factor, whole_days=whole_days)
    return _Source(f"like {path.name}", what, drawn, processors, given)


def _pair(
    option: str, text: str | None, kind: Callable[[str], float], low: float, high: float
) -> tuple[float, float] | None:
    if text is None:
        return None
    first, colon, second = text.partition(":")
    try:
        found = kind(first), kind(second)
    except ValueError:
        found = (-1.0, -1.0)
    shares = option == "gpus"
    sound = low <= found[0] <= (100 if shares else found[1]) and 1 <= found[1] <= high
    if not colon or not sound or (shares and found[1] != int(found[1])):
        example = "20:4: 20 % of the jobs, up to 4 on a node" if shares else "500:4000"
        raise ConfigError(option, f"'{text[:40]}' is not of the form {example}")
    return found


def _write(path: Path, site: SiteWorkload) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if is_site_workload(path):
            write_site_workload(path, site)
        else:
            trace = as_swf(site)
            write_swf(path, trace.header, trace.columns)
    except OSError as error:
        raise ConfigError("out", f"cannot write: {error.strerror}", file=str(path)) from None


# ---------------------------------------------------------------- comparison


def _hourly(jobs: Sequence[JobRecord]) -> list[float]:
    hours = np.array([job.submit_s // 3600 for job in jobs])
    return [float(count) for count in np.bincount(hours - hours.min())]


_MARGINALS: dict[str, Callable[[Sequence[JobRecord]], Sequence[float]]] = {
    "processors": lambda jobs: [job.cpus for job in jobs],
    "run time, s": lambda jobs: [job.runtime_s for job in jobs],
    "time limit, s": lambda jobs: [job.time_limit_s for job in jobs],
    "between submissions, s": lambda jobs: np.diff([job.submit_s for job in jobs]).tolist(),
    "jobs in an hour": _hourly,
}


def _quantiles(
    given: Sequence[JobRecord], drawn: Sequence[JobRecord]
) -> dict[str, dict[str, list[float]]]:
    """Quantiles of both, by marginal."""
    both = {"given": sorted(given, key=lambda job: job.submit_s), "drawn": list(drawn)}
    return {
        name: {
            key: [round(value, 3) for value in np.percentile(take(jobs), QUANTILES).tolist()]
            for key, jobs in both.items()
            if len(jobs) > 1
        }
        for name, take in _MARGINALS.items()
    }


def _table(given: Sequence[JobRecord], drawn: Sequence[JobRecord]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("", "", *(f"{each} %" for each in QUANTILES)):
        table.add_column(heading, justify="right" if heading else "left")
    for name, rows in _quantiles(given, drawn).items():
        for key, values in rows.items():
            table.add_row(name if key == "given" else "", key, *(f"{v:,.0f}" for v in values))
    return table
