# SPDX-License-Identifier: Apache-2.0
"""`schedbridge accuracy`: how accurate announced starts were, and how often they changed."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from bridge.cli.operators.asking import (
    ConfigOption,
    JsonOption,
    SocketOption,
    ask,
    console,
    print_json,
    say,
    shown,
    when,
)
from bridge.errors import ConfigError
from bridge.extras import need
from bridge.rpc.pb import operator_pb2 as pb
from bridge.units import format_duration

_FORMATS = (".png", ".svg", ".pdf")


class Period(StrEnum):
    """How far back to look."""

    HOUR = "hour"
    DAY = "day"
    WEEK = "week"
    ALL = "all"


_PERIODS = {
    pb.PERIOD_HOUR: Period.HOUR,
    pb.PERIOD_DAY: Period.DAY,
    pb.PERIOD_WEEK: Period.WEEK,
    pb.PERIOD_ALL: Period.ALL,
}
_WORDS = {
    Period.HOUR: "last hour",
    Period.DAY: "last day",
    Period.WEEK: "last week",
    Period.ALL: "all kept",
}


def accuracy(
    *,
    partition: Annotated[
        str, typer.Option("--partition", "-p", help="Only this partition.", show_default=False)
    ] = "",
    period: Annotated[
        Period | None, typer.Option(help="Only this period.", show_default=False)
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Also draw it into this file (.png, .svg, .pdf): errors by share of jobs, and "
            "over time.",
            dir_okay=False,
        ),
    ] = None,
    config: ConfigOption = None,
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how accurate announced starts were, for each partition.

    A planned start is announced for a waiting job (squeue --start), again whenever the plan
    changes. When the job starts, two announced starts are compared with the actual one: the first,
    and the last before the start.

    announced / started: jobs with an announced start, and all jobs that started. Jobs that start
    at once have none.

    first error, last error: difference between the announced and the actual start, early or
    late: at most the first figure for half of the jobs, at most the second for 90 %.

    on time: share of jobs that started when announced, or earlier. Early is the usual case, as
    jobs end before their time limits.

    changes, later, earlier: how often a job's announced start changed, and how far it moved in
    total in each direction; means over those jobs.

    left: jobs with an announced start that left the queue without starting, e.g. cancelled. They
    are in no other figure.

    Periods end at the controller's clock. Records are kept for memory.keep_days (90).

    Examples: schedbridge accuracy --period week;
    schedbridge accuracy -p batch --plot batch.png;
    schedbridge accuracy --json | jq '.lines[] | select(.period == "PERIOD_DAY") | .last.kept'
    """
    if plot is not None:
        _check(plot)
    with ask(config, socket) as service:
        reply = service.accuracy(partition)
        if partition and not reply.lines:
            raise _unknown(partition, service.accuracy())
    lines = [line for line in reply.lines if period is None or _PERIODS[line.period] is period]
    if plot is not None:
        _draw(plot, reply, period or Period.ALL, partition)
    if as_json:
        del reply.lines[:]
        reply.lines.extend(lines)
        print_json(reply)
        return
    if lines:
        console().print(_table(_distinct(lines)))
    say(_remark(reply, bool(lines)))
    if plot is not None:
        say(f"plot: {plot}")


def _check(plot: Path) -> None:
    """Refuses an impossible plot file before the service is asked.

    Raises:
        ConfigError: unknown format, or no such directory.
    """
    if plot.suffix.lower() not in _FORMATS:
        raise ConfigError("plot", f"'{plot}' must end in {', '.join(_FORMATS)}")
    if not plot.parent.is_dir():
        raise ConfigError("plot", f"there is no directory {plot.parent}")


def _unknown(partition: str, reply: pb.AccuracyReply) -> ConfigError:
    known = sorted({shown(line.partition) for line in reply.lines if line.partition})
    there = f"there are starts in {', '.join(known)}" if known else "no start has been recorded"
    return ConfigError(
        "partition", f"no start is recorded in partition '{shown(partition)}'; {there}"
    )


def _distinct(lines: Sequence[pb.AccuracyLine]) -> list[pb.AccuracyLine]:
    """The lines, without the totals if there is only one partition."""
    alone = len({line.partition for line in lines if line.partition}) == 1
    return [line for line in lines if line.partition or not alone]


def _table(lines: Sequence[pb.AccuracyLine]) -> Table:
    table = Table(title="Accuracy of announced starts", title_justify="left")
    for name in ("period", "partition"):
        table.add_column(name)
    for name in (
        "announced\n/ started", "first error\nhalf / 90 %", "on\ntime",
        "last error\nhalf / 90 %", "on\ntime", "changes\na job", "later\na job",
        "earlier\na job", "left",
    ):  # fmt: skip
        table.add_column(name, justify="right")
    last = None
    for line in lines:
        word = _WORDS[_PERIODS[line.period]]
        if last not in (None, word):
            table.add_section()
        table.add_row("" if word == last else word, *_cells(line))
        last = word
    return table


def _cells(line: pb.AccuracyLine) -> tuple[str, ...]:
    head = (
        shown(line.partition) or "(together)",
        f"{line.promised:,} / {line.promised + line.unpromised:,}",
    )
    if not line.promised:
        return (*head, *("",) * 7, f"{line.gone:,}")
    return (
        *head,
        *_errors(line.first),
        *_errors(line.last),
        f"{line.changes:.2f}",
        format_duration(line.later_s),
        format_duration(line.earlier_s),
        f"{line.gone:,}",
    )


def _errors(errors: pb.StartErrors) -> tuple[str, str]:
    half, maximum = format_duration(errors.absolute_p50_s), format_duration(errors.absolute_p90_s)
    return f"{half} / {maximum}", f"{errors.kept:.0%}"


def _remark(reply: pb.AccuracyReply, anything: bool) -> str:
    """The text below the table, or instead of it."""
    waiting = f"waiting jobs with an announced start: {reply.waiting_promised:,}"
    if anything:
        return f"Recorded since {when(reply.since_s)}, kept for {reply.keep_days} days; {waiting}."
    if not reply.now_s:
        return "The controller has not called yet: nothing is recorded."
    if reply.lines:
        return f"No start in this period; {waiting}. Others: leave out --period."
    return f"No start is recorded yet; {waiting}."


def _draw(plot: Path, reply: pb.AccuracyReply, period: Period, partition: str) -> None:
    """Draws the plot.

    Raises:
        ConfigError: the file cannot be written, or matplotlib is missing.
    """
    need("matplotlib", "plots", "plot")
    from bridge.lab.report.promises import StartErrorCurve, Track, draw_accuracy  # noqa: PLC0415 - it is slow

    curves = [
        StartErrorCurve(
            f"{shown(line.partition) or 'together'}, {line.promised:,} starts",
            line.last.percentiles_s,
            line.first.percentiles_s,
        )
        for line in _distinct(reply.lines)
        if _PERIODS[line.period] is period and line.promised
    ]
    points = [point for point in reply.series if point.partition == partition]
    track = Track(
        [point.from_s for point in points],
        [point.absolute_p50_s for point in points],
        [point.absolute_p90_s for point in points],
        reply.series_step_s,
    )
    title = f"Accuracy of announced starts: {_WORDS[period]}, until {when(reply.now_s)}"
    try:
        draw_accuracy(plot, title, curves, track)
    except OSError as error:
        raise ConfigError("plot", f"cannot write {plot}: {error.strerror}") from None
