# SPDX-License-Identifier: Apache-2.0
"""Which processes on this machine belong to which job, from /proc.

Rules
    1. A process in a cgroup `.../job_N/...` belongs to job N, whatever its environment says. If
       Slurm makes no cgroups, SLURM_JOB_ID in the environment that it was started with decides.
       Anybody can set it, so such a process counts only if its real user is the job's.
    2. Several slurmds on one machine: the cgroup `slurm_NODE`, or SLURMD_NODENAME, says on which
       node it is. A process without either is on any of them.
    3. A user's process whose environment cannot be read counts as one of every job, so that nodes
       are not reported as vacant. Root may read all, but needs CAP_SYS_PTRACE.
    4. slurmstepd and the processes of a job's step `extern` are Slurm's, not the job's.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

_JOB = re.compile(rb"/job_([0-9]+)(?:/|$)", re.MULTILINE)
_NODE = re.compile(rb"/(?:slurm_([^/\n]+)|([^/\n]+)_slurmstepd\.scope)/")
_EXTERN = re.compile(rb"/step_extern(?:/|$)", re.MULTILINE)
_MOST_ENVIRONMENT = 1 << 20
_MOST_ANCESTORS = 32

UNKNOWN = "?"


class Processes:
    """The processes of this machine."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        """Reads a /proc."""
        self._proc = proc

    def count(self, job: str, node: str, uid: int | None = None) -> int:
        """How many processes of a job are on a node; see `of`."""
        return sum(1 for _ in self.of(job, node, uid))

    def of(self, job: str, node: str, uid: int | None = None) -> Iterator[int]:
        """Process ids of a job on a node.

        Args:
            job: its id on the node.
            node: by its name.
            uid: of the job's user; None: unknown; then any process may claim to be of the job.
        """
        for entry in os.scandir(self._proc):
            if entry.name.isdigit():
                pid = int(entry.name)
                found = self.job_of(pid)
                if found is None or found[0] not in (job, UNKNOWN) or found[1] not in ("", node):
                    continue
                if uid is None or self._is_sure(pid, job) or self._is_of(pid, uid):
                    yield pid

    def with_jobs(self) -> Iterator[tuple[int, tuple[str, str]]]:
        """All processes that belong to a job, except root's: process id; job and node."""
        for entry in os.scandir(self._proc):
            if not entry.name.isdecimal():
                continue
            try:
                if not entry.stat(follow_symlinks=False).st_uid:
                    continue
            except OSError:
                continue
            found = self.job_of(int(entry.name))
            if found is not None and found[0] != UNKNOWN:
                yield int(entry.name), found

    def _is_sure(self, pid: int, job: str) -> bool:
        """Whether a process belongs to a job by its cgroup."""
        try:
            found = _JOB.search((self._proc / str(pid) / "cgroup").read_bytes())
        except OSError:
            return False
        return found is not None and found[1].decode() == job

    def _is_of(self, pid: int, uid: int) -> bool:
        real = _real_uid(self._proc / str(pid))
        return real is None or real == uid

    def job_of_family(self, pid: int) -> tuple[str, str] | None:
        """The job and the node of a process, or of the nearest ancestor that belongs to one.

        A launcher starts with an environment without Slurm's variables.
        """
        for _ in range(_MOST_ANCESTORS):
            found = self.job_of(pid)
            if found is not None and found[0] != UNKNOWN:
                return found
            if pid <= 1:
                return None
            try:
                stat = (self._proc / str(pid) / "stat").read_bytes()
            except OSError:
                return None
            pid = int(stat.rpartition(b")")[2].split()[1])
        return None

    def job_of(self, pid: int) -> tuple[str, str] | None:
        """The job and the node of a process; None: it belongs to no job, or has ended.

        The job is `UNKNOWN` if it cannot be determined. The node is empty if unknown.
        """
        folder = self._proc / str(pid)
        try:
            if _state(folder) in (b"Z", b"X") or (folder / "comm").read_bytes() == b"slurmstepd\n":
                return None
            cgroups = (folder / "cgroup").read_bytes()
            job = _JOB.search(cgroups)
            if job is not None:
                if _EXTERN.search(cgroups):
                    return None
                node = _NODE.search(cgroups)
                return job[1].decode(), _text((node[1] or node[2]) if node else b"")
            with (folder / "environ").open("rb") as file:
                environment = file.read(_MOST_ENVIRONMENT).split(b"\0")
        except PermissionError:
            return None if _is_roots(folder) else (UNKNOWN, "")
        except (FileNotFoundError, ProcessLookupError):
            return None
        except OSError:  # for example, this agent has no file descriptor left
            return UNKNOWN, ""
        named = _value(environment, b"SLURM_JOB_ID=")
        if not named.isdigit():
            return None
        return named.decode(), _text(_value(environment, b"SLURMD_NODENAME="))


def _is_roots(folder: Path) -> bool:
    """Whether the real user of a process is root; its folder's owner may differ."""
    real = _real_uid(folder)
    return real == 0 if real is not None else not folder.exists()


def _real_uid(folder: Path) -> int | None:
    """The real user of a process; None: it has ended, or cannot be examined."""
    try:
        status = (folder / "status").read_bytes()
    except OSError:
        return None
    return int(status.partition(b"\nUid:")[2].split()[0])


def _state(folder: Path) -> bytes:
    """Its state, one letter; the name before it may contain anything."""
    return (folder / "stat").read_bytes().rpartition(b")")[2].split()[0]


def _value(environment: list[bytes], start: bytes) -> bytes:
    return next((entry[len(start) :] for entry in environment if entry.startswith(start)), b"")


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
