# SPDX-License-Identifier: Apache-2.0
"""`schedbridge agent`: runs the agent of a node until it is stopped."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from bridge.agent.daemon import check_nodes, serve
from bridge.agent.job_folders import FOLDER
from bridge.agent.launchers import own_host
from bridge.agent.privileges import drop_capabilities, raise_priority
from bridge.agent.settings import AgentSettings
from bridge.agent.use.cgroups import ROOT
from bridge.extensions.power.on_nodes.choice import NAME as POWER
from bridge.extensions.power.on_nodes.choice import ORDER, PowerSettings, model_from, sensors_from
from bridge.service.logs import start_logging

_TLS = Path("/etc/schedbridge/agent")


def agent(  # noqa: PLR0917 - options, by name
    service: Annotated[
        str, typer.Argument(help="HOST:PORT of the service, as in its agents.address.")
    ],
    node: Annotated[
        list[str] | None,
        typer.Option(help="Name of this node; repeat for several slurmds on one machine. "
                     "Default: this machine's name."),
    ] = None,
    ca: Annotated[Path, typer.Option(help="PEM file of the authority.")] = _TLS / "ca.crt",
    cert: Annotated[Path, typer.Option(help="PEM file of its certificate.")] = _TLS / "agent.crt",
    key: Annotated[Path, typer.Option(help="PEM file of its private key.")] = _TLS / "agent.key",
    name: Annotated[
        str, typer.Option(help="Name in the service's certificate, if it is not HOST.")
    ] = "",
    socket: Annotated[
        Path, typer.Option(help="Unix socket at which launchers of malleable jobs attach.")
    ] = Path("/run/schedbridge-agent/launcher.sock"),
    job_folders: Annotated[
        Path, typer.Option(help="Directory of the jobs' folders, as spank_bridge.so has it.")
    ] = FOLDER,
    power_sensors: Annotated[
        str, typer.Option(help="Sources of measured power; the first with a value is used. "
                          "'none': no source.")
    ] = ",".join(ORDER),
    power_model: Annotated[
        str, typer.Option(metavar="IDLE-MAX", help="Power of this node idle and at most, W, "
                          "for the model. Default: as the service's configuration states it.")
    ] = "",
    power_rest: Annotated[
        float,
        typer.Option(min=0, max=100_000, help="Power that RAPL does not measure, W; it is added."),
    ] = 0.0,
    power_cpus: Annotated[
        float, typer.Option(min=0, max=65_536, help="CPUs of a node, for the model. Default: those "
                            "that the agent may use.")
    ] = 0.0,
    sysfs: Annotated[
        Path, typer.Option(help="Where class/powercap and cray/pm_counters are.")
    ] = Path("/sys"),
    shares: Annotated[
        bool, typer.Option(help="Keep CPU shares of jobs that share this node, when the service "
                           "orders some.")
    ] = True,
    cgroups: Annotated[Path, typer.Option(help="Where cgroups are mounted.")] = ROOT,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"], typer.Option(help="Lowest severity logged.")
    ] = "info",
) -> None:  # fmt: skip
    """Run the agent of a node: it connects `schedbridge run` with the service.

    Runs as root on every compute node, because it examines the processes of all users. Without it
    jobs run on the node as usual, but they are never resized and never share it. Stops on SIGTERM
    or Ctrl-C; a small process then keeps jobs apart that share the node.
    """
    nodes = check_nodes(node or [own_host()])
    power = PowerSettings(sensors_from(power_sensors), sysfs, power_rest, model_from(power_model))
    socket.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    start_logging(log_level, "text")
    raise_priority()
    drop_capabilities()
    serve(
        AgentSettings(
            service,
            ca,
            cert,
            key,
            nodes,
            socket,
            name,
            job_folders,
            shares,
            cgroups,
            power_cpus,
            extensions={POWER: power},
        )
    )
