# SPDX-License-Identifier: Apache-2.0
"""What an agent is told at its start."""

from dataclasses import dataclass, field
from pathlib import Path

from bridge.agent.job_folders import FOLDER
from bridge.agent.power.cgroups import ROOT
from bridge.agent.power.choice import PowerSettings


@dataclass(frozen=True)
class AgentSettings:
    """The options of an agent.

    Attributes:
        service: HOST:PORT of the service (`agents.address` there).
        ca, cert, key: PEM files: the authority, the agent's certificate, its key.
        socket: at which launchers attach.
        name: that the service's certificate must have; empty: the host in `service`.
        shares: it keeps CPU shares of jobs when the service orders some.
    """

    service: str
    ca: Path
    cert: Path
    key: Path
    nodes: tuple[str, ...]
    socket: Path
    name: str = ""
    job_folders: Path = FOLDER
    power: PowerSettings = field(default_factory=PowerSettings)
    shares: bool = True
    cgroups: Path = ROOT
