# SPDX-License-Identifier: Apache-2.0
"""Guests that were sent back to the queue, and when they may be guests again.

Rules
    1. After the n-th requeue a job is no guest for `PAUSE_S` * 2^(n - 1), and after `MAX_TIMES`
       requeues never again: it starts on its own nodes. So no job is requeued for ever, whatever
       the reason.
    2. A run counts once, however often its requeue is requested.
    3. The record of a job is dropped `KEPT_S` after the job was last seen. It survives restarts of
       the service.
"""

from collections.abc import Container
from typing import Final

from bridge.extensions.sharing.kept_keys import APART, keep
from bridge.model.learnt import Learning
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot

PAUSE_S: Final = 300
MAX_TIMES: Final = 5
KEPT_S: Final = 3600
NAME: Final = "guests-sent-away"
"""The name of this part of `bridge.ports.State.learnt`; separate, as every cycle reads all of
it."""
_LEFT: Final = "left"
"""Kind of the keys (`bridge.extensions.sharing.kept_keys`)."""


class LeftHosts:
    """The jobs that were guests, kept from cycle to cycle."""

    def __init__(self, learning: Learning, now_s: int) -> None:
        """Begins with the kept records."""
        self._learning, self._now_s = learning, now_s

    def leaves(self, user: str, job_id: str, start_s: int) -> bool:
        """Records that a guest that started then must leave; whether that is new (rule 2)."""
        times, _, run_s, _ = self._of(user, job_id)
        if run_s == start_s:
            return False
        numbers = [times + 1, self._now_s, start_s, self._now_s]
        keep(self._learning, _key(user, job_id), numbers)
        return True

    def may_be_guest(self, user: str, job_id: str) -> bool:
        """Whether a waiting job may be a guest again (rule 1)."""
        times, left_s, _, _ = self._of(user, job_id)
        if not times:
            return True
        return times < MAX_TIMES and self._now_s - left_s >= PAUSE_S << (times - 1)

    def pausing(self, snapshot: Snapshot, plan: Plan) -> set[int]:
        """Rows of a plan for the snapshot whose jobs may not be guests at present (rule 1)."""
        jobs = snapshot.jobs
        return {
            row
            for row, job in enumerate(plan.job.tolist() if len(self._learning.known) else ())
            if not self.may_be_guest(str(jobs.user[job]), str(jobs.id[job]))
        }

    def forget(self, here: Container[str]) -> None:
        """Drops records of jobs that were not seen for `KEPT_S` (rule 3).

        Args:
            here: ids of all jobs that wait or run.
        """
        known = self._learning.known
        for key in known.in_order():
            _, user, job_id = key.split(APART)
            numbers = self._of(user, job_id)
            if job_id not in here and self._now_s - numbers[3] > KEPT_S:
                known.pop(key)
            elif job_id in here and self._now_s - numbers[3] > KEPT_S // 2:
                known[key] = [*numbers[:3], self._now_s]

    def _of(self, user: str, job_id: str) -> list[int]:
        """Number and last time of requeues, start of that run, when the job was last seen."""
        numbers = self._learning.known.get(_key(user, job_id)) or []
        return numbers if len(numbers) == 4 else [0, 0, -1, 0]


def _key(user: str, job_id: str) -> str:
    return APART.join((_LEFT, user, job_id))
