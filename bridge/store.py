# SPDX-License-Identifier: Apache-2.0
"""What the service remembers over a restart, in one SQLite file.

| table | holds |
|---|---|
| memory | what policies carry between cycles (`bridge.ports.Memory`), and since when is watched |
| learnt | what predictors know of run times (`bridge.lessons`) |
| promise, started, gone | how announced starts came true (`bridge.starts`) |

Rules
    1. Nothing here may delay or stop a cycle: it only hands over what happened. One thread of its
       own follows the promises and writes, all that came in within `LINGER_S` at once, and only
       what changed. It alone uses the connection; who asks waits for that thread.
    2. What cannot be written is tried again with the next batch. When more than `MOST_OWED` facts
       wait, what comes then is forgotten and the log says so.
    3. A file that is damaged is moved aside with a warning; the service begins with nothing.
    4. Without a file everything is kept in this process and ends with it.
    5. What policies remembered and cannot be read is refused with a line in the log; the rest is
       used.
    6. A whole report names every running job: those that are known already, or that ran before
       anybody watched, are no new starts.
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

from bridge.accuracy import Changes, Happened, Record, Waiting
from bridge.errors import BridgeError, ConfigError
from bridge.lessons import SCHEMA as LESSONS
from bridge.lessons import Lessons, fresh, keep_lessons, read_lessons
from bridge.planning.kept_plan import KeptPlan, from_bytes, to_bytes
from bridge.ports import Memory
from bridge.starts import (
    SCHEMA,
    Kept,
    is_known,
    keep_promises,
    keep_records,
    kept_promises,
    latest_s,
    prune,
    summarise,
    upgrade,
)

_log = logging.getLogger(__name__)

KEEP_DAYS = 90
SAVE_EVERY_S = 5.0
LINGER_S = 2.0
"""How long what happened may lie in memory before it is written."""

MOST_OWED = 1_000_000
ASKING = 2
"""How many may wait for an answer at once: a slow disk must not keep all who serve users busy."""

PRUNE_EVERY_S = 3600.0
SHARE = 20
CHEAP_S = 0.05
"""A summary that took more work than this is told again for `SHARE` times as long. Plans are saved
at most that often, too."""

_VERSION = 2
_MEMORY = "CREATE TABLE IF NOT EXISTS memory (key TEXT PRIMARY KEY, value TEXT NOT NULL);"

Told = Callable[[Changes], None]
_Item = Happened | dict[str, dict[str, int]] | KeptPlan | tuple[Lessons] | Future[Kept] | None
"""What happened; what policies remember; what was learnt; a question; or the end."""


class Slow(BridgeError):
    """The records cannot be read in time."""


class Store:
    """The service's memory; an observer of cycles.

    Attributes:
        path: the file; None: nothing outlives this object.
    """

    def __init__(
        self, path: Path | None, *, keep_days: int = KEEP_DAYS, told: Told = lambda _: None
    ) -> None:
        """Opens the file and starts the writer.

        Args:
            path: the file; None: keep everything in this process.
            keep_days: for how long starts are kept.
            told: hears of every start and change, in the writer's thread.

        Raises:
            ConfigError: the file cannot be written, or is a newer version's.
        """
        self.path = path
        self._keep_days = keep_days
        self._told = told
        self._memory: Memory | None = None
        self._saved = time.monotonic()
        self._queue: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._owed = 0
        self._complained = float("-inf")
        self._hurry = threading.Event()
        self._asking = threading.BoundedSemaphore(ASKING)
        self._database = _open(path) if path is not None else _prepare(":memory:")
        self._scribe = _Scribe(self._database, keep_days)
        self._thread = threading.Thread(target=self._write, name="store", daemon=True)
        self._thread.start()

    def memory(self) -> Memory:
        """Returns what policies remembered when the service ended; it is saved from now on."""
        if self._memory is None:
            self._memory = _read_memory(self._scribe.memory)
            self._memory.kept_plan = _read_plan(self._scribe.plan_bytes)
            self._memory.learnt = self._scribe.learnt
        return self._memory

    def took(self, event: Happened) -> None:
        """Notes what happened; returns at once."""
        facts = len(event.started) + len(event.gone) + len(event.promised)
        if facts or event.waiting is not None:
            self._put(event, facts)
        if time.monotonic() - self._saved >= SAVE_EVERY_S:
            self._saved = time.monotonic()
            self._save()

    def accuracy(self, timeout_s: float = 8.0) -> Kept:
        """How announced starts came true, all that happened until now included.

        Raises:
            Slow: the disk, or the queue before it, does not answer in time; or too many wait.
        """
        if not self._asking.acquire(timeout=timeout_s / 100):
            raise Slow("others wait for the records of starts: try again in a moment")
        try:
            answer: Future[Kept] = Future()
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
        self._thread.join(timeout=30)

    def _save(self) -> None:
        if self._memory is not None and self.path is not None:
            self._queue.put({"planned_start_s": dict(self._memory.planned_start_s)})
            if lessons := fresh(self._memory):
                self._queue.put((lessons,))
            kept = self._memory.kept_plan
            self._queue.put(kept if isinstance(kept, KeptPlan) else KeptPlan((), {}))

    def _put(self, event: Happened, facts: int) -> None:
        if self._owed + facts <= MOST_OWED:
            self._owed += facts
            self._queue.put(event)
        elif time.monotonic() - self._complained > 60:
            self._complained = time.monotonic()
            _log.error("memory %s cannot keep up: something is forgotten", self.path)

    # ------------------------------------------------------------ the writer's thread

    def _write(self) -> None:
        over = False
        while not over:
            batch = [self._queue.get()]
            if isinstance(batch[0], Happened | dict | KeptPlan | tuple):
                self._hurry.wait(LINGER_S)
            self._hurry.clear()
            with contextlib.suppress(queue.Empty):
                while True:
                    batch.append(self._queue.get_nowait())
            over = None in batch
            self._owed = 0
            try:
                self._follow(batch, over=over)
            except Exception:  # a bug here must not end the records for good
                _log.exception("memory %s: something is forgotten", self.path)
            for answer in batch:
                if isinstance(answer, Future):
                    self._answer(answer)
        self._database.close()

    def _follow(self, batch: list[_Item], *, over: bool) -> None:
        scribe = self._scribe
        for item in batch:
            if isinstance(item, dict):
                scribe.memory = json.dumps(item)
            elif isinstance(item, tuple):
                scribe.lessons |= item[0]
            elif isinstance(item, KeptPlan):
                scribe.plan = item
            elif isinstance(item, Happened):
                try:
                    self._told(scribe.follow(item))
                except Exception:
                    _log.exception("memory %s: a report is forgotten", self.path)
        scribe.encode_plan(last=over)
        try:
            scribe.write()
        except sqlite3.Error as error:
            _log.error("memory %s: %s; it is tried again", self.path, error)

    def _answer(self, answer: Future[Kept]) -> None:
        try:
            answer.set_result(self._scribe.kept())
        except Exception as error:
            _log.error("memory %s: %s", self.path, error)
            answer.set_exception(Slow(f"the records of starts cannot be read: {error}"))


class _Scribe:
    """Follows promises, and keeps the tables up to date; used by one thread."""

    def __init__(self, database: sqlite3.Connection, keep_days: int) -> None:
        self._database = database
        self._keep_days = keep_days
        self._waiting = Waiting()
        self._waiting.restore(kept_promises(database))
        self._touched: set[str] = set()
        self._started: dict[tuple[str, int], Record] = {}
        self._gone: list[Record] = []
        self._now_s = 0
        self._since_s = int(_read(database, "since_s") or latest_s(database))
        self._pruned = float("-inf")
        self._kept: Kept | None = None
        self._fresh_until = float("-inf")
        self.memory = _read(database, "policies")
        self.learnt = read_lessons(database)
        self.lessons: Lessons = {}
        self._written = self.memory
        self.plan: KeptPlan | None = None
        self.plan_bytes = _read_bytes(database, "plan")
        self._plan_written = self.plan_bytes
        self._encode_after = float("-inf")

    def encode_plan(self, *, last: bool) -> None:
        """Puts the plan into bytes, if it is time: a large one is work, and changes every cycle."""
        if self.plan is None or (time.monotonic() < self._encode_after and not last):
            return
        began = time.thread_time()
        self.plan_bytes = to_bytes(self.plan) if self.plan.places else b""
        self.plan = None
        self._encode_after = time.monotonic() + SHARE * (time.thread_time() - began)

    def follow(self, event: Happened) -> Changes:
        """Takes in what happened."""
        self._now_s = event.now_s
        if not self._since_s:
            self._since_s = event.now_s
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

    def _is_new(self, job_id: str, start_s: int) -> bool:
        return (
            start_s >= self._since_s
            and (job_id, start_s) not in self._started
            and not is_known(self._database, job_id, start_s)
        )

    def write(self) -> None:
        """Writes what changed, in one transaction.

        Raises:
            sqlite3.Error: nothing was written; it is all still to be.
        """
        waiting = self._waiting
        prunes = self._now_s and time.monotonic() - self._pruned >= PRUNE_EVERY_S
        if not (self._touched or self._started or self._gone or self.lessons or prunes) and (
            (self.memory, self.plan_bytes) == (self._written, self._plan_written)
        ):
            return
        with self._database as database:
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
            keep_lessons(database, self.lessons)
            if prunes:
                _keep(database, "since_s", str(self._since_s))
                prune(database, self._now_s, self._keep_days)
        self._touched.clear()
        self._started.clear()
        self._gone.clear()
        self.lessons = {}
        self._written, self._plan_written = self.memory, self.plan_bytes
        self._pruned = time.monotonic() if prunes else self._pruned

    def kept(self) -> Kept:
        """Judges the records, or tells again what was found a moment ago."""
        if self._kept is None or time.monotonic() > self._fresh_until:
            began = time.thread_time()
            self._kept = summarise(self._database, self._now_s, self._keep_days, len(self._waiting))
            spent_s = time.thread_time() - began
            self._fresh_until = time.monotonic() + (SHARE * spent_s if spent_s > CHEAP_S else 0)
        return self._kept


def _open(path: Path) -> sqlite3.Connection:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
    except OSError as error:
        raise ConfigError("memory.path", f"cannot write {path}: {error.strerror}") from error
    try:
        return _prepare(path)
    except sqlite3.DatabaseError as error:
        aside = path.with_name(f"{path.name}.damaged-{int(time.time())}")
        _log.warning("memory %s is damaged (%s): moved to %s", path, error, aside.name)
        path.replace(aside)
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        return _prepare(path)


def _prepare(path: Path | str) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=5, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        verdict = database.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version > _VERSION:
            raise ConfigError(
                "memory.path", f"{path} was written by a newer schedbridge: use another file"
            )
        with database:
            database.execute("BEGIN IMMEDIATE")
            if version == 1:
                upgrade(database)
            for statement in (_MEMORY + LESSONS + SCHEMA).split(";"):
                database.execute(statement)
            database.execute(f"PRAGMA user_version = {_VERSION}")
    except BaseException:
        database.close()
        raise
    return database


def _read(database: sqlite3.Connection, key: str) -> str:
    row = database.execute("SELECT value FROM memory WHERE key = ?", (key,)).fetchone()
    return "" if row is None else str(row[0])


def _read_bytes(database: sqlite3.Connection, key: str) -> bytes:
    row = database.execute("SELECT value FROM memory WHERE key = ?", (key,)).fetchone()
    value = b"" if row is None else row[0]
    return value if isinstance(value, bytes) else str(value).encode()


def _keep(database: sqlite3.Connection, key: str, value: str | bytes) -> None:
    database.execute("INSERT OR REPLACE INTO memory VALUES (?, ?)", (key, value))


def _read_memory(text: str) -> Memory:
    if not text:
        return Memory()
    try:
        planned = json.loads(text)["planned_start_s"]
        return Memory({str(job_id): int(start_s) for job_id, start_s in planned.items()})
    except (ValueError, TypeError, KeyError, AttributeError):
        _log.warning("what policies remembered cannot be read; they begin anew")
        return Memory()


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
