# SPDX-License-Identifier: Apache-2.0
"""`schedbridge topology`: the switches, the jobs on them, and checks of a topology.conf.

| SOURCE | switches | and on them |
|---|---|---|
| nothing | of the live service, or `--file` | the jobs of its last cycle |
| `*.cycle.json.gz` | of the recording, or `--file` | its jobs, and those that it starts |
| `*.yaml` | of a simulated system, or `--file` | none |
| anything else | a topology.conf (Slurm's tree and block plugins) | none |

`--file` alone, without a service, shows its switches without jobs.
"""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from bridge.cli.operators.asking import (
    ConfigOption,
    JsonOption,
    SocketOption,
    ask,
    console,
    say,
    shown,
    when,
)
from bridge.dialect import dialect_named
from bridge.errors import ConfigError, RequestError
from bridge.lab.report.occupancy import Placed, TreeOccupancy
from bridge.lab.report.topology_svg import topology_svg
from bridge.lab.report.topology_text import KEY, jobs_table, tree_text
from bridge.lab.sim.workloads.system import read_system
from bridge.model.topology import Topology
from bridge.recording.recordings import read_recording
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.service import default_sockets

app = typer.Typer(
    add_completion=False, help="The switches, and the jobs on them.", no_args_is_help=True
)

_WIDTH = 80
_MAX_NAMED = 8

SourceArgument = Annotated[
    Path | None,
    typer.Argument(
        help="A recording (*.cycle.json.gz), a simulated system (*.yaml) or a topology.conf; "
        "without one, the live service.",
        metavar="[SOURCE]",
        show_default=False,
    ),
]
FileOption = Annotated[
    Path | None,
    typer.Option("--file", "-f", help="The switches of this topology.conf, under the nodes and "
                 "jobs of the source."),
]  # fmt: skip


@app.command()
def show(
    source: SourceArgument = None,
    *,
    file: FileOption = None,
    svg: Annotated[
        Path | None, typer.Option(help="Write a drawing to this file instead.", metavar="FILE")
    ] = None,
    jobs: Annotated[int, typer.Option(min=0, help="Jobs in the list, the largest first.")] = 20,
    unfold: Annotated[
        bool, typer.Option("--unfold", help="A line for each leaf switch, however many.")
    ] = False,
    config: ConfigOption = None,
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Draw the switches and the jobs on them.

    Each line is a leaf switch and each letter a node: the letter of its job, "." idle,
    "!" down. For each job: its nodes, their leaf switches, and the number of
    hops between two nodes (2 below one leaf switch, 4 below one switch above
    those, and so on), mean over all pairs.

        schedbridge topology show                     # the live cluster
        schedbridge topology show --svg tree.svg      # the same as a drawing
        schedbridge topology show --file topology.conf
        schedbridge topology show one.cycle.json.gz --file planned.conf

    A simulated system is drawn empty; for jobs on it, record it first:

        schedbridge lab record --trace LOG --system mine.yaml --out now
        schedbridge topology show now/FILE.cycle.json.gz
    """
    view = _view(source, file, config, socket)
    occupancy = view.occupancy
    if as_json:
        say(json.dumps({"source": view.name, **occupancy.plain()}))
    if svg is not None:
        try:
            svg.write_text(topology_svg(occupancy, _title(view)), encoding="utf-8")
        except OSError as error:
            raise ConfigError("--svg", f"{svg} cannot be written: {error.strerror}") from None
    if as_json or svg is not None:
        return
    screen = console()
    say(_title(view))
    say(_summary(occupancy))
    width = screen.width if screen.is_terminal else _WIDTH
    screen.print(tree_text(occupancy, width=width, fold=not unfold), soft_wrap=True)
    say(KEY)
    if occupancy.jobs and jobs:
        say("")
        screen.print(jobs_table(occupancy, jobs))
        if len(occupancy.jobs) > jobs:
            say(f"and {len(occupancy.jobs) - jobs:,} smaller ones (--jobs shows more)")


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="A topology.conf.", metavar="FILE")],
    source: Annotated[
        Path | None,
        typer.Option("--nodes", help="Compare with the nodes of this recording or system."),
    ] = None,
    *,
    live: Annotated[
        bool, typer.Option("--live", help="Compare with the nodes of the live service.")
    ] = False,
    config: ConfigOption = None,
    socket: SocketOption = None,
    as_json: JsonOption = False,
) -> None:
    """Check a topology.conf for errors and for missing nodes.

    Exit code 1 if the file is invalid (a node or switch described twice, a
    switch that does not exist or is below itself), or if nodes of the
    cluster are on no switch.

        schedbridge topology check topology.conf --live
        schedbridge topology check topology.conf --nodes mine.yaml
    """
    if live and source is not None:
        raise ConfigError("--live", "give either --live or --nodes")
    named = dialect_named("").topology_nodes(file)
    cluster = _names(source, config, socket) if live or source is not None else tuple(named)
    topology = dialect_named("").read_topology(file, cluster)
    occupancy = TreeOccupancy.of(topology, cluster)
    on_none = [cluster[i] for i in np.flatnonzero(topology.leaf_of_node < 0)]
    known = set(cluster)
    strange = [name for name in named if name not in known]
    leaves = [leaf for leaf in range(len(topology)) if leaf not in occupancy.below]
    widths = [len(occupancy.nodes_of_leaf.get(leaf, [])) for leaf in leaves]
    roots = occupancy.below[-1]
    if as_json:
        say(
            json.dumps(
                {
                    "file": str(file),
                    "nodes": len(cluster),
                    "switches": len(topology),
                    "leaf_switches": len(leaves),
                    "levels": occupancy.levels,
                    "fabrics": [topology.names[root] for root in roots],
                    "leaf_width": [min(widths), max(widths)],
                    "on_no_switch": on_none,
                    "not_of_the_cluster": strange,
                }
            )
        )
        raise typer.Exit(1 if on_none else 0)
    minimum, maximum = min(widths), max(widths)
    say(
        f"{file}: {_some(len(cluster), 'node')}, {_some(len(leaves), 'leaf switch', 'es')} of "
        f"{minimum:,}{f' to {maximum:,}' if maximum > minimum else ''}, "
        f"{_some(occupancy.levels, 'level')}"
    )
    if len(roots) > 1:
        say(
            f"  {len(roots)} fabrics ({_list([topology.names[root] for root in roots])}): no job "
            "gets nodes of two"
        )
    if empty := [topology.names[leaf] for leaf, n in zip(leaves, widths, strict=True) if not n]:
        say(f"  {_some(len(empty), 'leaf switch', 'es')} without nodes: {_list(empty)}")
    if strange:
        say(f"  {_some(len(strange), 'node')} that the cluster does not have: {_list(strange)}")
    if on_none:
        say(f"  {_some(len(on_none), 'node')} of the cluster on no switch: {_list(on_none)}")
        raise typer.Exit(1)


# ------------------------------------------------------------ sources


@dataclass(frozen=True)
class _View:
    """What is drawn, and where it comes from."""

    name: str
    occupancy: TreeOccupancy


def _view(
    source: Path | None, file: Path | None, config: Path | None, socket: Path | None
) -> _View:
    kind = _kind(source)
    try:
        if source is None and file is not None and _no_service_named(config, socket):
            print("no service on this machine: switches only", file=sys.stderr)
            return _alone(file)
        if source is None:
            return _live(file, config, socket)
        if kind == "recording":
            recording = read_recording(source)
            snapshot = recording.snapshot
            topology = _switches(file, snapshot.nodes.names, snapshot.topology, str(source))
            return _View(str(source), TreeOccupancy.of_cycle(snapshot, recording.plan, topology))
        if kind == "system":
            system = read_system(source)
            topology = _switches(file, system.nodes.names, system.topology, str(source))
            return _View(str(source), TreeOccupancy.of(topology, system.nodes.names))
    except ValueError as error:  # of a tree that was recorded or sent
        raise ConfigError("topology", str(error), file=str(source or "the service")) from None
    if file is not None:
        raise ConfigError("--file", f"{source} describes switches itself: give one of them")
    return _alone(source)


def _alone(file: Path) -> _View:
    dialect = dialect_named("")
    names = dialect.topology_nodes(file)
    return _View(str(file), TreeOccupancy.of(dialect.read_topology(file, names), names))


def _no_service_named(config: Path | None, socket: Path | None) -> bool:
    """Whether no service was named, and there is none where one is by default."""
    return config is None and socket is None and not default_sockets.OPERATOR.exists()


def _kind(source: Path | None) -> str:
    if source is None:
        return "service"
    if source.suffix == ".gz":
        return "recording"
    return "system" if source.suffix in (".yaml", ".yml") else "file"


def _switches(
    file: Path | None, names: tuple[str, ...], own: Topology | None, where: str
) -> Topology:
    if file is not None:
        return dialect_named("").read_topology(file, names)
    if own is None:
        raise ConfigError("topology", "knows no switches: give --file topology.conf", file=where)
    return own


def _names(source: Path | None, config: Path | None, socket: Path | None) -> tuple[str, ...]:
    """The nodes of a cluster."""
    if source is None:
        with ask(config, socket) as service:
            return tuple(node.name for node in service.topology().nodes)
    kind = _kind(source)
    if kind == "recording":
        return read_recording(source).snapshot.nodes.names
    if kind == "system":
        return read_system(source).nodes.names
    raise ConfigError(
        "--nodes", f"{source} is neither a recording (*.cycle.json.gz) nor a system (*.yaml)"
    )


def _live(file: Path | None, config: Path | None, socket: Path | None) -> _View:
    with ask(config, socket) as service:
        reply, cluster = service.topology(), service.status().cluster
    names = tuple(node.name for node in reply.nodes)
    where = f"cluster {shown(cluster)}" if cluster else "the service"
    if file is None and not reply.switches:
        raise ConfigError(
            "topology",
            "the service knows no switches: set 'topology' in its configuration, or give --file",
        )
    own = Topology(
        tuple(switch.name for switch in reply.switches),
        np.array([switch.parent for switch in reply.switches], dtype=np.int32),
        np.array([node.leaf for node in reply.nodes], dtype=np.int32),
    )
    index = NodeIndex(names)
    try:
        jobs = [_placed(job, index) for job in reply.jobs]
    except RequestError as error:
        raise ConfigError("topology", f"the service's answer is invalid: {error}") from None
    return _View(
        where,
        TreeOccupancy.of(
            _switches(file, names, own, where),
            names,
            down=np.array([not node.usable for node in reply.nodes], dtype=bool),
            words=[node.state for node in reply.nodes],
            jobs=jobs,
            now_s=reply.now_s,
        ),
    )


def _placed(job: pb.PlannedJob, index: NodeIndex) -> Placed:
    nodes = index.parse(job.nodes)
    return Placed(job.job_id, job.name, job.user, nodes, job.end_s, job.running)


# ------------------------------------------------------------ words


def _title(view: _View) -> str:
    now_s = view.occupancy.now_s
    return f"{view.name}, {when(now_s)}" if now_s else view.name


def _summary(occupancy: TreeOccupancy) -> str:
    count = len(occupancy.names)
    words = f"{_some(count, 'node')}: {occupancy.count(range(count)).text}"
    if occupancy.now_s is not None:
        words += f"; {_some(len(occupancy.jobs), 'job')}"
    return words


def _some(count: int, what: str, plural: str = "s") -> str:
    return f"{count:,} {what}{plural if count != 1 else ''}"


def _list(names: list[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED:,} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more
