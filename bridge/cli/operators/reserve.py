# SPDX-License-Identifier: Apache-2.0
"""`schedbridge reserve` and `unreserve`: advance reservations, found on the plan, made by Slurm."""

import time
from typing import Annotated

import typer
from rich.table import Table

from bridge.cli.operators.asking import (
    ConfigOption,
    JsonOption,
    SocketOption,
    ask,
    console,
    job_cells,
    print_json,
    say,
    until,
    when,
)
from bridge.cli.operators.times import duration_s, instant_s
from bridge.errors import ConfigError, ControllerError
from bridge.rpc.pb import operator_pb2 as pb

_NAME = typer.Argument(
    metavar="NAME", help="Name of the reservation, for sbatch --reservation=NAME."
)


def reserve(  # noqa: PLR0917 - options, by name
    name: Annotated[str, _NAME],
    start: Annotated[
        str, typer.Option(help="2026-12-24T18:00, 18:00 (the next one), now, or now+2hours.")
    ],
    duration: Annotated[str, typer.Option(help="Minutes, or as 2:00:00, 1-12:00:00, 90m, 4h, 2d.")],
    nodes: Annotated[
        int, typer.Option("--nodes", "-N", min=0, max=1_000_000, help="Number of nodes.")
    ] = 0,
    chunks: Annotated[str, typer.Option(help="Nodes for these chunks, as in 4:ncpus=8.")] = "",
    partition: Annotated[
        str, typer.Option("--partition", "-p", help="Only nodes of this partition.")
    ] = "",
    users: Annotated[str, typer.Option(help="Users who may use it: alice,bob.")] = "",
    accounts: Annotated[str, typer.Option(help="Accounts that may use it.")] = "",
    licences: Annotated[
        str, typer.Option("--licenses", help="Licences that it also reserves: matlab:2,ansys.")
    ] = "",
    displace: Annotated[
        bool, typer.Option("--displace", help="Planned jobs may be moved; they are listed.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only print what would be done, and Slurm's command.")
    ] = False,
    config: ConfigOption = None,
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reserve whole nodes, without moving running or planned jobs.

    Exit code 1 if the nodes are not free at that time; the jobs in the way are listed.
    """
    if bool(nodes) == bool(chunks):
        raise ConfigError("", "give either --nodes or --chunks")
    request = pb.ReserveRequest(
        name=name,
        start_s=instant_s(start, int(time.time())),
        duration_s=duration_s(duration),
        nodes=nodes,
        chunks=chunks,
        partition=partition,
        users=_names(users),
        accounts=_names(accounts),
        licences=_names(licences),
        displace=displace,
        dry_run=dry_run,
    )
    with ask(config, socket) as service:
        reply = service.reserve(request)
    if as_json:
        print_json(reply)
    elif reply.nodes:
        _print_made(name, reply)
    if not reply.nodes:
        raise ControllerError(_no_room(reply, as_json))


def unreserve(
    name: Annotated[str, _NAME], config: ConfigOption = None, socket: SocketOption = None
) -> None:
    """Remove a reservation."""
    with ask(config, socket) as service:
        service.unreserve(name)
    say(f"Reservation {name} is removed.")


def _names(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def _print_made(name: str, reply: pb.ReserveReply) -> None:
    verb = "is made" if reply.made else "would be made"
    say(
        f"Reservation {name} {verb}: {when(reply.start_s)} to {when(reply.end_s)} on "
        f"{reply.node_count} nodes: {reply.nodes}"
    )
    if not reply.made:
        say(reply.command)
    if reply.jobs:
        _print_jobs("Planned jobs that get another start", reply)


def _no_room(reply: pb.ReserveReply, as_json: bool) -> str:
    if reply.jobs and not as_json:
        _print_jobs("In its way", reply)
    next_s = reply.next_start_s
    return f"no room at {when(reply.start_s)}; " + (
        f"there is from {when(next_s)} on ({until(next_s, int(time.time()))})"
        if next_s
        else "nor at any later time"
    )


def _print_jobs(title: str, reply: pb.ReserveReply) -> None:
    table = Table(title=title, title_justify="left")
    for column in ("job", "user", "partition", "start", "", "nodes", "ends at the latest"):
        table.add_column(column, overflow="fold" if column == "nodes" else "ellipsis")
    for job in reply.jobs:
        table.add_row(*job_cells(job), when(job.end_s))
    console().print(table)
