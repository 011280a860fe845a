# SPDX-License-Identifier: Apache-2.0
"""Holds jobs whose start the controller refused until something changes.

Rules
    1. A refused start is retried when the job has a new version, when the cluster has changed (a
       job ended, a node changed), or after `retry_s`.
    2. Each consecutive refusal of the same version doubles the least wait, from 0 over 1 s up to
       `retry_s`, so that frequent changes do not cause a busy loop of refusals.
    3. Refusals because of busy nodes do not count against the job: it is retried after any change,
       and after `BUSY_S` at the latest. After `BUSY_FOR_S` of them without a pause its nodes are
       not about to be free (it may need some that lie together): then after a change, and after
       `retry_s` at the latest, and (4) applies.
    4. One of the refused nodes is avoided for `AVOID_S` if others could hold the job: it may have a
       problem that the model does not cover; so nodes are tried one after the other. After busy
       nodes, and for requests that the model lacks, it is avoided for twice `retry_s`: then there
       may be nothing wrong with any of the nodes, which do not go together, or not yet. This does
       not apply if a limit refuses the job. The same holds for the partition of a job that named
       several.
    5. Whether others could hold it is judged by its request alone. If the plan finds that the rules
       of the site leave it no other place, it is tried again where it was refused, a second later.
    6. A refusal recorded later than the present is dropped: the clock has been set.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import Hold, JobTable

BUSY_S = 1
BUSY_AGAIN_S, BUSY_FOR_S = 3, 30
"""A job whose start was refused for busy nodes within this time is about to get them; one that is
refused for longer is not."""
AVOID_S = 600

Others = Callable[[int, frozenset[str]], tuple[int, ...]]

_STARTABLE = (Hold.NONE, Hold.BEGIN_TIME, Hold.RESERVATION)


@dataclass(frozen=True, slots=True)
class RefusedStart:
    """A start that the controller refused.

    Attributes:
        text: the controller's message.
        changes: the cluster's count of changes at that time.
        noted_s: when, by the controller's clock.
        retry_from_s: no retry before this, whatever changes.
        times: consecutive refusals.
        avoid: names of nodes on which it was refused.
        avoid_until_s: until then.
        busy_from_s: since when its nodes have been busy; 0: they were not.
    """

    version: int
    text: str
    changes: int
    noted_s: int
    retry_from_s: int
    retry_at_s: int
    times: int
    avoid: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()
    avoid_until_s: int = 0
    busy_from_s: int = 0

    def holds(self, changes: int, now_s: int) -> bool:
        """Tells whether the start must not be retried yet."""
        if not self.noted_s <= now_s < self.retry_at_s:
            return False
        return self.changes == changes or now_s < self.retry_from_s

    def is_still(self, changes: int, now_s: int) -> bool:
        """Tells whether a refusal now is for the same reason, as nothing has changed since."""
        retried = self.changes == changes and now_s - self.retry_at_s >= 0
        return now_s - (self.retry_at_s if retried else self.noted_s) <= BUSY_AGAIN_S

    def avoids(self, now_s: int) -> bool:
        """Tells whether its nodes and partitions are still avoided."""
        return self.noted_s <= now_s < self.avoid_until_s


class Refusals:
    """The refused starts by job id.

    Attributes:
        avoiding: ids of the jobs that the last table keeps from where they were refused.
    """

    def __init__(self, retry_s: int) -> None:
        self.retry_s = retry_s
        self.avoiding: set[str] = set()
        self._refused: dict[str, RefusedStart] = {}

    def add(
        self,
        job_id: str,
        version: int,
        text: str,
        *,
        changes: int,
        now_s: int,
        busy: bool = False,
        beyond_model: bool = False,
        nodes: Sequence[str] = (),
        partition: str = "",
    ) -> None:
        """Records a refusal.

        Args:
            text: the controller's message.
            changes: the cluster's count of changes.
            now_s: the controller's clock.
            busy: the nodes were only in use at that moment.
            beyond_model: the model lacks a part of the request.
            nodes: on which it was to start, if they may be the cause.
            partition: in which it was to start, if it may be the cause.
        """
        before = self._refused.get(job_id)
        if before is not None and before.version != version:
            before = None
        times = before.times if before is not None else 0
        avoid: frozenset[str] = frozenset()
        partitions: frozenset[str] = frozenset()
        if before is not None and before.avoids(now_s):
            avoid, partitions = before.avoid, before.partitions
        busy_from_s = 0
        if busy:
            busy_from_s = now_s
            if before is not None and before.busy_from_s and before.is_still(changes, now_s):
                busy_from_s = before.busy_from_s
            lasts = now_s - busy_from_s >= BUSY_FOR_S
            wait_s, at_most_s = 0, self.retry_s if lasts else BUSY_S
        else:
            lasts = True
            times += 1
            wait_s = 0 if times == 1 else min(1 << min(times - 2, 20), self.retry_s)
            at_most_s = self.retry_s
        if lasts:
            avoid = avoid | set(nodes[:1])
            partitions = partitions | ({partition} - {""})
        self._refused[job_id] = RefusedStart(
            version=version,
            text=text,
            changes=changes,
            noted_s=now_s,
            retry_from_s=now_s + wait_s,
            retry_at_s=now_s + at_most_s,
            times=times,
            avoid=avoid,
            partitions=partitions,
            avoid_until_s=now_s + (2 * self.retry_s if busy or beyond_model else AVOID_S),
            busy_from_s=busy_from_s,
        )

    def retry_there(self, job_id: str, *, changes: int, now_s: int) -> RefusedStart:
        """Avoids nothing for a job that can run nowhere else (5); returns its refusal."""
        refusal = self._refused[job_id]
        self._refused[job_id] = replace(
            refusal,
            changes=changes,
            retry_from_s=now_s,
            retry_at_s=now_s + 1,
            avoid=frozenset(),
            partitions=frozenset(),
        )
        return refusal

    def nodes_awaited(self, now_s: int) -> bool:
        """Whether some job is about to get nodes that were busy a moment ago.

        They were released, and look idle. No other job must get them meanwhile.
        """
        return any(
            refusal.busy_from_s
            and 0 <= now_s - refusal.noted_s <= BUSY_AGAIN_S
            and now_s - refusal.busy_from_s <= BUSY_FOR_S
            for refusal in self._refused.values()
        )

    def forget(self, job_id: str) -> None:
        """Removes a job that is gone or runs."""
        self._refused.pop(job_id, None)
        self.avoiding.discard(job_id)

    def clear(self) -> None:
        """Removes all, so that every refused start may be retried."""
        self._refused.clear()
        self.avoiding.clear()

    def next_retry_s(self, changes: int, now_s: int) -> int | None:
        """When the next refused start may be retried, even without a change."""
        times = [
            refusal.retry_at_s if refusal.changes == changes else refusal.retry_from_s
            for refusal in self._refused.values()
            if refusal.noted_s <= now_s
        ]
        return min((at for at in times if at > now_s), default=None)

    def overlay(
        self,
        jobs: JobTable,
        row_of: dict[str, int],
        *,
        changes: int,
        now_s: int,
        others: Others,
        partitions: Mapping[str, int],
    ) -> JobTable:
        """Returns the table with the refused jobs held; drops refusals of other versions.

        Args:
            row_of: rows of the refused jobs that are pending.
            changes: the cluster's count of changes.
            now_s: the controller's clock.
            others: the indexes of nodes by name, if a job of that row does not need them.
            partitions: index by name.
        """
        held: list[int] = []
        avoiding: dict[int, tuple[int, ...]] = {}
        left: dict[int, tuple[int, ...]] = {}
        for job_id in list(self._refused):
            refusal, row = self._refused[job_id], row_of.get(job_id)
            if row is None or int(jobs.version[row]) != refusal.version:
                del self._refused[job_id]
            elif jobs.hold[row] in _STARTABLE:
                avoids = refusal.avoids(now_s)
                if refusal.partitions and avoids and len(jobs.partitions[row]) > 1:
                    refused_in = {partitions.get(name) for name in refusal.partitions}
                    left[row] = tuple(at for at in jobs.partitions[row] if at not in refused_in)
                if refusal.holds(changes, now_s):
                    held.append(row)
                elif refusal.avoid and avoids:
                    avoiding[row] = others(row, refusal.avoid)
        shunned = (row for rows in (avoiding, left) for row, found in rows.items() if found)
        self.avoiding.clear()
        self.avoiding.update(jobs.id[row] for row in shunned)
        if not held and not avoiding and not left:
            return jobs
        hold: NDArray[np.int8] = jobs.hold.copy()
        hold_text, excluded = jobs.hold_text.copy(), jobs.excluded.copy()
        for row in held:
            hold[row], hold_text[row] = Hold.REFUSED, self._refused[jobs.id[row]].text
        for row, nodes in avoiding.items():
            excluded[row] = tuple(sorted({*excluded[row], *nodes}))
        named = jobs.partitions.copy()
        for row, found in left.items():
            named[row] = found or named[row]
        return replace(jobs, hold=hold, hold_text=hold_text, excluded=excluded, partitions=named)

    def __iter__(self) -> Iterator[str]:
        return iter(self._refused)

    def __len__(self) -> int:
        return len(self._refused)
