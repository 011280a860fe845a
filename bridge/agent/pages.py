# SPDX-License-Identifier: Apache-2.0
"""The time that processes of this node's jobs spend in MPI, from the pages that they write.

`bridge/elastic/mpitime/page.h` has the layout. Users write the pages and may write anything:

Rules
    1. A page counts if it belongs to a living process, by name, and both have the same user. The
       kernel tells which job that is.
    2. A page is read, not mapped, because its length may change at any moment.
    3. The first reading of a page is a baseline. A difference lies between zero and the elapsed
       time; a page of another process or with another begin is a different page.
    4. Only pages of ended processes are removed from the directory.
"""

import os
import re
import stat
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from bridge.agent.processes import Processes
from bridge.agent.public_folder import entries, make_public

FOLDER: Final = Path("/dev/shm/schedbridge-mpi")
MAGIC: Final = b"BRIDGEMT"
VERSION: Final = 1
BYTES: Final = 4096
MOST_PAGES, MOST_NAMES = 4096, 20_000
"""Examined in one reading: pages, and names of files."""
_PAGE: Final = struct.Struct("<8sII32sIIQQQQ")
_NAME: Final = re.compile(r"([0-9]{1,10})\.([0-9]{1,10})")


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
    """All pages of this machine."""

    def __init__(
        self, processes: Processes, folder: Path = FOLDER, proc: Path = Path("/proc")
    ) -> None:
        self._processes, self._folder, self._proc = processes, folder, proc
        self._before: dict[tuple[int, int, int], tuple[int, int]] = {}

    def open(self) -> bool:
        """Makes the directory in which every user can make pages.

        Returns:
            False: it cannot be made, or belongs to another user; then nothing is measured.
        """
        return make_public(self._folder)

    def read(self, now_ns: int) -> dict[tuple[str, str], MpiUse]:
        """The differences to the last reading, by job and node (empty: unknown).

        Args:
            now_ns: of CLOCK_MONOTONIC.
        """
        self._remove_old()
        found: dict[tuple[str, str], MpiUse] = {}
        seen = {}
        for pid, inode, page in islice(self._pages(), MOST_PAGES):
            where = self._processes.job_of(pid)
            if where is None:
                continue
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

    def _pages(self) -> Iterator[tuple[int, int, Page]]:
        """Pages of living processes: by process, so that other files cannot hide them."""
        for entry in entries(self._proc):
            if not entry.name.isdecimal():
                continue
            try:
                user = entry.stat(follow_symlinks=False).st_uid
                read = _read(self._folder / f"{user}.{entry.name}", user)
            except OSError:
                continue
            if read is not None:
                yield int(entry.name), *read

    def _remove_old(self) -> None:
        for entry in islice(entries(self._folder), MOST_NAMES):
            name = _NAME.fullmatch(entry.name)
            if name is None or (self._proc / name[2]).exists():
                continue
            try:
                if stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                    os.unlink(entry.path)  # noqa: PTH108 - never follows a link
            except OSError:
                continue


def _read(path: Path, user: int) -> tuple[int, Page] | None:
    """A page and its inode; None: it is not a page, or not this user's.

    Raises:
        OSError: there is no such file, or it is not a regular one.
    """
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        of = os.fstat(file)
        if not stat.S_ISREG(of.st_mode) or of.st_uid != user or of.st_size != BYTES:
            return None
        raw = os.pread(file, _PAGE.size, 0)
    finally:
        os.close(file)
    if len(raw) < _PAGE.size:
        return None
    magic, version, _, _, _, _, begin_ns, mpi_ns, _, in_since_ns = _PAGE.unpack(raw)
    if magic != MAGIC or version != VERSION:
        return None
    return of.st_ino, Page(begin_ns, mpi_ns, in_since_ns)
