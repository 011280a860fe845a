# SPDX-License-Identifier: Apache-2.0
"""The service's persistent state, in one SQLite file.

| table | holds |
|---|---|
| memory | the state of policies between cycles (`bridge.ports.State`), the start of observation, |
| | the entries of the corridor of power (`bridge.extensions.power.corridor.entry_log`) |
| learnt | the values learnt by predictors (`bridge.state.predictor_store`) |
| promise, started, gone | announced and actual starts (`bridge.state.announced_starts`) |

Rules
    1. The store never delays or stops a cycle, which only queues events. A separate thread opens
       the file, follows the promises and writes the changes of each `LINGER_S` in one batch. Only
       this thread uses the connection; queries wait for it.
    2. A failed write is repeated with the next batch. Beyond `MAX_OWED` pending events, new ones
       are dropped with a message in the log.
    3. `bridge.state.memory_file` describes the checks of a file and the handling of damaged ones.
    4. If the file cannot be opened, the log says so; the service continues without it and retries
       at growing intervals (`RETRY_S`). Once it is open, the events since then are applied to its
       contents in order. Policies take all of the contents before their first cycle; later only
       what was learnt about run times, as their own announcements are newer.
    5. If the file is damaged, replaced or removed while in use, a new file gets everything in
       memory. Earlier starts remain in the old one.
    6. Without a path, everything is kept in memory only.
    7. Unreadable state of policies is rejected with a message in the log; the rest is used.
    8. Entries of the corridor are written at once. The entries in a file that is opened late are
       returned once, combined with those entered meanwhile, and written again.
    9. A full report names every running job. Jobs that are known already, or that started before
       the service, are not new starts.
"""

import contextlib
import json
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from bridge.errors import BridgeError
from bridge.planning.scheduler.kept_plan import KeptPlan
from bridge.ports import State
from bridge.state.accuracy import Happened, RecordChanges
from bridge.state.announced_starts import (
    StartRecords,
)
from bridge.state.memory_file import (
    NotOpened,
    identity,
    is_damage,
    is_passing,
    open_nothing,
    reason_of,
    set_aside,
)
from bridge.state.memory_writer import MAX_OWED, MemoryWriter, open_writer
from bridge.state.predictor_store import (
    PredictorRecords,
    everything,
    fresh,
    join,
)

_log = logging.getLogger(__name__)

KEEP_DAYS = 90
SAVE_EVERY_S = 5.0
LINGER_S = 2.0
"""Longest time that an event stays in memory before it is written."""

OPEN_S = 8.0
"""Longest time that a start of the service waits for the file."""

RETRY_S = (1.0, 60.0)
"""Interval after which a file that cannot be opened is tried again: first, and longest."""

AGAIN_S = 5.0
"""Interval after which a full disk or a locked file is tried again, if no event comes earlier."""

CLOSE_S = 8.0
"""Longest time that `close` waits for the last write."""

REPEAT_S = 600.0
"""Interval after which the same problem is logged again."""

ASKING = 2
"""Queries that may wait at once: a slow disk must not block all threads that serve users."""

OnChanges = Callable[[RecordChanges], None]
_Item = (
    Happened
    | dict[str, Any]
    | KeptPlan
    | tuple[PredictorRecords]
    | str
    | Future[StartRecords]
    | None
)
"""An event; state of policies; a kept plan; predictor records; the corridor's entries; a query;
None: the end."""


class Slow(BridgeError):
    """The records cannot be read in time."""


class Store:
    """The service's memory; an observer of cycles.

    Attributes:
        path: the file; None: nothing outlives this object.
        problem: why the file is not in use at present; "": it is in use, or there is none.
    """

    def __init__(
        self,
        path: Path | None,
        *,
        keep_days: int = KEEP_DAYS,
        on_changes: OnChanges = lambda _: None,
    ) -> None:
        """Starts the writer thread, which opens the file; waits up to `OPEN_S` for it.

        Args:
            path: the file; None: keep everything in this process.
            keep_days: how long starts are kept.
            on_changes: called with all starts and changes, in the writer's thread.
        """
        self.path = path
        self.problem = ""
        self._keep_days = keep_days
        self._on_changes = on_changes
        self._state: State | None = None
        self._current: Callable[[], State] | None = None
        self._handed = State()
        self._late: State | None = None
        self._late_corridor: str | None = None
        self._begun = False
        self._everything = False
        self._saved = time.monotonic()
        self._queue: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._owed = 0
        self._complained = float("-inf")
        self._complaints: dict[str, float] = {}
        self._hurry = threading.Event()
        self._asking = threading.BoundedSemaphore(ASKING)
        self._writer = MemoryWriter(open_nothing(), keep_days)
        self._retry_at = float("inf") if path is None else float("-inf")
        self._retry_s = RETRY_S[0]
        self._again_at = float("inf")
        tried = threading.Event()
        self._thread = threading.Thread(
            target=self._write, args=(tried,), name="store", daemon=True
        )
        self._thread.start()
        if not tried.wait(OPEN_S):
            self.problem = f"{path} does not answer"
            _log.error("memory: %s; the service continues without it", self.problem)

    def state(self) -> State:
        """The state of policies when the service last ended."""
        if self._state is None:
            late, self._late = self._late, None
            self._begun = late is not None  # from here on the carried state is complete
            self._state = State() if late is None else late
            self._handed = self._state
        return self._state

    def watch(self, current: Callable[[], State]) -> None:
        """Saves the state of policies from now on; `current` returns it."""
        self._current = current

    def catch_up(self, state: State) -> State:
        """The state of policies for a cycle, with the contents of a file that was opened late."""
        late, self._late = self._late, None
        begun, self._begun = self._begun, True
        if late is None or self._state is None:
            return state
        return State(state.promises if begun else late.promises, join(state.learnt, late.learnt))

    def corridor(self) -> str | None:
        """The corridor's entries in the file, once; None: nothing new."""
        found, self._late_corridor = self._late_corridor, None
        return found or None

    def keep_corridor(self, text: str) -> None:
        """Has the corridor's entries written; returns at once."""
        self._queue.put(text)
        self._hurry.set()

    def took(self, event: Happened) -> None:
        """Queues an event; returns at once."""
        facts = len(event.started) + len(event.gone) + len(event.promised)
        if facts or event.waiting is not None:
            self._put(event, facts)
        if time.monotonic() - self._saved >= SAVE_EVERY_S:
            self._saved = time.monotonic()
            self._save()

    def accuracy(self, timeout_s: float = 8.0) -> StartRecords:
        """The records of announced starts, with all events until now.

        Raises:
            Slow: the disk or the queue does not answer in time, or too many queries wait.
        """
        if not self._asking.acquire(timeout=timeout_s / 100):
            raise Slow("too many queries for the records of starts: try again in a moment")
        try:
            answer: Future[StartRecords] = Future()
            self._queue.put(answer)
            self._hurry.set()
            return answer.result(timeout_s)
        except TimeoutError:
            raise Slow("the records of starts cannot be read at present: try again later") from None
        finally:
            self._asking.release()

    def close(self) -> None:
        """Writes the remaining events and closes the file."""
        if not self._thread.is_alive():
            return
        self._save()
        self._queue.put(None)
        self._hurry.set()
        self._thread.join(timeout=CLOSE_S)
        if self._thread.is_alive():
            _log.error("memory %s does not answer: the last events are lost", self.path)

    def _save(self) -> None:
        if self._current is None or self.path is None:
            return
        state = self._current()
        promises, kept = state.promises, state.promises.kept_plan
        if not (self._begun or promises.start_s or state.learnt or kept):
            return  # nothing has been planned: the contents of the file are still valid
        self._queue.put({"by": promises.by, "planned_start_s": promises.start_s})
        wanted, self._everything = self._everything, False
        if predictor_records := everything(state) if wanted else fresh(state, self._handed):
            self._queue.put((predictor_records,))
        self._handed = state
        self._queue.put(kept if isinstance(kept, KeptPlan) else KeptPlan((), {}))

    def _put(self, event: Happened, facts: int) -> None:
        if self._owed + facts <= MAX_OWED:
            self._owed += facts
            self._queue.put(event)
        elif time.monotonic() - self._complained > 60:
            self._complained = time.monotonic()
            _log.error("memory %s cannot keep up: events are dropped", self.path)

    # ------------------------------------------------------------ the writer's thread

    def _write(self, tried: threading.Event) -> None:
        batch: list[_Item] = []
        over = False
        while True:
            if over and not self._is_open:
                self._retry_at = float("-inf")  # the last chance
            self._open_if_due()
            tried.set()
            try:
                self._follow(batch, over=over)
            except Exception:  # a bug here must not end the records for good
                _log.exception("memory %s: events are dropped", self.path)
            for answer in batch:
                if isinstance(answer, Future):
                    self._answer(answer)
            if over:
                break
            batch = self._batch()
            over = None in batch
        self._writer.database.close()

    def _batch(self) -> list[_Item]:
        """All queued items; none if it is time to open the file or to write again."""
        due_s = min(self._retry_at, self._again_at) - time.monotonic()
        try:
            batch = [self._queue.get(timeout=max(due_s, 0.0) if due_s < float("inf") else None)]
        except queue.Empty:
            return []
        if isinstance(batch[0], Happened | dict | KeptPlan | tuple):
            self._hurry.wait(LINGER_S)
        self._hurry.clear()
        with contextlib.suppress(queue.Empty):
            while True:
                batch.append(self._queue.get_nowait())
        self._owed = 0
        return batch

    def _follow(self, batch: list[_Item], *, over: bool) -> None:
        writer = self._writer
        for item in batch:
            if isinstance(item, dict):
                writer.memory = json.dumps(item, default=dict)
            elif isinstance(item, tuple):
                writer.predictor_records |= item[0]
            elif isinstance(item, KeptPlan):
                writer.plan = item
            elif isinstance(item, str):
                writer.corridor = item
            elif isinstance(item, Happened):
                try:
                    self._on_changes(writer.follow(item))
                except Exception:
                    _log.exception("memory %s: the events of a report are dropped", self.path)
        writer.encode_plan(last=over)
        if self.path is not None and self._is_open and identity(self.path) != writer.file:
            self._complain(f"{self.path} was replaced by another file")
            self._retry_at = float("-inf")
            self._open_if_due()
            writer = self._writer
        if not self._is_open and writer.missed is None:
            return  # written when the file is open again
        try:
            wrote = writer.write()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            self._trouble(error)
            return
        self._again_at = float("inf")
        if wrote and self._is_open and self._complaints:
            self._complaints.clear()
            self._retry_s = RETRY_S[0]
            _log.info("memory %s is written again", self.path)

    def _answer(self, answer: Future[StartRecords]) -> None:
        try:
            answer.set_result(self._writer.kept())
        except Exception as error:
            if isinstance(error, sqlite3.Error | UnicodeDecodeError):
                self._trouble(error)
            else:
                _log.error("memory %s: %s", self.path, error)
            answer.set_exception(Slow(f"the records of starts cannot be read: {error}"))

    def _complain(self, problem: str) -> None:
        """Logs a problem, at most once per `REPEAT_S`."""
        now = time.monotonic()
        if now - self._complaints.get(problem, float("-inf")) >= REPEAT_S:
            if len(self._complaints) >= 100:
                self._complaints.clear()
            self._complaints[problem] = now
            _log.error("memory: %s; the service continues and will try again", problem)

    def _trouble(self, error: Exception) -> None:
        """Handles the failure of an open file."""
        if self.path is None or not self._is_open:
            _log.error("memory: %s", reason_of(error))
            return
        self._complain(f"{self.path}: {reason_of(error)}")
        if is_damage(error) and identity(self.path) == self._writer.file:
            try:
                set_aside(self.path, str(error))
            except OSError as failed:
                self._complain(f"{self.path} cannot be moved aside: {failed.strerror}")
        if is_passing(error):
            self._again_at = time.monotonic() + AGAIN_S
        else:
            self._later()

    @property
    def _is_open(self) -> bool:
        """Whether the file, if there is one, is in use."""
        return self._retry_at == float("inf")

    def _later(self) -> None:
        self._retry_at = time.monotonic() + self._retry_s
        self._retry_s = min(2 * self._retry_s, RETRY_S[1])

    def _open_if_due(self) -> None:
        """Opens the file if it is not open and a retry is due."""
        if self.path is None or time.monotonic() < self._retry_at:
            return
        try:
            found = open_writer(self.path, self._keep_days)
        except Exception as error:
            if not isinstance(error, NotOpened):  # a bug here must not end the records for good
                _log.exception("memory %s cannot be read", self.path)
            self.problem = str(error)
            self._complain(self.problem)
            self._later()
            return
        self._writer = self._joined(found)
        self._retry_at = float("inf")
        if self.problem:
            _log.info("memory %s is open now", self.path)
            self._retry_s, self.problem = RETRY_S[0], ""
            self._complaints.clear()

    def _joined(self, found: "MemoryWriter") -> "MemoryWriter":
        """The writer that continues with an opened file, and its pending events."""
        live = self._writer
        if live.missed is not None:  # there was no file before
            self._late, self._late_corridor = found.remembered(), found.corridor
            found.take_over(live)
            live.database.close()
            return found
        if found.file != live.file:
            live.mark_all_unwritten(found.database)
            self._everything = True
        old, live.database, live.file = live.database, found.database, found.file
        old.close()
        return live
