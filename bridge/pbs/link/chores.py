# SPDX-License-Identifier: Apache-2.0
"""Work that may take long or block, each kind on a thread and a connection of its own.

Rules
    1. Comments and estimated starts are written only when they changed, the newest of each job, in
       the order in which the service announced them; of one job at most every `REWRITE_S`, because
       estimates of a queue that moves change with every job that starts or ends. Nothing is
       written into a job after its start was sent.
    2. The server has one thread: writing takes at most a share of its time. After every few jobs
       the writer waits for the answer to a small query, so that other clients are served. When it
       has used up its saved time, it waits for a multiple of that time.
    3. Requests that the server passes to a mom (delete, rerun, signals, nodes to release) block
       while that mom is frozen, for minutes; they delay nothing but each other.
"""

import itertools
import logging
import queue
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from bridge.pbs.ifl.port import Ifl, IflError
from bridge.pbs.tables import Attributes

_log = logging.getLogger(__name__)
REWRITE_S = 10.0
_BURST = 5
_SAVED_S = 0.3
"""Maximum of the server's time that is used at once after a pause."""
_LOOK_S = 1.0
_AGAIN_S = 2.0
_LATER_S = 0.5
"""Between two looks at announcements that were held back."""


class _OwnConnection:
    """A connection that is opened when it is needed, and again after it was lost."""

    def __init__(self, ifl: Ifl, server: str) -> None:
        self.ifl, self._server = ifl, server
        self._open: int | None = None

    def get(self) -> int:
        """Returns it.

        Raises:
            IflError: the server is not there.
        """
        if self._open is None:
            self._open = self.ifl.connect(self._server)
        return self._open

    def drop(self) -> None:
        """Closes it."""
        if self._open is not None:
            self.ifl.disconnect(self._open)
            self._open = None


@dataclass
class Allowance:
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
    """What is to be written into jobs, and when (rule 1). Times are monotonic, s."""

    def __init__(self) -> None:
        self._ready: dict[str, Attributes] = {}
        self._later: dict[str, Attributes] = {}
        self._told: dict[str, tuple[Attributes, float]] = {}

    def __len__(self) -> int:
        return len(self._ready) + len(self._later)

    @property
    def is_ready(self) -> bool:
        """Whether something may be written at once."""
        return bool(self._ready)

    def add(self, job_id: str, attributes: Attributes, now: float) -> None:
        """Takes the newest announcement of a job."""
        known, at = self._told.get(job_id, (None, -REWRITE_S))
        self._later.pop(job_id, None)
        if known == attributes:
            self._ready.pop(job_id, None)
        elif job_id in self._ready or now - at >= REWRITE_S:
            self._ready[job_id] = attributes
        else:
            self._later[job_id] = attributes

    def ripen(self, now: float) -> None:
        """Makes ready what was held back for long enough."""
        for job_id in [j for j in self._later if now - self._told[j][1] >= REWRITE_S]:
            self._ready[job_id] = self._later.pop(job_id)

    def take(self, most: int, now: float) -> list[tuple[str, Attributes]]:
        """Returns what is to be written next, and counts it as written."""
        batch = [(job_id, self._ready[job_id]) for job_id in itertools.islice(self._ready, most)]
        for job_id, attributes in batch:
            del self._ready[job_id]
            self._told[job_id] = attributes, now
        return batch

    def forget(self, job_ids: Iterable[str]) -> None:
        """Drops jobs, also that they were written."""
        for job_id in job_ids:
            for known in (self._ready, self._later, self._told):
                known.pop(job_id, None)

    def keep_only(self, job_ids: Mapping[str, Attributes]) -> None:
        """Forgets jobs that have left."""
        there = job_ids.keys()
        self.forget((self._told.keys() | self._ready.keys()) - there)


class Announcer:
    """Writes comments and estimated starts into jobs."""

    def __init__(self, ifl: Ifl, server: str, share: float) -> None:
        """Begins to write.

        Args:
            ifl: the library.
            server: name of the server; empty: that of pbs.conf.
            share: part of the server's time that this may take; 0: nothing is written.
        """
        self.written = Written()
        self._own, self._share = _OwnConnection(ifl, server), share
        self._allowance = Allowance(share)
        self._lock = threading.Lock()
        self._more = threading.Event()
        self._backlog = Backlog()
        self._held = threading.Event()
        threading.Thread(target=self._run, name="announcer", daemon=True).start()

    def write(self, job_id: str, attributes: Attributes) -> None:
        """Queues values to be written if they differ from the last ones."""
        if not self._share:
            return
        with self._lock:
            self._backlog.add(job_id, attributes, time.monotonic())
        self._more.set()

    def forget(self, job_id: str) -> None:
        """Writes nothing into a job that is being started."""
        with self._lock:
            self._backlog.forget((job_id,))

    def keep_only(self, job_ids: Mapping[str, Attributes]) -> None:
        """Forgets jobs that have left."""
        with self._lock:
            self._backlog.keep_only(job_ids)

    def reset(self) -> None:
        """Writes everything again when it is announced again."""
        with self._lock:
            self._backlog = Backlog()

    def pause(self, held: bool) -> None:
        """Writes nothing while another scheduler does."""
        if held:
            self._held.set()
        else:
            self._held.clear()
            self._more.set()

    def _take(self) -> list[tuple[str, Attributes]]:
        with self._lock:
            now = time.monotonic()
            if not self._backlog.is_ready:
                self._backlog.ripen(now)
            batch = self._backlog.take(_BURST, now)
            self.written.waiting = len(self._backlog)
        return batch

    def _run(self) -> None:
        while True:
            self._more.wait(_LATER_S if self.written.waiting else None)
            self._more.clear()
            while not self._held.is_set() and (batch := self._take()):
                try:
                    took_s = self._send(batch)
                except IflError as error:
                    _log.info("comments are not written: %s", error)
                    self._own.drop()
                    with self._lock:
                        self._backlog.forget(job_id for job_id, _ in batch)
                    time.sleep(_AGAIN_S)
                    continue
                time.sleep(self._allowance.rests_s(took_s, time.monotonic()))

    def _send(self, batch: list[tuple[str, Attributes]]) -> float:
        """Sends a burst; returns how long it kept the server busy, s."""
        connection, ifl = self._own.get(), self._own.ifl
        began = time.monotonic()
        for job_id, attributes in batch:
            if ifl.alter(connection, job_id, attributes):
                self.written.failed += 1
            else:
                self.written.jobs += 1
        ifl.stat_server(connection)
        return time.monotonic() - began


Errand = Callable[[Ifl, int], int]
"""A request on a connection; returns the server's code."""


class Errands:
    """Requests that may block, one after the other."""

    def __init__(self, ifl: Ifl, server: str) -> None:
        self._own = _OwnConnection(ifl, server)
        self._queue: queue.SimpleQueue[tuple[str, Errand, Callable[[int], None]]] = (
            queue.SimpleQueue()
        )
        self._names: set[str] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._run, name="errands", daemon=True).start()

    def add(self, name: str, errand: Errand, done: Callable[[int], None] = lambda _: None) -> bool:
        """Queues a request; False: one of the same name is under way.

        Args:
            name: what it is, for the log: "confirm R12.server".
            errand: the request.
            done: called with the server's code, by the thread of the errands.
        """
        with self._lock:
            if name in self._names:
                return False
            self._names.add(name)
        self._queue.put((name, errand, done))
        return True

    def _run(self) -> None:
        while True:
            name, errand, done = self._queue.get()
            code = -1
            try:
                code = errand(self._own.ifl, self._own.get())
                if code:
                    _log.warning("%s: the server refuses (%d)", name, code)
            except IflError as error:
                _log.warning("%s: %s", name, error)
                self._own.drop()
            finally:
                with self._lock:
                    self._names.discard(name)
            if code < 0:
                self._own.drop()
            done(code)
