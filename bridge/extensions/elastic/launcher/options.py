# SPDX-License-Identifier: Apache-2.0
"""The options of `schedbridge run`, and the paths of its files."""

import contextlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

AGENT: Final = "/run/schedbridge-agent/launcher.sock"
PREFIX: Final = "SCHEDBRIDGE_ELASTIC"


@dataclass(frozen=True)
class Options:
    program: tuple[str, ...]
    job: str
    """As Slurm's commands take it."""
    name: str
    """As the agent knows it: 123, or 120_3 for a task of an array."""
    nodes: tuple[str, ...]
    mpis: tuple[str, ...] = ("pmi2", "pmix")
    """To be tried, in this order."""
    engine: str = ""
    """join, relaunch or program; empty: the self-test chooses."""
    tasks: int = 1
    """Processes per node."""
    cpus: int = 0
    """Per process; 0: as Slurm has it."""
    worker: tuple[str, ...] = ()
    """Programs without MPI: a command that runs on every node."""
    signal: str = ""
    """Programs without MPI: the name of a signal that says the nodes have changed."""
    agent: str = AGENT
    park: str = "/dev/shm"
    mpi_time: str = ""
    """The library that measures time in MPI; empty: it is not measured."""
    token: str = ""
    tcp: str = ""
    """HOST:PORT of the launcher for processes on other nodes."""


@dataclass(frozen=True)
class Folder:
    """The run's directory on the first node, which only its user can enter."""

    path: Path

    @property
    def run(self) -> str:
        """The unique name of the run."""
        return self.path.name.rpartition("-")[2]

    @property
    def socket(self) -> Path:
        """Where rank 0 finds the launcher."""
        return self.path / "launcher.sock"

    @property
    def state(self) -> Path:
        """The launcher's record."""
        return self.path / "state.json"

    @property
    def steps(self) -> Path:
        """A directory per step that was started."""
        return self.path / "steps"

    @property
    def code(self) -> Path:
        """The exit code, once the run is over."""
        return self.path / "code"

    def end(self, code: int) -> None:
        """The run is over: a link whose target is the code needs no room on a full disk."""
        with contextlib.suppress(FileExistsError):
            self.code.symlink_to(str(code))

    def ended(self) -> int | None:
        """The exit code that `end` was given; None: the run is not over."""
        try:
            return int(self.code.readlink().name)
        except FileNotFoundError:
            return None

    @property
    def nodes(self) -> Path:
        """The nodes in use, one per line, for programs without MPI."""
        return self.path / "nodes"

    def write(self, options: Options) -> None:
        """Keeps the options for launchers that are started again."""
        (self.path / "options.json").write_text(json.dumps(asdict(options)))

    def read(self) -> Options:
        """The options that `write` kept."""
        stored = json.loads((self.path / "options.json").read_text())
        for name in ("program", "nodes", "mpis", "worker"):
            stored[name] = tuple(stored[name])
        return Options(**stored)


def clean_environment() -> dict[str, str]:
    """The environment without the batch script's Slurm variables, stale after a resize."""
    stale = ("SLURM_", "SLURMD_", "SBATCH_", "SRUN_", "PMI", "PMIX", PREFIX)
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(stale) or name == "SLURM_CONF"
    }
