# SPDX-License-Identifier: Apache-2.0
"""What an agent is told at its start."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.agent.job_folders import FOLDER
from bridge.agent.use.cgroups import ROOT


@dataclass(frozen=True)
class AgentSettings:
    """The options of an agent.

    Attributes:
        service: HOST:PORT of the service (`agents.address` there).
        ca, cert, key: PEM files: the authority, the agent's certificate, its key.
        socket: at which launchers attach.
        name: that the service's certificate must have; empty: the host in `service`.
        shares: it keeps CPU shares of jobs when the service orders some.
        cpus: the CPUs of a node; 0: those that this process may use.
        extensions: by the name of an extension: its settings.
    """

    service: str
    ca: Path
    cert: Path
    key: Path
    nodes: tuple[str, ...]
    socket: Path
    name: str = ""
    job_folders: Path = FOLDER
    shares: bool = True
    cgroups: Path = ROOT
    cpus: float = 0.0
    extensions: Mapping[str, Any] = field(default_factory=dict)
