# SPDX-License-Identifier: Apache-2.0
"""Resource use of a node's jobs, from the cgroups that Slurm makes for them.

| | jobs of a node | CPU time | memory, and its peak, in bytes |
|---|---|---|---|
| v1 | `cpuacct/slurm_NODE/uid_*/job_*` | `cpuacct.usage` | `memory/`: `memory.[max_]usage_...` |
| v2 | `[system.slice/]NODE_slurmstepd.scope/job_*` | `cpu.stat` | `memory.current`, `.peak` |

Rules
    1. Without the node's name, `slurm` and `slurmstepd.scope` are those of the machine's only node.
    2. The parent keeps the CPU time of ended processes, so the node's sum never decreases.
    3. A job without a process is left out: its cgroup may outlive it, and it would seem to be idle.
    4. If Slurm makes no such cgroups, the root that this process sees is the node: the machine, or
       in a container the container.
"""

import errno
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bridge.agent.use.numbers import whole_number
from bridge.agent.use.swap import swapped_v1, swapped_v2

ROOT: Final = Path("/sys/fs/cgroup")
_JOB: Final = re.compile(r"job_([0-9]+)")
_CPUACCT: Final[tuple[str, ...]] = ("cpuacct", "cpu,cpuacct", "cpuacct,cpu")
_LISTING: Final = ("freezer", *_CPUACCT, "memory", "cpuset", "devices")
"""Hierarchies of v1 in which Slurm lists processes, depending on its plugins."""
MAX_JOBS: Final = 1024
"""Of a node."""


@dataclass(frozen=True)
class CgroupUse:
    """Use of a job on a node since it began there.

    Attributes:
        cpu_s: CPU time of all its processes, including ended ones.
        peak_bytes: maximum memory so far; 0: not counted.
        pressure: share of the last 10 s in which some of its tasks waited for memory; None: the
            kernel counts it for no job (v1).
        swap_bytes: memory that is swapped out at present; None: not accounted for.
    """

    cpu_s: float
    memory_bytes: int
    peak_bytes: int = 0
    pressure: float | None = None
    swap_bytes: int | None = None


class NodeCgroups:
    """The cgroups of one node; they may appear and disappear at any time."""

    def __init__(self, node: str, *, alone: bool, root: Path = ROOT) -> None:
        """Names them.

        Args:
            node: as Slurm calls it.
            alone: the machine has no other node.
        """
        self._root = root
        self._v1 = [f"slurm_{node}", *(["slurm"] if alone else [])]
        self._v2 = [f"{node}_slurmstepd.scope", *(["slurmstepd.scope"] if alone else [])]
        self._alone = alone

    @property
    def is_v2(self) -> bool:
        """Whether the machine has cgroups of version 2 alone."""
        return (self._root / "cgroup.controllers").exists()

    def _base(self, below: Sequence[str] = _CPUACCT) -> Path | None:
        """The directory with the node's jobs; of v1, in the first of these hierarchies with one."""
        names = self._v1
        if self.is_v2:
            names, below = self._v2, ("", "system.slice")
        folders = [self._root / name for name in below]
        for folder in folders:
            for name in names:
                if (folder / name).is_dir():
                    return folder / name
        return None

    def cpu_s(self) -> float | None:
        """CPU time of the node since its begin; None: there is no cgroup of it."""
        base = self._base()
        if base is None and self._alone:
            base = self._root if self.is_v2 else self._machine()
        return None if base is None else _cpu_s(base)

    def _machine(self) -> Path | None:
        return next((self._root / name for name in _CPUACCT if (self._root / name).is_dir()), None)

    def folders(self) -> dict[str, Path]:
        """The directories in which Slurm lists the processes of jobs, by job."""
        base = self._base(_LISTING)
        return {} if base is None else dict(_jobs(base, depth=0 if self.is_v2 else 1))

    def occupants(self) -> frozenset[str]:
        """Jobs with a process on the node, Slurm's own processes of a job included.

        Raises:
            OSError: some cgroups cannot be read, so that a job may be missing.
        """
        base = self._base(_LISTING)
        depth = 0 if self.is_v2 else 1
        found = () if base is None else _jobs(base, depth, onerror=_fail)
        return frozenset(job for job, folder in found if _has_processes(folder))

    def jobs(self) -> dict[str, CgroupUse] | None:
        """By job id on the node; None: there are no cgroups of jobs here."""
        base = self._base()
        if base is None:
            return None
        found: dict[str, CgroupUse] = {}
        for job, folder in _jobs(base, depth=0 if self.is_v2 else 1):
            cpu_s = _cpu_s(folder)
            if cpu_s is None or len(found) >= MAX_JOBS or not _has_processes(folder):
                continue
            found[job] = self._used(cpu_s, folder)
        return found

    def _used(self, cpu_s: float, folder: Path) -> CgroupUse:
        names = ("memory.current", "memory.peak")
        if not self.is_v2:
            names = ("memory.usage_in_bytes", "memory.max_usage_in_bytes")
            folder = self._root.joinpath("memory", *folder.relative_to(self._root).parts[1:])
        memory, peak = (max(whole_number(folder / name) or 0, 0) for name in names)
        swap = swapped_v2(folder) if self.is_v2 else swapped_v1(folder)
        return CgroupUse(cpu_s, memory, peak, pressure(folder / "memory.pressure"), swap)


def _fail(error: OSError) -> None:
    """Raises an error, unless a cgroup has been removed meanwhile."""
    if not isinstance(error, FileNotFoundError):
        raise error


def _jobs(
    base: Path, depth: int, onerror: Callable[[OSError], None] = lambda _: None
) -> Iterator[tuple[str, Path]]:
    """Directories of jobs, at this depth below the base; `onerror` as in `os.walk`."""
    try:
        with os.scandir(base) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError as error:
        onerror(error)
        return
    for name in names:
        job = _JOB.fullmatch(name)
        if depth == 0 and job is not None:
            yield job[1], base / name
        elif depth and name.startswith("uid_"):
            yield from _jobs(base / name, depth - 1, onerror)


def _has_processes(folder: Path) -> bool:
    """Whether a process is in a cgroup or below it; also if that cannot be read."""
    known, unread = False, list[OSError]()
    for at, _, files in os.walk(folder, onerror=unread.append, followlinks=False):
        if "cgroup.procs" not in files:
            continue
        try:
            with (Path(at) / "cgroup.procs").open("rb") as lines:
                if lines.read(1):
                    return True
        except FileNotFoundError:
            continue
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:  # of a threaded one, which another counts for
                unread.append(error)
            continue
        known = True
    return not known or bool(unread)


def _cpu_s(folder: Path) -> float | None:
    usage_ns = whole_number(folder / "cpuacct.usage")
    if usage_ns is not None:
        return usage_ns / 1e9
    try:
        text = (folder / "cpu.stat").read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return None
    for line in text.splitlines():
        key, _, value = line.partition(" ")
        if key == "usage_usec" and value.isdecimal():
            return int(value) / 1e6
    return None


def pressure(path: Path) -> float | None:
    """The share of the last 10 s in which some task waited, in [0, 1], from a file of PSI."""
    try:
        words = path.read_text(encoding="ascii").split()
        return min(max(float(words[1].removeprefix("avg10=")) / 100, 0.0), 1.0)
    except (OSError, ValueError, IndexError):
        return None


def usable_cpus(root: Path = ROOT) -> float:
    """CPUs that this process' cgroup may use at the same time, more than 0."""
    cpus = float(len(os.sched_getaffinity(0)))
    quota: int | None
    period: int | None
    quota, period = (whole_number(root / "cpu" / f"cpu.cfs_{of}_us") for of in ("quota", "period"))
    try:
        words = (root / "cpu.max").read_text(encoding="ascii").split()
        if len(words) == 2 and words[0].isdecimal():
            quota, period = int(words[0]), int(words[1])
    except (OSError, ValueError):
        pass
    if quota is not None and period is not None and quota > 0 and period > 0:
        cpus = min(cpus, quota / period)
    return cpus
