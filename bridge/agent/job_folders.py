# SPDX-License-Identifier: Apache-2.0
"""The folder of each job on this machine, in which its processes report to the agent.

Slurm makes it when a step of the job begins (`bridge/shim/options/job_folder.c`), and removes it
when the last one has ended: `/dev/shm/schedbridge/JOB`, of the job's user and with mode 0700.

Rules
    1. Only root makes names in the directory: so the owner of a folder is the job's user. A
       directory in which others can do so is ignored.
    2. The user may put anything into the folder. Only regular files of this user are read, and no
       more of them than is asked for. Links are not followed, and a pipe blocks nothing.
"""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path("/dev/shm/schedbridge")


class JobFile(NamedTuple):
    """What a job has written into a file.

    Attributes:
        size: the size of the file, bytes.
    """

    inode: int
    size: int
    raw: bytes


class JobFolders:
    def __init__(self, folder: Path = FOLDER) -> None:
        """Takes the directory that holds them; it may not exist."""
        self._folder = folder

    def user_of(self, job: str) -> int | None:
        """The user of a job that has a step here; None: it has none, or that is not known."""
        try:
            found = (self._folder / job).lstat()
        except OSError:
            return None
        return found.st_uid if stat.S_ISDIR(found.st_mode) and self._is_roots() else None

    def jobs(self) -> list[str]:
        return [name for name in _names(self._folder) if _is_job(name)] if self._is_roots() else []

    def is_empty(self, job: str) -> bool:
        """Whether nothing is in the folder of a job, or it cannot be read."""
        return next(_names(self._folder / job), None) is None

    def read(self, job: str, name: str, max_bytes: int) -> JobFile | None:
        """The begin of a file in a job's folder; None: there is none that may be read (rule 2).

        Args:
            job: by its id on the node.
            max_bytes: bytes to read.
        """
        user = self.user_of(job)
        if user is None:
            return None
        try:
            path = self._folder / job / name
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            of = os.fstat(file)
            if not stat.S_ISREG(of.st_mode) or of.st_uid != user:
                return None
            return JobFile(of.st_ino, of.st_size, os.pread(file, max_bytes, 0))
        except OSError:
            return None
        finally:
            os.close(file)

    def _is_roots(self) -> bool:
        try:
            found = self._folder.lstat()
        except OSError:
            return False
        others = stat.S_IWGRP | stat.S_IWOTH
        return (
            stat.S_ISDIR(found.st_mode)
            and found.st_uid in {0, os.geteuid()}
            and not found.st_mode & others
        )


def _is_job(name: str) -> bool:
    return name.isascii() and name.isdecimal() and name[0] != "0"


def _names(folder: Path) -> Iterator[str]:
    """What is in a directory; nothing if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            yield from (entry.name for entry in entries)
    except OSError:
        return
