# SPDX-License-Identifier: Apache-2.0
"""Guests that were sent back to the queue, and when they may be guests again.

Rules
    1. After the n-th requeue a job is no guest for `PAUSE_S` * 2^(n - 1), and after `MOST_TIMES`
       requeues never again: it starts on its own nodes. So no job is requeued for ever, whatever
       the reason.
    2. A run counts once, however often its requeue is requested.
    3. The record of a job is dropped `KEPT_S` after the job was last seen.
"""

from collections.abc import Container
from typing import Final

from bridge.model.learnt import Learning
from bridge.planning.sharing.kept_keys import APART

PAUSE_S: Final = 300
MOST_TIMES: Final = 5
KEPT_S: Final = 3600
_LEFT: Final = "left"


class LeftHosts:
    """The jobs that were guests, kept from cycle to cycle."""

    def __init__(self, learning: Learning, now_s: int) -> None:
        """Begins with the kept records."""
        self._running, self._now_s = learning.running, now_s

    def leaves(self, job_id: str, start_s: int) -> bool:
        """Records that a guest that started then must leave; whether that is new (rule 2)."""
        times, _, run_s, _ = self._running.get(_key(job_id)) or [0, 0, -1, 0]
        if run_s == start_s:
            return False
        self._running[_key(job_id)] = [times + 1, self._now_s, start_s, self._now_s]
        return True

    def may_be_guest(self, job_id: str) -> bool:
        """Rule 1, of a job that waits."""
        times, left_s, _, _ = self._running.get(_key(job_id)) or [0, 0, 0, 0]
        if not times:
            return True
        return times < MOST_TIMES and self._now_s - left_s >= PAUSE_S << (times - 1)

    def forget(self, here: Container[str]) -> None:
        """Rule 3.

        Args:
            here: ids of all jobs that wait or run.
        """
        for key in self._running.in_order():
            if not key.startswith(_LEFT + APART):
                continue
            numbers = self._running.get(key) or [0, 0, 0, 0]
            if key.partition(APART)[2] not in here and self._now_s - numbers[3] > KEPT_S:
                self._running.pop(key)
            elif key.partition(APART)[2] in here and self._now_s - numbers[3] > KEPT_S // 2:
                self._running[key] = [*numbers[:3], self._now_s]


def _key(job_id: str) -> str:
    return _LEFT + APART + job_id
