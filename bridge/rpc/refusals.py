# SPDX-License-Identifier: Apache-2.0
"""Starts that the controller refused: held back until something changes, never retried unchanged.

Rules
    1. A refused start is tried again once the job's version is another one, once the cluster
       changed (a job ended, a node changed), or after `retry_s`.
    2. Each refusal in a row of the same version doubles the least wait, from none over 1 s up to
       `retry_s`: a cluster in motion must not turn a refusal into a busy loop.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import Hold, JobTable

_STARTABLE = (Hold.NONE, Hold.BEGIN_TIME, Hold.RESERVATION)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A start the controller would not make.

    Attributes:
        version: of the job that was to start.
        text: the controller's words.
        changes: the cluster's count of changes at that time.
        retry_from_s: not before, whatever changes.
        retry_at_s: at the latest.
        times: refusals in a row.
    """

    version: int
    text: str
    changes: int
    retry_from_s: int
    retry_at_s: int
    times: int

    def holds(self, changes: int, now_s: int) -> bool:
        """Tells whether the start is still not to be tried again."""
        if now_s >= self.retry_at_s:
            return False
        return self.changes == changes or now_s < self.retry_from_s


class Refusals:
    """The refused starts by job id."""

    def __init__(self, retry_s: int) -> None:
        self.retry_s = retry_s
        self._refused: dict[str, Refusal] = {}

    def add(self, job_id: str, version: int, text: str, *, changes: int, now_s: int) -> None:
        """Notes a refusal."""
        before = self._refused.get(job_id)
        times = before.times + 1 if before is not None and before.version == version else 1
        wait_s = 0 if times == 1 else min(1 << min(times - 2, 20), self.retry_s)
        self._refused[job_id] = Refusal(
            version=version,
            text=text,
            changes=changes,
            retry_from_s=now_s + wait_s,
            retry_at_s=now_s + self.retry_s,
            times=times,
        )

    def forget(self, job_id: str) -> None:
        """Drops a job that is gone or runs."""
        self._refused.pop(job_id, None)

    def next_retry_s(self, changes: int, now_s: int) -> int | None:
        """When the next refused start may be tried again, whatever happens until then."""
        times = [
            refusal.retry_at_s if refusal.changes == changes else refusal.retry_from_s
            for refusal in self._refused.values()
        ]
        return min((at for at in times if at > now_s), default=None)

    def overlay(
        self, jobs: JobTable, row_of: dict[str, int], *, changes: int, now_s: int
    ) -> JobTable:
        """Returns the table with the refused jobs held; forgets refusals of other versions.

        Args:
            jobs: pending jobs.
            row_of: rows of the refused jobs that are pending.
            changes: the cluster's count of changes.
            now_s: the controller's clock.
        """
        rows: list[int] = []
        for job_id in list(self._refused):
            refusal, row = self._refused[job_id], row_of.get(job_id)
            if row is None or int(jobs.version[row]) != refusal.version:
                del self._refused[job_id]
            elif refusal.holds(changes, now_s) and jobs.hold[row] in _STARTABLE:
                rows.append(row)
        if not rows:
            return jobs
        hold: NDArray[np.int8] = jobs.hold.copy()
        hold_text = jobs.hold_text.copy()
        for row in rows:
            hold[row], hold_text[row] = Hold.REFUSED, self._refused[jobs.id[row]].text
        columns = {name: getattr(jobs, name) for name in JobTable.__dataclass_fields__}
        return JobTable(**(columns | {"hold": hold, "hold_text": hold_text}))

    def __iter__(self) -> Iterator[str]:
        return iter(self._refused)

    def __len__(self) -> int:
        return len(self._refused)
