# SPDX-License-Identifier: Apache-2.0
"""`schedbridge plan`: what starts when and where, as of the last cycle."""

from typing import Annotated

import typer
from rich.table import Table

from bridge.cli.operators.asking import (
    MAX,
    ConfigOption,
    JsonOption,
    SocketOption,
    add_job_columns,
    ask,
    console,
    job_cells,
    print_json,
    say,
    shown,
    when,
)


def plan(
    limit: Annotated[
        int,
        typer.Option("--limit", "-n", help="Jobs shown at most; 0: all.", min=0, max=MAX),
    ] = 50,
    config: ConfigOption = None,
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show what starts when and where, in the order of the starts."""
    with ask(config, socket) as service:
        reply = service.plan(limit)
    if as_json:
        print_json(reply)
        return
    if not reply.jobs:
        say(f"No job waits ({when(reply.now_s)}, policy {shown(reply.policy)}).")
        return
    table = Table(title=f"Plan of {when(reply.now_s)}, policy {shown(reply.policy)}")
    add_job_columns(table, reply.dialect, "why not now")
    for job in reply.jobs:
        table.add_row(*job_cells(job, reply.now_s), shown(job.reason.text))
    console().print(table)
    if limit and len(reply.jobs) == limit:
        say(f"The first {limit} jobs; --limit 0 shows all.")
