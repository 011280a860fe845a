# SPDX-License-Identifier: Apache-2.0
"""The progress that jobs on this node report, from files that their users write.

The file `UID.JOB` holds the share of the job's work that is done: a decimal number in [0, 1] as
text. Users write the files and may write anything:

Rules
    1. A file counts if it belongs to the user in its name, if processes of the job run here, and
       if all of them have that user. So users can state a false progress for their own jobs only.
    2. Only regular files of at most `BYTES` are read. Links are not followed, and a pipe blocks
       nothing. A value that is not a finite number, or is outside of [0, 1] by more than rounding,
       is ignored.
    3. Files of ended jobs, and files whose owner is not the user in their name, are removed. A job
       that is requeued begins without a file.
    4. At most `MOST_FILES` are examined in one reading. Without files, no process is examined.
"""

import math
import os
import re
import stat
from itertools import islice
from pathlib import Path
from typing import Final

from bridge.agent.processes import Processes
from bridge.agent.public_folder import entries

FOLDER: Final = Path("/dev/shm/schedbridge-progress")
BYTES: Final = 32
MOST_FILES: Final = 4096
_NAME: Final = re.compile(r"([0-9]{1,10})\.([0-9]{1,10})(\.new)?")
_NUMBER: Final = re.compile(rb"\s*([0-9]{0,9}\.?[0-9]{0,20}(?:[eE]-?[0-9]{1,3})?)\s*")
_ROUNDING: Final = 1e-6


class ProgressFiles:
    """All files of this machine."""

    def __init__(
        self, processes: Processes, folder: Path = FOLDER, proc: Path = Path("/proc")
    ) -> None:
        self._processes, self._folder, self._proc = processes, folder, proc

    def read(self) -> dict[tuple[str, str], float]:
        """Progress by job and node (empty: unknown)."""
        files = self._files()
        if not files:
            return {}
        users: dict[tuple[str, str], set[int]] = {}
        for pid, where in self._processes.with_jobs():
            try:
                user = (self._proc / str(pid)).stat().st_uid
            except OSError:
                continue
            users.setdefault(where, set()).add(user)
        here = {job for job, _ in users}
        found = {}
        for job, user in files:
            path = self._folder / f"{user}.{job}"
            if job not in here:
                _remove(path)
                continue
            value = _read(path, user)
            for where, owners in users.items():
                if value is not None and where[0] == job and owners == {user}:
                    found[where] = value
        return found

    def _files(self) -> list[tuple[str, int]]:
        """Job and user of each file."""
        found = []
        for entry in islice(entries(self._folder), MOST_FILES):
            name = _NAME.fullmatch(entry.name)
            try:
                own = name is not None and entry.stat(follow_symlinks=False).st_uid == int(name[1])
            except OSError:
                continue
            if not own or name is None:
                _remove(Path(entry.path))
            elif name[3] is None:
                found.append((name[2], int(name[1])))
        return found


def _remove(path: Path) -> None:
    """Removes a file; never a directory, and never the target of a link."""
    try:
        path.unlink()
    except OSError:
        return


def _read(path: Path, user: int) -> float | None:
    """The number in a file; None: there is none, or it is not this user's."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        of = os.fstat(file)
        if not stat.S_ISREG(of.st_mode) or of.st_uid != user or of.st_size > BYTES:
            return None
        raw = os.pread(file, BYTES, 0)
    except OSError:
        return None
    finally:
        os.close(file)
    return parse(raw)


def parse(raw: bytes) -> float | None:
    """The progress in a text; None: it is not one."""
    match = _NUMBER.fullmatch(raw)
    try:
        value = float(match[1]) if match else math.nan
    except ValueError:
        return None
    if not -_ROUNDING <= value <= 1 + _ROUNDING:
        return None
    return min(max(value, 0.0), 1.0)
