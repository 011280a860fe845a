# SPDX-License-Identifier: Apache-2.0
"""The jobs of a simulation that ended since the last snapshot."""

import numpy as np

from bridge.model.job import NONE_ENDED, EndedTable, Ending, JobTable


class EndedJobs:
    """Collects ended jobs until they are reported."""

    def __init__(self, jobs: JobTable) -> None:
        """Starts with none."""
        self._jobs = jobs
        self._ended: list[tuple[int, int, int, int]] = []

    def add(self, job: int, start_s: int, end_s: int, ending: Ending) -> None:
        self._ended.append((job, start_s, end_s, int(ending)))

    def take(self) -> EndedTable:
        """The jobs that ended since the last call, in that order."""
        if not self._ended:
            return NONE_ENDED
        table = np.ascontiguousarray(np.array(self._ended, dtype=np.int64).T)
        rows, start_s, end_s, ending = table
        self._ended = []
        return EndedTable(
            id=self._jobs.id[rows],
            name=self._jobs.name[rows],
            user=self._jobs.user[rows],
            start_s=start_s,
            end_s=end_s,
            time_limit_s=self._jobs.time_limit_s[rows],
            ending=ending.astype(np.int8),
        )
