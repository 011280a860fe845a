# SPDX-License-Identifier: Apache-2.0
"""The service's persistent state, in one SQLite file.

| table | holds |
|---|---|
| memory | what policies carry between cycles (`bridge.ports.State`), and since when is watched |
| learnt | what predictors know of run times (`bridge.state.predictor_store`) |
| promise, started, gone | how announced starts came true (`bridge.state.announced_starts`) |

Rules
    1. The store never delays or stops a cycle, which only queues events. A separate thread opens
       the file, follows the promises and writes the changes of each `LINGER_S` in one batch. Only
       this thread uses the connection; queries wait for it.
    2. A failed write is repeated with the next batch. Beyond `MOST_OWED` pending events, new ones
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
    8. A whole report names every running job. Those that are known already, or that started before
       the service did, are not new starts.
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
from dataclasses import replace
from pathlib import Path
from typing import Any

from bridge.errors import BridgeError
from bridge.model.layers import Layers
from bridge.model.learnt import Learnt
from bridge.planning.scheduler.kept_plan import KeptPlan, from_bytes, to_bytes
from bridge.ports import Promises, State
from bridge.state.accuracy import Announced, Changes, Happened, Record, Waiting
from bridge.state.announced_starts import (
    MOST_S,
    StartRecords,
    is_known,
    keep_promises,
    keep_records,
    kept_promises,
    latest_s,
    prune,
    summarise,
)
from bridge.state.memory_file import (
    NotOpened,
    identity,
    is_damage,
    is_passing,
    open_file,
    open_nothing,
    said,
    set_aside,
    transaction,
)
from bridge.state.predictor_store import (
    PredictorRecords,
    everything,
    fresh,
    join,
    read_predictor_records,
    write_predictor_records,
)

_log = logging.getLogger(__name__)

KEEP_DAYS = 90
SAVE_EVERY_S = 5.0
LINGER_S = 2.0
"""How long what happened may lie in memory before it is written."""

OPEN_S = 8.0
"""How long a start waits for the file at most."""

RETRY_S = (1.0, 60.0)
"""After how long a file that cannot be opened is tried again: at first, and at most."""

AGAIN_S = 5.0
"""After how long a full disk or a locked file is tried again, if nothing new comes before."""

CLOSE_S = 8.0
"""How long the end waits for the last writing."""

REPEAT_S = 600.0
"""After how long the same complaint is made again."""

MOST_OWED = 1_000_000
MOST_MISSED = 200_000
"""Facts that wait for a file to be opened; see `_Scribe.missed`."""

ASKING = 2
"""How many may wait for an answer at once: a slow disk must not keep all who serve users busy."""

PRUNE_EVERY_S = 3600.0
SHARE = 20
CHEAP_S = 0.05
"""A summary that took more work than this is told again for `SHARE` times as long. Plans are saved
at most that often, too."""

Told = Callable[[Changes], None]
_Item = Happened | dict[str, Any] | KeptPlan | tuple[PredictorRecords] | Future[StartRecords] | None
"""What happened; what policies remember; what was learnt; a question; or the end."""


class Slow(BridgeError):
    """The records cannot be read in time."""


class Store:
    """The service's memory; an observer of cycles.

    Attributes:
        path: the file; None: nothing outlives this object.
        problem: why the file is not in use at present; "": it is, or there is none.
    """

    def __init__(
        self, path: Path | None, *, keep_days: int = KEEP_DAYS, told: Told = lambda _: None
    ) -> None:
        """Starts the writer, which opens the file; waits for it for a moment.

        Args:
            path: the file; None: keep everything in this process.
            keep_days: for how long starts are kept.
            told: hears of every start and change, in the writer's thread.
        """
        self.path = path
        self.problem = ""
        self._keep_days = keep_days
        self._told = told
        self._state: State | None = None
        self._current: Callable[[], State] | None = None
        self._handed = State()
        self._late: State | None = None
        self._begun = False
        self._everything = False
        self._saved = time.monotonic()
        self._queue: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._owed = 0
        self._complained = float("-inf")
        self._complaints: dict[str, float] = {}
        self._hurry = threading.Event()
        self._asking = threading.BoundedSemaphore(ASKING)
        self._scribe = _Scribe(open_nothing(), keep_days)
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
            _log.error("memory: %s; the service goes on without it", self.problem)

    def state(self) -> State:
        """What policies carried when the service ended."""
        if self._state is None:
            late, self._late = self._late, None
            self._begun = late is not None  # what is carried from here on is all there is
            self._state = State() if late is None else late
            self._handed = self._state
        return self._state

    def watch(self, current: Callable[[], State]) -> None:
        """From now on what policies carry is saved; `current` tells it."""
        self._current = current

    def catch_up(self, state: State) -> State:
        """What policies carry, with what a file held that was opened late; before a cycle."""
        late, self._late = self._late, None
        begun, self._begun = self._begun, True
        if late is None or self._state is None:
            return state
        return State(state.promises if begun else late.promises, join(state.learnt, late.learnt))

    def took(self, event: Happened) -> None:
        """Notes what happened; returns at once."""
        facts = len(event.started) + len(event.gone) + len(event.promised)
        if facts or event.waiting is not None:
            self._put(event, facts)
        if time.monotonic() - self._saved >= SAVE_EVERY_S:
            self._saved = time.monotonic()
            self._save()

    def accuracy(self, timeout_s: float = 8.0) -> StartRecords:
        """How announced starts came true, all that happened until now included.

        Raises:
            Slow: the disk, or the queue before it, does not answer in time; or too many wait.
        """
        if not self._asking.acquire(timeout=timeout_s / 100):
            raise Slow("others wait for the records of starts: try again in a moment")
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
        """Writes what is left and closes the file."""
        if not self._thread.is_alive():
            return
        self._save()
        self._queue.put(None)
        self._hurry.set()
        self._thread.join(timeout=CLOSE_S)
        if self._thread.is_alive():
            _log.error("memory %s does not answer: what happened last is lost", self.path)

    def _save(self) -> None:
        if self._current is None or self.path is None:
            return
        state = self._current()
        promises, kept = state.promises, state.promises.kept_plan
        if not (self._begun or promises.start_s or state.learnt or kept):
            return  # nothing has been planned: what the file says, opened or not, still holds
        self._queue.put({"by": promises.by, "planned_start_s": dict(promises.start_s)})
        wanted, self._everything = self._everything, False
        if predictor_records := everything(state) if wanted else fresh(state, self._handed):
            self._queue.put((predictor_records,))
        self._handed = state
        self._queue.put(kept if isinstance(kept, KeptPlan) else KeptPlan((), {}))

    def _put(self, event: Happened, facts: int) -> None:
        if self._owed + facts <= MOST_OWED:
            self._owed += facts
            self._queue.put(event)
        elif time.monotonic() - self._complained > 60:
            self._complained = time.monotonic()
            _log.error("memory %s cannot keep up: something is forgotten", self.path)

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
                _log.exception("memory %s: something is forgotten", self.path)
            for answer in batch:
                if isinstance(answer, Future):
                    self._answer(answer)
            if over:
                break
            batch = self._batch()
            over = None in batch
        self._scribe.database.close()

    def _batch(self) -> list[_Item]:
        """All that came in; nothing, if it is time to open the file or to write again."""
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
        scribe = self._scribe
        for item in batch:
            if isinstance(item, dict):
                scribe.memory = json.dumps(item)
            elif isinstance(item, tuple):
                scribe.predictor_records |= item[0]
            elif isinstance(item, KeptPlan):
                scribe.plan = item
            elif isinstance(item, Happened):
                try:
                    self._told(scribe.follow(item))
                except Exception:
                    _log.exception("memory %s: a report is forgotten", self.path)
        scribe.encode_plan(last=over)
        if self.path is not None and self._is_open and identity(self.path) != scribe.file:
            self._complain(f"{self.path} is another file than it was")
            self._retry_at = float("-inf")
            self._open_if_due()
            scribe = self._scribe
        if not self._is_open and scribe.missed is None:
            return  # written when the file is open again
        try:
            wrote = scribe.write()
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
            answer.set_result(self._scribe.kept())
        except Exception as error:
            if isinstance(error, sqlite3.Error | UnicodeDecodeError):
                self._trouble(error)
            else:
                _log.error("memory %s: %s", self.path, error)
            answer.set_exception(Slow(f"the records of starts cannot be read: {error}"))

    def _complain(self, problem: str) -> None:
        """Says what is wrong, once for a while."""
        now = time.monotonic()
        if now - self._complaints.get(problem, float("-inf")) >= REPEAT_S:
            if len(self._complaints) >= 100:
                self._complaints.clear()
            self._complaints[problem] = now
            _log.error("memory: %s; the service goes on, it is tried again", problem)

    def _trouble(self, error: Exception) -> None:
        """The file, which was open, fails."""
        if self.path is None or not self._is_open:
            _log.error("memory: %s", said(error))
            return
        self._complain(f"{self.path}: {said(error)}")
        if is_damage(error) and identity(self.path) == self._scribe.file:
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
        """Opens the file, if it is not open and it is time."""
        if self.path is None or time.monotonic() < self._retry_at:
            return
        try:
            found = _read(self.path, self._keep_days)
        except Exception as error:
            if not isinstance(error, NotOpened):  # a bug here must not end the records for good
                _log.exception("memory %s cannot be read", self.path)
            self.problem = str(error)
            self._complain(self.problem)
            self._later()
            return
        self._scribe = self._joined(found)
        self._retry_at = float("inf")
        if self.problem:
            _log.info("memory %s is open now", self.path)
            self._retry_s, self.problem = RETRY_S[0], ""
            self._complaints.clear()

    def _joined(self, found: "_Scribe") -> "_Scribe":
        """What goes on with a file that was opened: who follows the promises, and what he owes."""
        live = self._scribe
        if live.missed is not None:  # there was no file before
            self._late = found.remembered()
            found.take_over(live)
            live.database.close()
            return found
        if found.file != live.file:
            live.owe_everything(found.database)
            self._everything = True
        old, live.database, live.file = live.database, found.database, found.file
        old.close()
        return live


class _Scribe:
    """Follows promises, and keeps the tables up to date; used by one thread.

    Attributes:
        file: which file the database is in; None: in none.
        missed: what happened, for a file that is opened later; None: there is one.
    """

    def __init__(
        self, database: sqlite3.Connection, keep_days: int, file: tuple[int, int] | None = None
    ) -> None:
        self.database = database
        self.file = file
        self.missed: list[Happened] | None = [] if file is None else None
        self._missed = 0
        self._keep_days = keep_days
        self._waiting = Waiting()
        self._waiting.restore(kept_promises(database))
        self._touched: set[str] = set()
        self._started: dict[tuple[str, int], Record] = {}
        self._gone: list[Record] = []
        self._now_s = 0
        self._since_s = _whole_number(_value(database, "since_s")) or latest_s(database)
        self._since_written = self._since_s
        self._pruned = float("-inf")
        self._kept: StartRecords | None = None
        self._fresh_until = float("-inf")
        self.memory = _value(database, "policies").decode(errors="replace")
        self._learnt = read_predictor_records(database)
        self.predictor_records: PredictorRecords = {}
        self._stored_records: PredictorRecords = {}
        self._written = self.memory
        self.plan: KeptPlan | None = None
        self.plan_bytes = _value(database, "plan")
        self._plan_written = self.plan_bytes
        self._encode_after = float("-inf")

    def remembered(self) -> State:
        """What policies remembered when the file was written; once."""
        promises = _read_promises(self.memory)
        learnt, self._learnt = self._learnt, {}
        return State(
            replace(promises, kept_plan=_read_plan(self.plan_bytes)),
            {predictor: Learnt(Layers(known)) for predictor, known in learnt.items()},
        )

    def take_over(self, before: "_Scribe") -> None:
        """What happened while there was no file happens to what this one holds."""
        for event in before.missed or ():
            self.follow(event)
        self._now_s = max(self._now_s, before._now_s)
        self.predictor_records = before._stored_records | before.predictor_records
        if before.memory:  # policies have planned since
            self.memory, self.plan, self.plan_bytes = before.memory, before.plan, before.plan_bytes

    def owe_everything(self, database: sqlite3.Connection) -> None:
        """Another file has to get all that is known here."""
        self._touched.update(job_id for job_id, _, _ in kept_promises(database))
        self._touched.update(self._waiting)
        self._written, self._plan_written, self._since_written = "", b"", 0
        self._kept = None

    def encode_plan(self, *, last: bool) -> None:
        """Puts the plan into bytes, if it is time: a large one is work, and changes every cycle."""
        if self.plan is None or (time.monotonic() < self._encode_after and not last):
            return
        began = time.thread_time()
        self.plan_bytes = to_bytes(self.plan) if self.plan.placements else b""
        self.plan = None
        self._encode_after = time.monotonic() + SHARE * (time.thread_time() - began)

    def follow(self, event: Happened) -> Changes:
        """Takes in what happened."""
        self._now_s = event.now_s
        if not self._since_s or event.now_s < self._since_s:  # a clock that was ahead is right now
            self._since_s = event.now_s
        if self.missed is not None:
            self._miss(event)
        if event.waiting is not None:
            event = replace(event, started=[at for at in event.started if self._is_new(*at[:2])])
        changes = self._waiting.happen(event)
        self._touched |= changes.touched
        for record in changes.started:
            self._started.setdefault(record[:2], record)
        self._gone += changes.gone
        if len(self._started) + len(self._gone) > MOST_OWED:
            self._started.clear()
            self._gone.clear()
            _log.error("nothing can be written: %d records are forgotten", MOST_OWED)
        return changes

    def _miss(self, event: Happened) -> None:
        """Keeps an event for later; when there are too many, what they came to for waiting jobs."""
        assert self.missed is not None
        if event.waiting is not None:
            event = replace(event, waiting=tuple(event.waiting))
        self._missed += len(event.started) + len(event.gone) + len(event.promised)
        self._missed += len(event.waiting) if isinstance(event.waiting, tuple) else 0
        if self._missed > MOST_MISSED and self.missed:
            _log.error("memory: no file for long: starts so far are forgotten")
            promised = {
                job_id: Announced(promise.last_start_s, partition)
                for job_id in self._waiting
                for partition, promise in [self._waiting[job_id]]
            }
            self.missed[:] = [Happened(event.now_s, promised=promised)]
            self._missed = len(promised)
        self.missed.append(event)

    def _is_new(self, job_id: str, start_s: int) -> bool:
        if start_s < self._since_s or (job_id, start_s) in self._started:
            return False
        try:
            return not is_known(self.database, job_id, start_s)
        except (sqlite3.Error, UnicodeDecodeError):  # a row that is there is not written again
            return True

    def write(self) -> bool:
        """Writes what changed, in one transaction; False: nothing did.

        Raises:
            sqlite3.Error: nothing was written; it is all still to be.
        """
        waiting = self._waiting
        prunes = self._now_s and time.monotonic() - self._pruned >= PRUNE_EVERY_S
        if not (
            self._touched or self._started or self._gone or self.predictor_records or prunes
        ) and ((self.memory, self.plan_bytes) == (self._written, self._plan_written)):
            return False
        database = self.database
        with transaction(database):
            if self._touched:
                still = [job_id for job_id in self._touched if job_id in waiting]
                keep_promises(
                    database,
                    [(job_id, *waiting[job_id]) for job_id in still],
                    self._touched.difference(still),
                )
            keep_records(database, self._started.values(), self._gone)
            if self.memory != self._written:
                _keep(database, "policies", self.memory)
            if self.plan_bytes != self._plan_written:
                _keep(database, "plan", self.plan_bytes)
            write_predictor_records(database, self.predictor_records)
            if prunes or self._since_s != self._since_written:
                _keep(database, "since_s", str(self._since_s))
            if prunes:
                prune(database, self._now_s, self._keep_days)
        self._touched.clear()
        self._started.clear()
        self._gone.clear()
        if self.missed is not None:
            self._stored_records |= self.predictor_records
        self.predictor_records = {}
        self._written, self._plan_written = self.memory, self.plan_bytes
        self._since_written = self._since_s
        self._pruned = time.monotonic() if prunes else self._pruned
        return True

    def kept(self) -> StartRecords:
        """Judges the records, or tells again what was found a moment ago."""
        if self._kept is None or time.monotonic() > self._fresh_until:
            began = time.thread_time()
            self._kept = summarise(self.database, self._now_s, self._keep_days, len(self._waiting))
            spent_s = time.thread_time() - began
            self._fresh_until = time.monotonic() + (SHARE * spent_s if spent_s > CHEAP_S else 0)
        return self._kept


def _read(path: Path, keep_days: int) -> _Scribe:
    """Opens a file and reads what it holds.

    Raises:
        NotOpened: it cannot be used at present.
    """
    for _ in range(2):
        database = open_file(path)
        try:
            return _Scribe(database, keep_days, identity(path))
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if not is_damage(error):
                database.close()
                raise NotOpened(f"cannot use {path}: {said(error)}") from error
            set_aside(path, str(error))
            database.close()
    raise NotOpened(f"cannot use {path}: damaged again at once")


def _value(database: sqlite3.Connection, key: str) -> bytes:
    query = "SELECT CAST(value AS BLOB) FROM memory WHERE key = ?"
    row = database.execute(query, (key,)).fetchone()
    return b"" if row is None or row[0] is None else bytes(row[0])


def _whole_number(value: bytes) -> int:
    return int(value) if value.isdigit() and len(value) < 18 else 0


def _keep(database: sqlite3.Connection, key: str, value: str | bytes) -> None:
    database.execute("INSERT OR REPLACE INTO memory VALUES (?, ?)", (key, value))


def _read_promises(text: str) -> Promises:
    """Who announced which starts; files of versions before do not say who."""
    if not text:
        return Promises()
    try:
        saved = json.loads(text)
        planned = saved["planned_start_s"]
        found = {str(job_id): int(start_s) for job_id, start_s in planned.items()}
        if not all(0 <= start_s <= MOST_S for start_s in found.values()):
            raise ValueError("no instants")
        return Promises(str(saved.get("by", "")), found)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        _log.warning("what policies remembered cannot be read; they begin anew")
        return Promises()


def _read_plan(value: bytes) -> KeptPlan | None:
    if not value:
        return None
    try:
        return from_bytes(value)
    except ValueError as error:
        _log.warning(
            "the saved plan is not used: %s; announced starts are kept, their nodes are not", error
        )
        return None
