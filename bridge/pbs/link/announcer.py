# SPDX-License-Identifier: Apache-2.0
"""Writes comments and estimated starts into jobs, on a thread of its own.

Rules
    1. Comments and estimated starts are written only when they changed, the newest of each job, in
       the order in which the service announced them; of one job at most every `REWRITE_S`, because
       estimates of a queue that moves change with every job that starts or ends. Nothing is
       written into a job after its start was sent.
    2. Every write is a transaction of the server's data base. The comment, which names the expected
       start, goes first; `estimated` follows. Batches of comments that are only written again take
       turns with estimates.
    3. The server has one thread. After every few jobs the writer waits for the answer to a small
       query, so that other clients are served. The first comment of a job is
       written without a pause, as pbs_sched does; all else takes at most a share of the server's
       time: when the saved time is used up, the writer waits for a multiple of it.
    4. It uses the registered connection: the server lets nobody else set estimates, except
       managers. The library takes turns between the threads; a write waits for no answer.
"""

import itertools
import logging
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from bridge.pbs.ifl.port import Ifl, IflError
from bridge.pbs.tables import Attributes

_log = logging.getLogger(__name__)
REWRITE_S = 10.0
_BURST = 5
_ESTIMATED = "estimated"
_SAVED_S = 0.3
"""Maximum of the server's time that is used at once after a pause."""
_LOOK_S = 1.0
_AGAIN_S = 2.0
_LATER_S = 0.5
"""Between two looks at announcements that were held back."""


@dataclass
class TimeAllowance:
    """A share of the server's time, which is saved up to `_SAVED_S`.

    Attributes:
        share: greater than 0, at most 1.
    """

    share: float
    _saved_s: float = _SAVED_S
    _at: float | None = None

    def rests_s(self, took_s: float, now: float) -> float:
        """Spends time of the server; returns how long to wait before more is spent.

        Args:
            took_s: what was spent until now.
            now: monotonic, s.
        """
        if self._at is not None:
            self._saved_s = min(self._saved_s + (now - self._at) * self.share, _SAVED_S)
        self._at = now
        self._saved_s -= took_s
        return max(-self._saved_s / self.share, 0.0)


@dataclass
class Written:
    """Counts of writes, for metrics and benchmarks."""

    jobs: int = 0
    failed: int = 0
    waiting: int = 0


class Backlog:
    """What is to be written into jobs, and when (rule 1). Times are monotonic, s.

    Attributes:
        written_again: how many of the last batch had been written before.
    """

    def __init__(self) -> None:
        self.written_again = 0
        self._ready: dict[str, Attributes] = {}
        self._later: dict[str, Attributes] = {}
        self._written: dict[str, tuple[Attributes, float]] = {}

    def __len__(self) -> int:
        return len(self._ready) + len(self._later)

    @property
    def is_ready(self) -> bool:
        """Whether something may be written at once."""
        return bool(self._ready)

    def add(self, job_id: str, attributes: Attributes, now: float) -> None:
        """Takes the newest announcement of a job."""
        known, at = self._written.get(job_id, (None, -REWRITE_S))
        self._later.pop(job_id, None)
        if known == attributes:
            self._ready.pop(job_id, None)
        elif job_id in self._ready or now - at >= REWRITE_S:
            self._ready[job_id] = attributes
        else:
            self._later[job_id] = attributes

    def withdraw(self, job_id: str) -> None:
        """Drops what is not written yet: it does not hold any more."""
        self._ready.pop(job_id, None)
        self._later.pop(job_id, None)

    def ripen(self, now: float) -> None:
        """Makes ready what was held back for long enough."""
        for job_id in [j for j in self._later if now - self._written[j][1] >= REWRITE_S]:
            self._ready[job_id] = self._later.pop(job_id)

    def take(self, maximum: int, now: float) -> list[tuple[str, Attributes]]:
        """Returns what is to be written next, and counts it as written."""
        batch = [(job_id, self._ready[job_id]) for job_id in itertools.islice(self._ready, maximum)]
        self.written_again = sum(job_id in self._written for job_id, _ in batch)
        for job_id, attributes in batch:
            del self._ready[job_id]
            self._written[job_id] = attributes, now
        return batch

    def forget(self, job_ids: Iterable[str]) -> None:
        """Drops jobs, also that they were written."""
        for job_id in job_ids:
            for known in (self._ready, self._later, self._written):
                known.pop(job_id, None)

    def keep_only(self, job_ids: Mapping[str, Attributes]) -> None:
        """Forgets jobs that have left."""
        there = job_ids.keys()
        self.forget((self._written.keys() | self._ready.keys()) - there)


class Announcer:
    """Writes comments and estimated starts into jobs."""

    def __init__(self, ifl: Ifl, share: float) -> None:
        """Begins to write, once it has a connection.

        Args:
            share: part of the server's time that writing again may take; 0: nothing is written.
        """
        self.written = Written()
        self._ifl, self._share = ifl, share
        self._connection: int | None = None
        self._allowance = TimeAllowance(share)
        self._lock = threading.Lock()
        self._more = threading.Event()
        self._comments, self._estimates = Backlog(), Backlog()
        self._is_estimate_next = False
        threading.Thread(target=self._run, name="announcer", daemon=True).start()

    def write(self, job_id: str, attributes: Attributes) -> None:
        """Queues values to be written if they differ from the last ones."""
        if not self._share:
            return
        comment = {name: value for name, value in attributes.items() if name != _ESTIMATED}
        with self._lock:
            now = time.monotonic()
            self._comments.add(job_id, comment, now)
            if _ESTIMATED in attributes:
                self._estimates.add(job_id, {_ESTIMATED: attributes[_ESTIMATED]}, now)
            else:
                self._estimates.withdraw(job_id)
        self._more.set()

    def forget(self, job_id: str) -> None:
        """Writes nothing into a job that is being started."""
        with self._lock:
            for backlog in (self._comments, self._estimates):
                backlog.forget((job_id,))

    def keep_only(self, job_ids: Mapping[str, Attributes]) -> None:
        """Forgets jobs that have left."""
        with self._lock:
            for backlog in (self._comments, self._estimates):
                backlog.keep_only(job_ids)

    def reset(self) -> None:
        """Writes everything again when it is announced again."""
        with self._lock:
            self._comments, self._estimates = Backlog(), Backlog()

    def use(self, connection: int | None) -> None:
        """Writes on a registered connection; None: nothing, another scheduler does."""
        self._connection = connection
        self._more.set()

    def _take(self) -> tuple[list[tuple[str, Attributes]], float]:
        """The next batch, and the part of it that is subject to the share (rules 2 and 3)."""
        with self._lock:
            now, order = time.monotonic(), [self._comments, self._estimates]
            for backlog in order:
                if not backlog.is_ready:
                    backlog.ripen(now)
            if self._is_estimate_next:
                order.reverse()
            source = next((each for each in order if each.is_ready), self._comments)
            batch = source.take(_BURST, now)
            self.written.waiting = len(self._comments) + len(self._estimates)
            limited = source.written_again / len(batch) if batch else 0.0
            if source is self._estimates:
                limited = 1.0
            self._is_estimate_next = source is self._comments and limited == 1.0
        return batch, limited

    def _run(self) -> None:
        while True:
            self._more.wait(_LATER_S if self.written.waiting else None)
            self._more.clear()
            while (connection := self._connection) is not None:
                batch, limited = self._take()
                if not batch:
                    break
                try:
                    took_s = self._send(connection, batch)
                except IflError as error:
                    _log.info("comments are not written: %s", error)
                    for job_id, _ in batch:
                        self.forget(job_id)
                    time.sleep(_AGAIN_S)
                    continue
                time.sleep(self._allowance.rests_s(took_s * limited, time.monotonic()))

    def _send(self, connection: int, batch: list[tuple[str, Attributes]]) -> float:
        """Sends a burst; returns how long it kept the server busy, s."""
        ifl, began = self._ifl, time.monotonic()
        for job_id, attributes in batch:
            if ifl.alter(connection, job_id, attributes):
                self.written.failed += 1
            else:
                self.written.jobs += 1
        ifl.stat_server(connection)
        return time.monotonic() - began
