# SPDX-License-Identifier: Apache-2.0
"""`schedbridge coschedule`: what was learnt of two jobs on a node, and the switch."""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from bridge import files
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
from bridge.extensions.sharing.exchange_text import MAX_BYTES
from bridge.rpc.clients.operator_client import OperatorClient
from bridge.rpc.pb import coscheduling_pb2 as pb

app = typer.Typer(
    help="Two jobs on a node: show what was learnt; end sharing, or allow it again.",
    no_args_is_help=True,
    add_completion=False,
)

MAX_PAIRS = 1000
"""In a reply."""
_Order = pb.CoschedulingRequest


@app.command()
def show(
    config: ConfigOption = None, socket: SocketOption = None, as_json: JsonOption = False
) -> None:
    """Show the running guests, and the harm of each pair of applications.

    The harm is the slowdown of the host as a share of its time alone. EXPECTED is the harm expected
    for a busy host next time, and an upper bound of it. Users see pairs with jobs of their own.
    """
    with ask(config, socket) as service:
        reply = _requested(service, pb.CoschedulingRequest())
    if as_json:
        print_json(reply)
        return
    screen = console()
    for line in _state(reply):
        screen.print(line)
    if reply.guests:
        screen.print(_guests(reply))
    if reply.pairs:
        screen.print(_pairs(reply))
    if reply.policy == "asax":
        screen.print(_experts(reply))


@app.command()
def off(
    config: ConfigOption = None, socket: SocketOption = None, as_json: JsonOption = False
) -> None:
    """End sharing on the whole site now: guests go back to the queue (administrators)."""
    _order(_Order.OFF, config, socket, as_json)


@app.command()
def on(
    config: ConfigOption = None, socket: SocketOption = None, as_json: JsonOption = False
) -> None:
    """Allow sharing again (administrators)."""
    _order(_Order.ON, config, socket, as_json)


@app.command()
def export(
    file: Annotated[
        Path | None, typer.Argument(help="Where it is written; default: standard output.")
    ] = None,
    config: ConfigOption = None,
    socket: SocketOption = None,
) -> None:
    """Write all that was learnt as JSON, which can be read and edited (administrators)."""
    with ask(config, socket) as service:
        reply = _requested(service, pb.CoschedulingRequest(order=_Order.EXPORT))
    if file is None:
        say(reply.text)
        return
    try:
        file.write_text(reply.text + "\n")
    except OSError as error:
        raise ConfigError(str(file), f"cannot be written: {error.strerror}") from None


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="As exported; JSON or YAML.")],
    config: ConfigOption = None,
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Replace what was learnt by a file's contents (administrators)."""
    try:
        text = files.read_bytes(file, MAX_BYTES).decode()
    except UnicodeDecodeError:
        raise ConfigError(str(file), "is not text in UTF-8") from None
    except OSError as error:
        raise ConfigError(str(file), f"cannot be read: {error.strerror or error}") from None
    with ask(config, socket) as service:
        reply = _requested(service, pb.CoschedulingRequest(order=_Order.IMPORT, text=text))
    if as_json:
        print_json(reply)
    else:
        count = len(reply.pairs)
        minimum = "at least " if count == MAX_PAIRS else ""  # the reply holds no more
        console().print(f"imported: {minimum}{count} pairs of applications")


def _requested(service: OperatorClient, request: pb.CoschedulingRequest) -> pb.CoschedulingReply:
    return service.of_extension("Coscheduling", request, pb.CoschedulingReply)


def _order(
    order: "pb.CoschedulingRequest.Order", config: Path | None, socket: Path | None, as_json: bool
) -> None:
    with ask(config, socket) as service:
        reply = _requested(service, pb.CoschedulingRequest(order=order))
    if as_json:
        print_json(reply)
        return
    for line in _state(reply):
        console().print(line)


def _state(reply: pb.CoschedulingReply) -> list[str]:
    where = ", ".join(map(shown, reply.partitions))
    if reply.off_since_s:
        why = "the mean harm was too large" if reply.off_by_policy else "an operator ended it"
        lines = [
            f"off since {when(reply.off_since_s)}: {why}; 'schedbridge coschedule on' allows it"
        ]
    elif reply.policy == "none":
        lines = ["policy none: no job becomes a guest"]
    elif not where:
        lines = [f"policy {shown(reply.policy)}: in no partition jobs may share nodes"]
    else:
        lines = [f"policy {shown(reply.policy)}, in {where}"]
    if reply.observations:
        lines.append(
            f"mean harm over users: {reply.mean_harm:.1%}, of {reply.observations} observations"
        )
    if reply.stopped_users:
        users = ", ".join(map(shown, reply.stopped_users))
        lines.append(
            f"guests slowed the jobs of {users} down too much: they can no longer be hosts; "
            "'schedbridge coschedule on' allows it"
        )
    return lines


def _guests(reply: pb.CoschedulingReply) -> Table:
    table = Table(title="Guests", title_justify="left", box=None, pad_edge=False)
    for title in ("JOB", "USER", "HOST", "NODES", "CPUS", "WEIGHT", "LEAVES"):
        table.add_column(title, justify="right" if title in ("CPUS", "WEIGHT") else "left")
    for guest in reply.guests:
        table.add_row(
            shown(guest.job_id), shown(guest.user), shown(guest.host_job_id), shown(guest.nodes),
            f"{guest.quota_milli_cpus / 1000:.2f}", str(guest.weight), shown(guest.requeued),
        )  # fmt: skip
    return table


def _pairs(reply: pb.CoschedulingReply) -> Table:
    table = Table(title="Pairs", title_justify="left", box=None, pad_edge=False)
    for title in ("HOST", "GUEST", "NODES", "GUEST CPUS", "CEILING", "SEEN", "HARM", "EXPECTED"):
        table.add_column(title, justify="left" if title in ("HOST", "GUEST") else "right")
    for pair in reply.pairs:
        host, guest = (
            shown(f"{user}:{name}")
            for user, name in (
                (pair.host_user, pair.host_name), (pair.guest_user, pair.guest_name),
            )
        )  # fmt: skip
        cpus = f"{pair.guest_cpus:.1f}" if pair.guest_cpus >= 0 else "-"
        cells = (host, guest, str(pair.node_count), cpus)
        for ceiling in pair.ceilings:
            if not ceiling.observations:
                continue
            table.add_row(
                *cells, f"{ceiling.ceiling_percent} %", f"{ceiling.observations:.0f}",
                f"{ceiling.harm:.1%}", f"{ceiling.expected:.1%}, at most {ceiling.at_most:.1%}",
            )  # fmt: skip
            cells = ("", "", "", "")
    return table


def _experts(reply: pb.CoschedulingReply) -> Table:
    table = Table(title="Experts", title_justify="left", box=None, pad_edge=False)
    for title in ("EXPERT", "WEIGHT", "RISK"):
        table.add_column(title, justify="left" if title == "EXPERT" else "right")
    for expert in reply.experts:
        table.add_row(shown(expert.name), f"{expert.weight:.3f}", f"{expert.risk:.3f}")
    return table
