# SPDX-License-Identifier: Apache-2.0
"""`lab experiment-report`: compares the kept results of an experiment, with intervals."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.text import Text

from bridge.cli.experiments.grid import grid_of
from bridge.errors import ConfigError, ResultError
from bridge.lab.experiments.definition import read_definition
from bridge.lab.experiments.page.page import write_page
from bridge.lab.experiments.page.plain import plain
from bridge.lab.experiments.page.table import write_csv, write_parquet
from bridge.lab.experiments.page.tables import covers
from bridge.lab.experiments.results import read_about
from bridge.lab.experiments.statistics.compare import Findings, Over, compare
from bridge.lab.experiments.statistics.jobs import Trim
from bridge.lab.experiments.statistics.quantities import BY_NAME, LONGEST, MEAN_WAIT
from bridge.lab.experiments.statistics.reading import Bench, read_bench
from bridge.lab.experiments.statistics.verdict import Finding, amount, percent

_COLOURS = {Finding.BETTER: "green", Finding.WORSE: "red"}


def report(
    results: Annotated[
        Path, typer.Argument(help="The experiment's YAML file, or a folder of results.")
    ],
    *,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY[/PREDICTOR]",
            help="Compare with this policy; default: the experiment's baseline, or easy.",
        ),
    ] = None,
    measure: Annotated[
        str, typer.Option(help=f"The measure of the verdict: {', '.join(BY_NAME)}.")
    ] = MEAN_WAIT.name,
    over: Annotated[
        Over,
        typer.Option(
            help="Resample runs, weeks or users for the intervals; auto: runs (from five on)"
            " and weeks, of a short trace users."
        ),
    ] = Over.AUTO,
    warm_up: Annotated[
        float,
        typer.Option(metavar="PERCENT", help="Leave out the first submissions."),
    ] = 5.0,
    cool_down: Annotated[
        float,
        typer.Option(metavar="PERCENT", help="Leave out the last submissions."),
    ] = 5.0,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the report as an HTML page.")
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a table of all runs and classes of jobs."),
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The same as Parquet (needs pyarrow).")
    ] = None,
    json_output: Annotated[
        bool, typer.Option("--json", help="Print one JSON object and nothing else.")
    ] = False,
) -> None:
    """Compare the policies of an experiment with its baseline, with intervals."""
    if measure not in BY_NAME:
        raise ConfigError("measure", f"'{measure}' is unknown; known: {', '.join(BY_NAME)}")
    trim = Trim(warm_up / 100, cool_down / 100)
    bench, named = _bench(results)
    findings = compare(bench, bench.baseline(baseline or named), trim=trim, over=over)
    if not findings.of(measure):
        raise ResultError(str(results), f"no result has the measure '{measure}'")
    written = []
    if parquet is not None:  # first: it may be refused
        written.append(f"{parquet} ({write_parquet(parquet, bench, trim):,} rows)")
    if html is not None:
        write_page(html, f"Experiment {results.resolve().stem}", bench, findings, measure)
        written.append(str(html))
    if csv is not None:
        written.append(f"{csv} ({write_csv(csv, bench, trim):,} rows)")
    if json_output:
        print(json.dumps({"results": str(results), "measure": measure, **plain(findings)}))
        return
    _show(bench, findings, measure)
    if written:
        print(f"\nwritten: {', '.join(written)}")


def _bench(path: Path) -> tuple[Bench, str | None]:
    """The results, and the name of the baseline if file or folder state one."""
    if not path.is_file():
        named = read_about(path).get("baseline")
        return read_bench(path, _told), named if isinstance(named, str) else None
    grid = grid_of(read_definition(path), path)
    return read_bench(grid.folder, _told, grid.wanted), "/".join(grid.baseline)


def _told(error: ResultError) -> None:
    print(f"warning: {error}", file=sys.stderr)


def _show(bench: Bench, findings: Findings, measure: str) -> None:
    quantity, console = BY_NAME[measure], Console(highlight=False, soft_wrap=True)
    runs = sum(len(seeds) for one in bench.cells.values() for seeds in one.values())
    console.print(f"{runs} runs; {quantity.title}, compared with {findings.baseline.name}")
    longest = {(one.scenario, one.contestant): one for one in findings.of(LONGEST.name)}
    faced = {(one.scenario, one.contestant): one for one in findings.faced}
    table = findings.of(measure)
    width = max(len(one.contestant.name) for one in table)
    for index, one in enumerate(table):
        if not index or one.scenario != table[index - 1].scenario:
            console.print(f"\n[bold]{escape(one.scenario.name)}[/bold]")
        wait = longest[one.scenario, one.contestant].estimate
        harm = faced[one.scenario, one.contestant].harm
        base, other = (amount(quantity, value) for value in (one.estimate.base, one.estimate.other))
        console.print(
            f"  {one.contestant.name:<{width}}  ",
            Text(one.verdict.words, _COLOURS.get(one.verdict.outcome, "")),
            sep="",
        )
        console.print(
            f"  {'':<{width}}  {base} → {other}; longest wait {amount(LONGEST, wait.base)} →"
            f" {amount(LONGEST, wait.other)}; {percent(harm.jobs_worse)} of the jobs worse off"
        )
    print()
    for line in dict.fromkeys(map(covers, findings.faced)):
        print(line)
    print(f"judged: {findings.trim.words}")
    family = max(one.verdict.family for one in table)
    if family > 1:
        print(f"a difference counts as shown after Holm's correction for {family} comparisons")
    for note in findings.notes:
        print(f"note: {note}")
