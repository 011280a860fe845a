# SPDX-License-Identifier: Apache-2.0
"""Which processes on this machine belong to which job, from /proc.

Rules
    1. A process in a cgroup `.../job_N/...` belongs to job N, whatever its environment says. If
       Slurm makes no cgroups, SLURM_JOB_ID in the environment that it was started with decides.
       Anybody can set it, so such a process counts only if its real user is the job's: the owner
       of the job's folder (`bridge.agent.job_folders`).
       Only a cgroup that Slurm made counts: users can make cgroups of any name below `user.slice`,
       and in `name=systemd` of version 1.
    2. Several slurmds on one machine: the cgroup `slurm_NODE`, or SLURMD_NODENAME, says on which
       node it is. A process without either is on any of them.
    3. A user's process whose environment cannot be read counts as one of every job of this user
       when a node is to be vacant. Root may read all, but needs CAP_SYS_PTRACE.
    4. slurmstepd and the processes of a job's step `extern` are Slurm's, not the job's. Every
       process can name itself: only one of root's is slurmstepd.
    5. The user of a process is its real one. The owner of its folder in /proc is the effective
       one: root for every setuid program.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bridge.agent.job_folders import JobFolders

_NO_USERS = rb"(?:(?!/user\.slice/).)*?"  # also not behind the `..` of a namespace of cgroups
_JOB = re.compile(
    rb"^(?:[0-9]+:(?!name=)[^:\n]+:" + _NO_USERS + rb"/slurm(?:_(?P<v1>[^/\n]+))?/uid_[0-9]+"
    rb"|0::" + _NO_USERS + rb"/(?:(?P<v2>[^/\n]+)_)?slurmstepd\.scope)"
    rb"/job_(?P<job>[0-9]+)(?P<extern>/step_extern(?=/|$))?(?=/|$)",
    re.MULTILINE,
)
_MAX_ENVIRONMENT = 1 << 20
_MAX_ANCESTORS = 32

UNKNOWN = "?"


@dataclass(frozen=True)
class Status:
    """What the kernel says about a process.

    Attributes:
        name: as it calls itself.
        ended: only its parent has not noticed yet.
        parent: its process id.
        uid: its real user.
    """

    name: bytes
    ended: bool
    parent: int
    uid: int

    @property
    def is_slurms(self) -> bool:
        """Whether it is slurmstepd (rule 4)."""
        return self.uid == 0 and self.name == b"slurmstepd"


def read_status(pid: int, proc: Path = Path("/proc")) -> Status:
    """What the kernel says about a process.

    Raises:
        OSError: it has ended, or cannot be examined.
    """
    lines = (proc / str(pid) / "status").read_bytes().split(b"\n")  # a name may contain \r
    fields = dict(line.split(b":\t", 1) for line in lines if b":\t" in line)
    return Status(
        fields[b"Name"],
        fields[b"State"][:1] in b"ZX",
        int(fields[b"PPid"]),
        int(fields[b"Uid"].split()[0]),
    )


def is_slurms(pid: int, proc: Path = Path("/proc")) -> bool:
    """Whether a process is slurmstepd; not if it cannot be examined."""
    try:
        return read_status(pid, proc).is_slurms
    except OSError:
        return False


@dataclass(frozen=True)
class _Claim:
    """To which job a process belongs, and how that is known.

    Attributes:
        job: `UNKNOWN` if it cannot be determined.
        node: empty if unknown.
        uid: the process' real user; None: unknown.
    """

    job: str
    node: str = ""
    uid: int | None = None
    is_sure: bool = False


class Processes:
    def __init__(self, proc: Path = Path("/proc"), folders: JobFolders | None = None) -> None:
        """Reads a /proc.

        Args:
            folders: folders of the jobs on this machine; None: where they usually are.
        """
        self._proc, self._folders = proc, folders or JobFolders()

    def count(self, job: str, node: str, uid: int | None = None) -> int:
        """How many processes of a job are on a node; see `of`."""
        return sum(1 for _ in self.of(job, node, uid))

    def of(self, job: str, node: str, uid: int | None = None) -> Iterator[int]:
        """Processes that belong, or may belong, to a job on a node, by their ids.

        Args:
            job: its id on the node.
            uid: the uid of the job's user, where the job has no folder; None: unknown; then any
                process may claim to be of the job.
        """
        known = self._folders.user_of(job)
        user = uid if known is None else known
        for pid in self._pids():
            claim = self._claim(pid)
            if claim is None or claim.job not in (job, UNKNOWN) or claim.node not in ("", node):
                continue
            if claim.is_sure or user is None or claim.uid in {None, user}:
                yield pid

    def with_jobs(self) -> Iterator[tuple[int, tuple[str, str]]]:
        """All processes that belong to a job: process id; job and node."""
        for pid in self._pids():
            found = self.job_of(pid)
            if found is not None:
                yield pid, found

    def job_of_family(self, pid: int, uid: int) -> tuple[str, str] | None:
        """The job and the node of a process, or of the nearest ancestor that belongs to one.

        A launcher starts with an environment without Slurm's variables.

        Args:
            uid: its user. That of another process, or of an ancestor, does not count: ids of
                processes are reused.
        """
        for _ in range(_MAX_ANCESTORS):
            try:
                status = read_status(pid, self._proc)
            except OSError:
                return None
            found = self.job_of(pid) if status.uid == uid else None
            if found is not None or status.uid != uid:
                return found
            pid = status.parent
        return None

    def job_of(self, pid: int) -> tuple[str, str] | None:
        """The job and the node (empty: unknown) of a process; None: of no job, or not known."""
        claim = self._claim(pid)
        if claim is None or claim.uid is None or claim.job == UNKNOWN:
            return None
        if not claim.is_sure and claim.uid != self._folders.user_of(claim.job):
            return None
        return claim.job, claim.node

    def _pids(self) -> Iterator[int]:
        with os.scandir(self._proc) as entries:
            yield from (int(entry.name) for entry in entries if entry.name.isdecimal())

    def _claim(self, pid: int) -> _Claim | None:
        """What is known of a process; None: it belongs to no job, or has ended."""
        uid: int | None = None
        try:
            status = read_status(pid, self._proc)
            if status.ended or status.is_slurms:
                return None
            uid = status.uid
            found = _JOB.search((self._proc / str(pid) / "cgroup").read_bytes())
            if found is not None:
                node = found["v1"] or found["v2"] or b""
                job = found["job"].decode()
                return None if found["extern"] else _Claim(job, _text(node), uid, is_sure=True)
            with (self._proc / str(pid) / "environ").open("rb") as file:
                environment = file.read(_MAX_ENVIRONMENT).split(b"\0")
        except PermissionError:
            return _Claim(UNKNOWN, uid=uid) if uid != 0 else None
        except (FileNotFoundError, ProcessLookupError):
            return None
        except OSError:  # for example, this agent has no file descriptor left
            return _Claim(UNKNOWN, uid=uid)
        named = _value(environment, b"SLURM_JOB_ID=")
        if not (named.isascii() and named.isdigit()):
            return None
        return _Claim(named.decode(), _text(_value(environment, b"SLURMD_NODENAME=")), uid)


def _value(environment: list[bytes], start: bytes) -> bytes:
    return next((entry[len(start) :] for entry in environment if entry.startswith(start)), b"")


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")
