# SPDX-License-Identifier: Apache-2.0
"""`schedbridge run`: runs a program in a batch job so that the job can grow and shrink."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from bridge.errors import ConfigError
from bridge.extensions.elastic.launcher.options import AGENT, Options
from bridge.extensions.elastic.launcher.supervisor import supervise
from bridge.extensions.elastic.lines import ENGINES
from bridge.extensions.elastic.mpitime import LIBRARY

MPIS = ("pmi2", "pmix")
"""Values that are tried, in this order; the library tests which of them works."""
SIGNALS = ("USR1", "USR2", "HUP")
PARK = re.compile(r"/[A-Za-z0-9 /._+@:,=~-]{0,400}")
"""Characters that every binding of the library reads literally."""
LONGEST = 60
"""Longest path of a directory for sockets, whose own paths may have 107 characters."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command("run", context_settings={"allow_interspersed_args": False})
def run(  # noqa: PLR0917 - options, by name
    program: Annotated[
        list[str],
        typer.Argument(metavar="PROGRAM [ARGUMENTS]...", help="The program that srun would start."),
    ],
    tasks: Annotated[
        int, typer.Option("--tasks-per-node", min=0, help="Default: as in the job request.")
    ] = 0,
    mpi: Annotated[
        str, typer.Option(help="As for srun. Default: pmi2 or pmix, whichever works.")
    ] = "",
    engine: Annotated[
        str, typer.Option(help="join, relaunch or program. Default: a self-test chooses.")
    ] = "",
    worker: Annotated[
        str, typer.Option(help="Programs without MPI: a command to run on every node.")
    ] = "",
    signal: Annotated[
        str, typer.Option(help="Programs without MPI: USR1, USR2 or HUP when the nodes change.")
    ] = "",
    park: Annotated[
        Path, typer.Option(help="Directory in memory that holds data during a relaunch.")
    ] = Path("/dev/shm"),
    mpi_time: Annotated[
        bool, typer.Option(help="Measure the time in MPI, if the library for it is installed.")
    ] = True,
    agent: Annotated[
        str, typer.Option(envvar="SCHEDBRIDGE_AGENT", help="Socket of the node's agent.")
    ] = AGENT,
) -> None:
    """Run a program in this batch job, and let the job grow and shrink while it runs.

    For use in batch scripts, instead of srun. Without an agent the program runs as under srun.
    The exit code is the program's.
    """
    job = os.environ.get("SLURM_JOB_ID", "")
    if not job:
        raise ConfigError("schedbridge run", "belongs in a batch script: SLURM_JOB_ID is not set")
    if engine and engine not in ENGINES:
        raise ConfigError("--engine", f"must be one of {', '.join(ENGINES)}, not '{engine}'")
    if worker and engine not in ("", "program"):
        raise ConfigError("--worker", "is for programs without MPI (--engine program)")
    if signal and signal not in SIGNALS:
        raise ConfigError("--signal", f"must be one of {', '.join(SIGNALS)}, not '{signal}'")
    if not PARK.fullmatch(str(park)):
        raise ConfigError("--park", f"'{park}' must be an absolute path of plain characters")
    engine = "program" if worker else engine
    try:
        words = tuple(shlex.split(worker))  # no shell between: it would end at SIGTERM first
    except ValueError as error:
        raise ConfigError("--worker", f"'{worker}': {error}") from None
    options = Options(
        program=tuple(program), job=job, name=_name(job), nodes=_nodes(job),
        engine=engine, worker=words, signal=signal,
        mpis=("none",) if engine == "program" else (mpi,) if mpi else _mpis(),
        tasks=1 if engine == "program" else tasks or _tasks(os.environ),
        cpus=int(os.environ.get("SLURM_CPUS_PER_TASK") or 0), agent=agent, park=str(park),
        mpi_time=_mpi_library() if mpi_time else "",
    )  # fmt: skip
    base = tempfile.gettempdir()
    sys.exit(supervise(options, Path(base if len(base) <= LONGEST else "/tmp")))


def _name(job: str) -> str:
    """The job as its user knows it."""
    array = os.environ.get("SLURM_ARRAY_JOB_ID", "")
    return f"{array}_{os.environ.get('SLURM_ARRAY_TASK_ID', '')}" if array else job


def _mpi_library() -> str:
    """Path of the library; empty: it is missing, or the loader would split its path."""
    path = os.environ.get("SCHEDBRIDGE_MPI_TIME", str(LIBRARY))
    return path if Path(path).is_file() and not re.search(r"[\s:]", path) else ""


def _nodes(job: str) -> tuple[str, ...]:
    """The job's nodes, this one first.

    The environment has the nodes of the job's start; after a resize only Slurm knows them.
    """
    now = _answered(
        "squeue", "--noheader", f"--jobs={_name(job)}", "--states=all", "--format=%N"
    ).strip()
    known = now or os.environ.get("SLURM_JOB_NODELIST", "")
    names = _said("scontrol", "show", "hostnames", known).split()
    first = os.environ.get("SLURMD_NODENAME", "")
    if first not in names:
        raise ConfigError("schedbridge run", f"this node, '{first}', does not belong to the job")
    names.remove(first)
    return (first, *names)


def _mpis() -> tuple[str, ...]:
    """Those of MPIS that srun has."""
    listed = _said("srun", "--mpi=list").split()
    found = tuple(name for name in MPIS if name in listed)
    if not found:
        raise ConfigError("--mpi", f"must be given: srun has neither {' nor '.join(MPIS)}")
    return found


def _tasks(job: Mapping[str, str]) -> int:
    """Processes per node, from the environment of the job."""
    tasks = job.get("SLURM_NTASKS_PER_NODE") or job.get("SLURM_TASKS_PER_NODE", "1")
    counts = [int(found[0]) for part in tasks.split(",") if (found := re.match(r"\d+", part))]
    if len(set(counts)) > 1 and "SLURM_NTASKS" in job:
        raise ConfigError(
            "schedbridge run",
            f"needs the same number of processes on each node, but --ntasks={job['SLURM_NTASKS']}"
            f" gives this job {tasks}; submit it with --ntasks-per-node, or use --tasks-per-node",
        )
    return counts[0] if counts else 1


def _answered(*command: str) -> str:
    """A command's output; empty if it fails: slurmctld may be unavailable for a moment."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def _said(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError("schedbridge run", f"{command[0]} cannot be asked: {error}") from None
    return done.stdout + done.stderr
