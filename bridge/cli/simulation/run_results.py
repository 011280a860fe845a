# SPDX-License-Identifier: Apache-2.0
"""Common parts of `simulate` and `demo`: runs of the report, output files, and the table."""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from rich.table import Table
from rich.text import Text

from bridge.cli.simulation.sharing import shared
from bridge.errors import ConfigError
from bridge.extensions.power.columns import NAME
from bridge.extras import has
from bridge.lab.report.columns import columns_of
from bridge.lab.report.html import write_html
from bridge.lab.report.run import Run, figures, file_word, write_jobs_csv
from bridge.lab.sim.runs.backlog import Growing, growing
from bridge.lab.sim.runs.power_options import end_s, measured
from bridge.lab.sim.runs.simulation_result import SimulationResult
from bridge.lab.sim.workloads.swf import Field, Trace, write_swf
from bridge.measures import measure
from bridge.model.parts import NO_PARTS
from bridge.units import NEVER


def run_of(
    policy: str, engine: str, result: SimulationResult, *, fell_back: int = 0, because: str = ""
) -> Run:
    """An outcome as the report sees it.

    Args:
        engine: name of the engine, for display.
        fell_back: decisions for which the policy failed and the conservative plan was used.
        because: why this engine; empty: there was no choice.
    """
    backlog = backlog_of(result)
    return Run(
        policy,
        engine,
        result.schedule,
        measure(
            result.schedule,
            result.decision_ms,
            result.starts.accuracy(),
            result.predicted_s,
            NO_PARTS.having(NAME, measured(result)),
        ),
        result.system.nodes.names,
        result.workload.id,
        result.workload.time_limit_s,
        result.indptr,
        result.nodes,
        result.decision_ms,
        {
            "refusals": len(result.refusals),
            "fell_back": fell_back,
            "cancelled": int(result.cancelled.sum()),
            "restarts": int(result.restarts.sum()),
            **({"engine_because": because} if because else {}),
            **({} if backlog is None else {"growing_backlog": asdict(backlog)}),
            **shared(result),
        },
        None if result.power is None else result.power.until(end_s(result)),
        None if result.power is None else result.power.bounds,
        result.spells,
    )


def backlog_of(result: SimulationResult) -> Growing | None:
    """The growing backlog of a simulation; None: there is none."""
    return growing(
        result.workload,
        result.system.processors,
        result.schedule.start_s,
        ended=result.stopped,
    )


def results_table(runs: Sequence[Run]) -> Table:
    """All runs side by side, a column for each policy; the best of each line in bold."""
    table = Table(box=None, pad_edge=False, padding=(0, 4, 0, 0), header_style="bold")
    table.add_column("")
    for run in runs:
        table.add_column(run.policy, justify="right")
    table.add_row("jobs", *(f"{run.measures.jobs:,}" for run in runs))
    table.add_row("engine", *(run.engine for run in runs))
    for column in columns_of(runs):
        best = column.best(runs)
        table.add_row(
            column.heading,
            *(
                Text(column.show(run), "bold" if column.value(run.measures) == best else "")
                for run in runs
            ),
        )
    return table


def write_files(
    directory: Path,
    *,
    title: str,
    lead: str,
    facts: Mapping[str, str],
    trace: Trace,
    results: Sequence[SimulationResult],
    runs: Sequence[Run],
    summary: Mapping[str, object],
    against: Run | None = None,
) -> Path | None:
    """Writes results.json, report.html, plots, and for each run its jobs as CSV and SWF.

    What `write_run` wrote of these runs is written again. Returns the page; None: it needs an
    extra that is not installed.

    The page's first screen compares the first run with `against`, if that is given.

    Raises:
        ConfigError: the directory cannot be written.
    """
    try:
        for result, run in zip(results, runs, strict=True):
            write_run(directory, trace, result, run)
        write_results(directory, runs, summary)
        if not _has_extras():
            return None
        from bridge.lab.report.plots import save_plots  # noqa: PLC0415 - slow to load

        save_plots(directory, runs)
        page = directory / "report.html"
        write_html(page, title, lead, facts, runs, against=against)
        return page
    except OSError as error:
        raise ConfigError(
            "out", f"cannot write there: {error.strerror}", file=str(directory)
        ) from None


def _has_extras() -> bool:
    """Whether plots and the page can be made; says so if not: other files do not depend on it."""
    if missing := [name for name in ("matplotlib", "jinja2") if not has(name)]:
        print(
            f"schedbridge: no plots and no page are made without {' and '.join(missing)}:"
            " pip install 'schedbridge[plots]'",
            file=sys.stderr,
        )
    return not missing


def write_run(directory: Path, trace: Trace, result: SimulationResult, run: Run) -> None:
    """Writes the jobs of one run as CSV and SWF.

    Raises:
        OSError: the directory cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    word = file_word(run.policy)
    write_jobs_csv(directory / f"jobs-{word}.csv", run)
    _write_result_swf(directory / f"result-{word}.swf", trace, result, run.policy)


def write_results(directory: Path, runs: Sequence[Run], summary: Mapping[str, object]) -> None:
    """Writes results.json with the figures of these runs.

    Raises:
        OSError: the directory cannot be written.
    """
    text = json.dumps({**summary, "results": [figures(run) for run in runs]}, indent=2)
    (directory / "results.json").write_text(text + "\n", encoding="utf-8")


def _write_result_swf(path: Path, trace: Trace, result: SimulationResult, policy: str) -> None:
    """The trace with the waits, run times and processors of the simulation."""
    workload, schedule = result.workload, result.schedule
    columns = trace.columns[workload.row].copy()
    started, finished = schedule.start_s != NEVER, schedule.finished
    wait_s = np.where(started, schedule.start_s - schedule.submit_s, -1)
    runtime_s = np.where(finished, schedule.end_s - schedule.start_s, -1)
    columns[:, Field.WAIT_S] = wait_s
    columns[:, Field.RUNTIME_S] = runtime_s
    columns[:, Field.ALLOCATED_PROCESSORS] = np.where(started, schedule.processors, -1)
    columns[:, Field.REQUESTED_PROCESSORS] = schedule.processors
    columns[:, Field.REQUESTED_TIME_S] = workload.time_limit_s
    columns[:, Field.STATUS] = np.where(finished & ~result.cancelled, 1, 5)
    note = f"Note: simulated by schedbridge under policy {policy} on {result.system.name}"
    write_swf(path, (*trace.header, note), columns)
