# SPDX-License-Identifier: Apache-2.0
"""The pending jobs of the simulated controller, and their table."""

from bisect import insort
from collections.abc import Collection

import numpy as np

from bridge.lab.sim.cluster.job_rows import ColumnRows
from bridge.model.job import JobTable


class WaitingJobs:
    """Pending jobs, named by their row in the workload.

    Attributes:
        rows: in order of submission.
        shown: the job of each row of the last table.
    """

    def __init__(self, jobs: JobTable, *, late: bool) -> None:
        """Starts with none.

        Args:
            jobs: the jobs of the workload; versions and times of eligibility are changed.
            late: whether jobs may become eligible later than their requests say.
        """
        self._jobs = jobs
        self.rows: list[int] = []
        self.shown: list[int] = []
        live = frozenset({"version", "eligible_s"} if late else {"version"})
        self._columns = ColumnRows(vars(jobs), live=live)
        self._table: JobTable | None = None

    def submit(self, job: int, eligible_s: int | None) -> None:
        """Puts a job at its place by submission; `eligible_s` None: as its request says."""
        if eligible_s is not None:
            self._jobs.eligible_s[job] = eligible_s
        insort(self.rows, job)

    def requeue(self, job: int) -> None:
        """Puts a job that ran at its place, with its next version."""
        self._jobs.version[job] += 1
        self._table = None
        insort(self.rows, job)

    def remove(self, jobs: Collection[int]) -> None:
        """Removes jobs that have started."""
        gone = set(jobs)
        self.rows = [job for job in self.rows if job not in gone]

    def table(self) -> JobTable:
        """The pending jobs, in order; the same object as long as they are the same."""
        if self._table is None or self.shown != self.rows:
            self.shown = list(self.rows)
            rows = np.array(self.shown, dtype=np.int64)
            self._table = JobTable.of_columns(self._columns.take(rows))
        return self._table
