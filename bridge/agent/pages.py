# SPDX-License-Identifier: Apache-2.0
"""The time that processes of this node's jobs spend in MPI, from the pages that they write.

`bridge/extensions/elastic/mpitime/page.h` has the layout. Users write the pages and may write
anything:

Rules
    1. A page lies in the folder of its job (`bridge.agent.job_folders`). It is sought by the exact
       name for each process of the job: so however many names a user makes, no more files are
       read than there are processes, and each process counts once.
    2. A page is read, not mapped, because its length may change at any moment.
    3. The first reading of a page is a baseline. A difference lies between zero and the elapsed
       time; a page of another process or with another begin is a different page.
    4. While all folders are empty, no process is examined.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from bridge.agent.job_folders import JobFolders
from bridge.agent.processes import Processes

MAGIC: Final = b"BRIDGEMT"
VERSION: Final = 1
BYTES: Final = 4096
_PAGE: Final = struct.Struct("<8sII32sIIQQQQ")


class Page(NamedTuple):
    """The report of a process; times in ns of CLOCK_MONOTONIC."""

    begin_ns: int
    mpi_ns: int
    in_since_ns: int


@dataclass
class MpiUse:
    """The increase since the last reading, summed over a job's processes on a node, seconds."""

    mpi_s: float = 0.0
    wall_s: float = 0.0
    processes: int = 0


class Pages:
    def __init__(self, processes: Processes, folders: JobFolders) -> None:
        """Takes the processes and the jobs' folders of this machine."""
        self._processes, self._folders = processes, folders
        self._before: dict[tuple[int, int, int], tuple[int, int]] = {}

    def read(self, now_ns: int) -> dict[tuple[str, str], MpiUse]:
        """The differences to the last reading, by job and node (empty: unknown).

        Args:
            now_ns: time of CLOCK_MONOTONIC.
        """
        found: dict[tuple[str, str], MpiUse] = {}
        seen = {}
        for where, pid, inode, page in self._pages():
            running_ns = now_ns - page.in_since_ns if 0 < page.in_since_ns <= now_ns else 0
            key, mpi_ns = (pid, inode, page.begin_ns), page.mpi_ns + running_ns
            seen[key] = (now_ns, mpi_ns)
            use = found.setdefault(where, MpiUse())
            use.processes += 1
            if key in self._before:
                then_ns, had_ns = self._before[key]
                wall_ns = max(now_ns - then_ns, 0)
                use.wall_s += wall_ns / 1e9
                use.mpi_s += min(max(mpi_ns - had_ns, 0), wall_ns) / 1e9
        self._before = seen
        return found

    def _pages(self) -> Iterator[tuple[tuple[str, str], int, int, Page]]:
        """Job and node, process id, inode and page, of all processes that have one."""
        jobs = {job for job in self._folders.jobs() if not self._folders.is_empty(job)}
        if not jobs:
            return
        for pid, where in self._processes.with_jobs():
            if where[0] not in jobs:
                continue
            file = self._folders.read(where[0], f"mpi.{pid}", _PAGE.size)
            page = _page_in(file.raw) if file is not None and file.size == BYTES else None
            if file is not None and page is not None:
                yield where, pid, file.inode, page


def _page_in(raw: bytes) -> Page | None:
    """The page in a file; None: it has none."""
    if len(raw) < _PAGE.size:
        return None
    magic, version, _, _, _, _, begin_ns, mpi_ns, _, in_since_ns = _PAGE.unpack(raw)
    if magic != MAGIC or version != VERSION:
        return None
    return Page(begin_ns, mpi_ns, in_since_ns)
