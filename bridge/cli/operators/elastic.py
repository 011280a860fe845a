# SPDX-License-Identifier: Apache-2.0
"""`schedbridge elastic`: running jobs that grow and shrink."""

from typing import Annotated

import typer
from rich.table import Table

from bridge.cli.building import build_library, build_mpi_time
from bridge.cli.operators.asking import (
    ConfigOption,
    JsonOption,
    SocketOption,
    ask,
    console,
    print_json,
    shown,
)
from bridge.errors import ConfigError
from bridge.rpc.pb import operator_pb2 as pb
from bridge.units import format_duration

app = typer.Typer(
    help="Running jobs that grow and shrink.", no_args_is_help=True, add_completion=False
)

app.command()(build_library)
app.command()(build_mpi_time)


def _named(job_id: str) -> str:
    if not job_id.strip() or not job_id.isprintable():
        raise ConfigError("JOB", "is not a job id")
    return job_id


Job = Annotated[
    str, typer.Argument(metavar="JOB", callback=_named, help="Job id, as squeue shows it.")
]
Width = Annotated[
    int, typer.Argument(metavar="NODES", min=1, max=1_000_000, help="Its new number of nodes.")
]


@app.command()
def status(
    config: ConfigOption = None, socket: SocketOption = None, as_json: JsonOption = False
) -> None:
    """List the running malleable jobs: their nodes and states.

    A job without an engine has no launcher: it was not started by 'schedbridge run', or the agent
    of its first node is not connected. It keeps its nodes.
    """
    with ask(config, socket) as service:
        reply = service.elastic()
    if as_json:
        print_json(reply)
        return
    if not reply.jobs:
        console().print(f"no malleable job runs; {reply.agents} nodes have an agent")
        return
    table = Table(box=None, pad_edge=False)
    for title in ("JOB", "USER", "NODES", "MAY HAVE", "ENGINE", "STATE"):
        table.add_column(title, justify="right" if title == "NODES" else "left")
    for job in reply.jobs:
        table.add_row(
            shown(job.job_id), shown(job.user), str(job.node_count), _bounds(job),
            shown(job.engine) or "-", _state(job, reply.now_s),
        )  # fmt: skip
    console().print(table)


@app.command()
def show(
    job_id: Job,
    config: ConfigOption = None,
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show a running malleable job, and why it was or was not resized."""
    with ask(config, socket) as service:
        reply = service.elastic(job_id)
    if as_json:
        print_json(reply.jobs[0])
        return
    job = reply.jobs[0]
    lines = [
        ("job", f"{shown(job.job_id)} of {shown(job.user)}"),
        ("nodes", f"{job.node_count}: {shown(job.nodes)}"),
        ("may have", _bounds(job)),
        ("launcher", shown(job.engine) or "none attached: it keeps its nodes"),
        ("state", _state(job, reply.now_s)),
    ]
    if job.state != "running":
        lines.append(("will have", f"{job.target_count}: {shown(job.target_nodes)}"))
    if job.width.text:
        lines.append(("why", shown(job.width.text)))
    if spent := _mpi_time(job):
        lines.append(("MPI time", spent))
    if job.reason:
        title = "reason" if job.state != "running" else "last failure"
        lines.append((title, shown(job.reason)))
    if job.HasField("last"):
        lines.append(("last change", _last(job.last, reply.now_s)))
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column()
    for line in lines:
        table.add_row(*line)
    console().print(table)
    if job.speed_ups:
        console().print(_curve(job))


def _last(last: pb.LastResize, now_s: int) -> str:
    ago = format_duration(max(now_s - last.at_s, 0))
    took = f", {last.lasted_s} s after its decision" if last.HasField("lasted_s") else ""
    change = f"{last.from_nodes} -> {last.to_nodes} nodes"
    return f"{change}: {shown(last.outcome)}{took}, {ago} ago"


def _curve(job: pb.ElasticJob) -> Table:
    """Width, speed-up and its source; the present width is marked."""
    table = Table(title="Speed-up against one node", title_justify="left", box=None, pad_edge=False)
    for title in ("NODES", "SPEED-UP", "KNOWN"):
        table.add_column(title, justify="left" if title == "KNOWN" else "right")
    for point in job.speed_ups:
        mark = " (now)" if point.width == job.node_count else ""
        table.add_row(str(point.width), f"{point.speed_up:.2f}", shown(point.source) + mark)
    return table


@app.command()
def grow(
    job_id: Job, nodes: Width, config: ConfigOption = None, socket: SocketOption = None
) -> None:
    """Give a job more nodes, once enough nodes are free on which no waiting job is planned.

    For administrators, and for users of their own jobs.
    """
    _change(config, socket, job_id, nodes, larger=True)


@app.command()
def shrink(
    job_id: Job, nodes: Width, config: ConfigOption = None, socket: SocketOption = None
) -> None:
    """Ask a job to give nodes back. Its application answers at its next probe.

    For administrators, and for users of their own jobs.
    """
    _change(config, socket, job_id, nodes, larger=False)


@app.command()
def hold(
    job_id: Job,
    release: Annotated[bool, typer.Option("--release", help="End the hold.")] = False,
    config: ConfigOption = None,
    socket: SocketOption = None,
) -> None:
    """Keep a job's nodes as they are until --release.

    For administrators, and for users of their own jobs.
    """
    keeping = (
        pb.ChangeWidthRequest.KEEPING_RELEASE if release else pb.ChangeWidthRequest.KEEPING_HOLD
    )
    with ask(config, socket) as service:
        service.change_width(pb.ChangeWidthRequest(job_id=job_id, keeping=keeping))
    console().print(f"job {shown(job_id)} {'may change its width' if release else 'is held'}")


def _change(
    config: ConfigOption, socket: SocketOption, job_id: str, nodes: int, *, larger: bool
) -> None:
    with ask(config, socket) as service:
        job = service.elastic(job_id).jobs[0]
        if (nodes > job.node_count) != larger or nodes == job.node_count:
            verb, than = ("grow", "more than") if larger else ("shrink", "less than")
            problem = f"job {job_id} has {job.node_count} nodes: {verb} it to {than} that"
            raise ConfigError("NODES", problem)
        service.change_width(pb.ChangeWidthRequest(job_id=job_id, width=nodes))
    console().print(
        f"asked for: job {shown(job_id)} from {job.node_count} to {nodes} nodes; "
        f"see 'schedbridge elastic show {shown(job_id)}'"
    )


def _bounds(job: pb.ElasticJob) -> str:
    rule = f", {shown(job.rule)}" if job.rule else ""
    return f"{job.min_nodes}-{job.max_nodes}{rule}"


def _mpi_time(job: pb.ElasticJob) -> str:
    """As measured, else an estimate, labelled as such; empty: nothing is known."""
    if job.HasField("mtct"):
        return f"{job.mtct:.3f} s for each second of computing"
    if job.HasField("mtct_estimate"):
        waits = f"{job.mtct_estimate:.3f} s of waiting for each second of computing"
        return f"not measured; estimated by CPU use: {waits}"
    return ""


def _state(job: pb.ElasticJob, now_s: int) -> str:
    if job.state != "running":
        left = format_duration(max(job.until_s - now_s, 0))
        return f"{shown(job.state)} {job.node_count} -> {job.target_count} (at most {left} more)"
    if job.never:
        return "keeps its nodes"
    if job.held:
        return "held"
    if job.rests_until_s > now_s:
        return f"keeps its nodes for {format_duration(job.rests_until_s - now_s)}"
    return "running"
