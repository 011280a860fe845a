# SPDX-License-Identifier: Apache-2.0
"""The progress that jobs on this node report, from files that their users write.

The file `progress` in the folder of a job (`bridge.agent.job_folders`) holds the share of the job's
work that is done: a decimal number in [0, 1] as text. The user may write anything:

Rules
    1. A file counts on each node where processes of its job run.
    2. A file of more than `BYTES`, and a value that is not a finite number, or is outside of [0, 1]
       by more than rounding, is ignored. A file that is read while it is written may be empty, so
       the last value of a job counts until there is another one.
    3. Without files, no process is examined.
"""

import math
import re
from typing import Final

from bridge.agent.job_folders import JobFolders
from bridge.agent.processes import Processes

NAME: Final = "progress"
BYTES: Final = 32
_NUMBER: Final = re.compile(rb"\s*([0-9]{0,9}\.?[0-9]{0,20}(?:[eE]-?[0-9]{1,3})?)\s*")
_ROUNDING: Final = 1e-6


class ProgressFiles:
    def __init__(self, processes: Processes, folders: JobFolders) -> None:
        """Takes the processes and the jobs' folders of this machine."""
        self._processes, self._folders = processes, folders
        self._last: dict[str, float] = {}

    def read(self) -> dict[tuple[str, str], float]:
        """Progress by job and node (empty: unknown)."""
        self._last = {
            job: value for job in self._folders.jobs() if (value := self._value(job)) is not None
        }
        if not self._last:
            return {}
        places = {where for _, where in self._processes.with_jobs()}
        return {where: self._last[where[0]] for where in places if where[0] in self._last}

    def _value(self, job: str) -> float | None:
        """What a job reports, or reported last; None: nothing."""
        file = self._folders.read(job, NAME, BYTES)
        if file is None:
            return None
        value = parse(file.raw) if file.size <= BYTES else None
        return self._last.get(job) if value is None else value


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
