# SPDX-License-Identifier: Apache-2.0
"""`schedbridge power`: system power, and (administrators) its bounds."""

import time
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from bridge.cli.operators.asking import (
    ConfigOption,
    JsonOption,
    SocketOption,
    ask,
    console,
    print_json,
    say,
    when,
)
from bridge.cli.operators.times import duration_s, instant_s
from bridge.errors import ConfigError
from bridge.extensions.power.commands.calibration import check_fitted, yaml_lines
from bridge.extensions.power.commands.tables import print_change, print_entries, print_power
from bridge.extensions.power.corridor import watts_text
from bridge.extensions.power.rules import NO_UPPER_W
from bridge.rpc.pb import operator_pb2 as pb

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Show system power; show or set its bounds.",
)

_NO_BOUND = -1


@app.command()
def show(
    hours: Annotated[
        int, typer.Option(min=1, max=1440, help="How far ahead the bounds are shown.")
    ] = 24,
    top: Annotated[
        int, typer.Option(min=1, max=1000, help="How many jobs are listed, largest first.")
    ] = 10,
    config: ConfigOption = None,
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show bounds and estimates of system power, now and by the plan, and the power of each job.

    Estimates are upper ones: the measured power if known, else what was learnt, else what the job
    states (--max-power), else the maximum of its nodes.
    """
    with ask(config, socket) as service:
        reply = service.power(hours * 3600, top)
    if as_json:
        print_json(reply)
    else:
        print_power(console(), reply)


@app.command()
def calibrate(
    config: ConfigOption = None,
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fit idle and maximum power of nodes to the reports of metered nodes; print YAML.

    For planning.power.nodes, by type: idle + (max - idle) x load. The model applies to nodes of
    the same type without a meter, too. It needs some minutes in which metered nodes of the type
    were idle, and others in which jobs used all of their CPUs.
    """
    with ask(config, socket) as service:
        reply = service.calibrate()
    if as_json:
        print_json(reply)
    check_fitted(reply)
    if not as_json:
        for line in yaml_lines(reply):
            say(line)


@app.command(
    epilog="Examples:  corridor 1700W-2500W --for 2h --reason 'test run'   |   "
    "corridor --upper 240kW --from 17:00 --until 20:00   |   corridor --upper none   |   "
    "corridor --undo"
)
def corridor(  # noqa: PLR0917 - options, by name
    bounds: Annotated[
        str | None,
        typer.Argument(
            metavar="[LOWER-UPPER]",
            help="Both bounds: 1700W-2500W, 1.7-2.5kW, 0-1.2MW, 100kW-none.",
        ),
    ] = None,
    lower: Annotated[
        str | None, typer.Option(help="Only this bound; the upper one stays as it is.")
    ] = None,
    upper: Annotated[
        str | None,
        typer.Option(help="Only this bound, or none; the lower one stays as it is."),
    ] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", help="2026-12-24T18:00, 18:00 (the next one), now+2hours; or now."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="As --from. Default: until it is undone.")
    ] = None,
    lasting: Annotated[
        str | None, typer.Option("--for", help="Instead of --until: 90m, 2h, 1-12:00:00.")
    ] = None,
    reason: Annotated[str, typer.Option(help="Shown to other users, and logged.")] = "",
    undo: Annotated[
        bool,
        typer.Option("--undo", help="Remove entry ID, or else the one that was entered last."),
    ] = False,
    restore: Annotated[
        bool, typer.Option("--restore", help="Put entry ID, which was removed, in force again.")
    ] = False,
    listed: Annotated[
        bool, typer.Option("--list", help="List all entries with author and state.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Only show which jobs would shrink, wait or start later."),
    ] = False,
    config: ConfigOption = None,
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set bounds of system power (administrators), or list them (every user).

    Entries lie on top of each other: the latest one in force counts, and when it ends or is
    undone, those below it apply again. The calendar of the configuration
    (planning.power.corridor) lies below all of them. A bound that is not named stays as it is.

    The upper bound is a rule: no job starts that would exceed it, now or when it changes. The
    lower bound is a goal.
    """
    instead = {"--undo": undo, "--restore": restore, "--list": listed}
    _check_choice(instead, (lower, upper, start, until, lasting, reason or None))
    if listed:
        if bounds is not None or dry_run:
            raise ConfigError("", "--list takes no other arguments")
        with ask(config, socket) as service:
            reply = service.power()
        print_json(reply) if as_json else print_entries(console(), reply)
        return
    if undo or restore:
        request = _of_entry(bounds, restore=restore)
    else:
        request = _of_bounds(bounds, lower, upper)
        _set_times(request, start, until, lasting)
        request.reason = reason
    request.dry_run = dry_run
    with ask(config, socket) as service:
        answer = service.corridor(request)
    print_json(answer) if as_json else print_change(console(), request, answer)


def _check_choice(instead: Mapping[str, bool], wish: Sequence[str | None]) -> None:
    """Refuses two of the options that replace bounds, or one of them together with bounds."""
    chosen = [name for name, given in instead.items() if given]
    if len(chosen) > 1:
        raise ConfigError("", f"give one of {' and '.join(chosen)}")
    if chosen and any(given is not None for given in wish):
        raise ConfigError("", f"{chosen[0]} takes no bounds, times or reason")


def _of_entry(number: str | None, *, restore: bool) -> pb.CorridorRequest:
    text = "0" if number is None and not restore else number or ""
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        shown = "which entry: --restore ID" if not text else f"'{text:.60}' is not an entry's ID"
        raise ConfigError("ID", f"{shown}; see 'schedbridge power corridor --list'")
    return pb.CorridorRequest(restore=int(text)) if restore else pb.CorridorRequest(undo=int(text))


def _of_bounds(both: str | None, lower: str | None, upper: str | None) -> pb.CorridorRequest:
    if both is not None and (lower is not None or upper is not None):
        raise ConfigError("", "give LOWER-UPPER, or --lower and --upper, not both")
    if both is None and lower is None and upper is None:
        raise ConfigError(
            "", "give bounds as 1700W-2500W, --lower or --upper; or --undo, --restore or --list"
        )
    request, at = pb.CorridorRequest(), "LOWER-UPPER"
    try:
        if both is not None:
            request.lower_w, maximum = watts_text.corridor(both)
            request.upper_w = _NO_BOUND if maximum == NO_UPPER_W else maximum
        if lower is not None:
            at = "--lower"
            request.lower_w = watts_text.watts(lower)
        if upper is not None:
            at = "--upper"
            maximum = watts_text.upper_watts(upper)
            request.upper_w = _NO_BOUND if maximum == NO_UPPER_W else maximum
    except ValueError as error:
        raise ConfigError(at, str(error)) from None
    return request


def _set_times(
    request: pb.CorridorRequest, start: str | None, until: str | None, lasting: str | None
) -> None:
    if until is not None and lasting is not None:
        raise ConfigError("", "give --until or --for, not both")
    now_s = int(time.time())
    if start not in (None, "now"):
        request.from_s = _instant("--from", start, now_s)
    if until is not None:
        request.until_s = _instant("--until", until, now_s, request.from_s or now_s)
        if request.until_s <= (request.from_s or now_s):
            begins = when(request.from_s or now_s)
            raise ConfigError("--until", f"{when(request.until_s)} is not after {begins}")
    if lasting is not None:
        request.duration_s = duration_s(lasting)


def _instant(option: str, text: str | None, now_s: int, after_s: int | None = None) -> int:
    at_s = instant_s(text or "", now_s, after_s)
    if at_s <= 0:
        raise ConfigError(option, f"'{text:.60}' lies before 1970")
    return at_s
