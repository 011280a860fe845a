# SPDX-License-Identifier: Apache-2.0
"""`schedbridge explain JOBID`: why a job waits, or when and where it starts."""

import time
from collections.abc import Iterable
from typing import Annotated

import typer
from rich.table import Table

from bridge.cli.operators.asking import (
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
    until,
    when,
)
from bridge.rpc.pb import operator_pb2 as pb


def explain(
    job_id: Annotated[
        str, typer.Argument(metavar="JOBID", help="Job id, as squeue or qstat shows it.")
    ],
    config: ConfigOption = None,
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Explain why a job waits, when and where it starts, and what would let it start earlier.

    Exit code 1 if the job is neither waiting nor running.
    """
    with ask(config, socket) as service:
        reply = service.explain(job_id)
    if as_json:
        print_json(reply)
        return
    job = reply.job
    say(f"Job {shown(job.job_id)} ({shown(job.name)}) of {shown(job.user)}:")
    for line in reply.lines:
        say(f"  {shown(line)}")
    if reply.changes:
        print_changes(reply.changes)
    if not reply.blockers:
        return
    table = Table(title="In its way", title_justify="left")
    add_job_columns(table, reply.dialect, "ends at the latest")
    for blocker in reply.blockers:
        table.add_row(*job_cells(blocker), when(blocker.end_s))
    console().print(table)


def print_changes(changes: Iterable[pb.Change]) -> None:
    """Prints what would let a job start earlier, best first."""
    now_s = int(time.time())
    table = Table(title="It could start earlier:", title_justify="left")
    for name in ("start", "", "how", "options"):
        table.add_column(name, overflow="fold")
    for change in changes:
        row = (when(change.start_s), until(change.start_s, now_s))
        table.add_row(*row, shown(change.text), shown(change.options))
    console().print(table)
