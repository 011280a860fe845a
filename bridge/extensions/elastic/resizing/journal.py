# SPDX-License-Identifier: Apache-2.0
"""Results of resizes: for metrics, and the last one of each job for display.

Outcomes
    completed   the job has the nodes that were decided.
    withdrawn   cancelled regularly: the application or its launcher refused, or reported that it
                was too slow. The job has its former nodes.
    failed      anything else: refused by the controller, a node was lost, no answer.
    ended       the job ended during the change.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from bridge.extensions.elastic.resizing.states import OpenResize

MAX_UNTOLD: Final = 10_000
"""Older entries are dropped if they are not read."""


class ResizeResult(StrEnum):
    REQUESTED = "asked"
    COMPLETED = "completed"
    WITHDRAWN = "withdrawn"
    FAILED = "failed"
    ENDED = "ended"


@dataclass(frozen=True)
class JournalEntry:
    """A resize that began (REQUESTED) or ended.

    Attributes:
        before, after: nodes, as decided.
        at_s: when, Unix seconds.
        lasted_s: from the decision to the end; None: it was under way when this service started,
            or has only begun.
        reason: the reason of the decision; if it was not completed, why not.
    """

    job_id: str
    result: ResizeResult
    before: int
    after: int
    at_s: int
    lasted_s: int | None
    reason: str

    @property
    def direction(self) -> str:
        """Grow or shrink."""
        return "grow" if self.after > self.before else "shrink"


class Journal:
    """Records begins and ends of resizes.

    Attributes:
        last: the last ended one, by job id.
    """

    def __init__(self) -> None:
        self.last: dict[str, JournalEntry] = {}
        self._began: dict[str, int] = {}
        self._untold: deque[JournalEntry] = deque(maxlen=MAX_UNTOLD)

    def begun(self, change: OpenResize, now_s: int) -> None:
        """Records that a decided resize has begun."""
        self._began[change.id] = now_s
        self._note(change, ResizeResult.REQUESTED, now_s, None, change.reason)

    def over(self, change: OpenResize, result: ResizeResult, now_s: int, why: str = "") -> None:
        """Records that a resize has ended."""
        began_s = self._began.pop(change.id, None)
        lasted_s = None if began_s is None else max(now_s - began_s, 0)
        self.last[change.job_id] = self._note(change, result, now_s, lasted_s, why or change.reason)

    def _note(
        self,
        change: OpenResize,
        result: ResizeResult,
        now_s: int,
        lasted_s: int | None,
        reason: str,
    ) -> JournalEntry:
        entry = JournalEntry(
            change.job_id, result, len(change.before), len(change.wanted), now_s, lasted_s, reason
        )
        self._untold.append(entry)
        return entry

    def keep(self, jobs: Collection[str], ids: Collection[str]) -> None:
        """Forgets all but these jobs, and the begins of all but these resizes."""
        self.last = {job: entry for job, entry in self.last.items() if job in jobs}
        self._began = {key: at_s for key, at_s in self._began.items() if key in ids}

    def take(self) -> tuple[JournalEntry, ...]:
        """The records since the last call."""
        told = tuple(self._untold)
        self._untold.clear()
        return told
