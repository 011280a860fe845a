# SPDX-License-Identifier: Apache-2.0
"""What the service remembers over a restart, in one SQLite file.

| table | one row per | holds |
|---|---|---|
| memory | key | what policies carry between cycles (`bridge.ports.Memory`) |
| promise | waiting job | first and last announced start, and when each was announced |
| started | started job | its promises beside its actual start: how reliable they were |

Rules
    1. Nothing here may delay or stop a cycle: writes are done by one thread of its own, in the
       order they came; what fails is logged and dropped.
    2. A file that is damaged is moved aside with a warning; the service begins with nothing.
    3. Starts are kept for `KEEP_S`, promises of jobs that were never heard of again too.
"""

import contextlib
import json
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from bridge.errors import ConfigError
from bridge.ports import Memory

_log = logging.getLogger(__name__)

KEEP_S = 90 * 86_400
SAVE_EVERY_S = 5.0
_WAITING = 10_000
"""Writes that may wait; a full disk must not fill the memory."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS memory (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS promise (
    job_id TEXT PRIMARY KEY,
    first_start_s INTEGER NOT NULL, first_said_s INTEGER NOT NULL,
    last_start_s INTEGER NOT NULL, last_said_s INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS started (
    job_id TEXT NOT NULL, start_s INTEGER NOT NULL,
    first_start_s INTEGER, first_said_s INTEGER, last_start_s INTEGER, last_said_s INTEGER,
    PRIMARY KEY (job_id, start_s)
);
PRAGMA user_version = 1;
"""

_PROMISE = """
INSERT INTO promise VALUES (?1, ?2, ?3, ?2, ?3) ON CONFLICT (job_id)
DO UPDATE SET last_start_s = excluded.last_start_s, last_said_s = excluded.last_said_s
"""

_STARTED = """
INSERT OR IGNORE INTO started
SELECT ?1, ?2, first_start_s, first_said_s, last_start_s, last_said_s
FROM (SELECT 1) LEFT JOIN promise ON promise.job_id = ?1
"""


class Store:
    """The service's memory; an observer of cycles.

    Attributes:
        path: the file; None: nothing outlives this object.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._memory: Memory | None = None
        self._saved = time.monotonic()
        self._queue: queue.Queue[Callable[[sqlite3.Connection], object] | None] = queue.Queue(
            _WAITING
        )
        self._database = _open(path) if path is not None else None
        self._thread = threading.Thread(target=self._write, name="store", daemon=True)
        if self._database is not None:
            self._thread.start()

    def memory(self) -> Memory:
        """Returns what policies remembered when the service ended; it is saved from now on."""
        if self._memory is None:
            self._memory = _read_memory(self._database)
        return self._memory

    def took(self, promised: Mapping[str, int], started: list[tuple[str, int]], now_s: int) -> None:
        """Notes what was promised and what began, in this order.

        Args:
            promised: job id to announced start.
            started: job id and actual start.
            now_s: the controller's clock.
        """
        if self._database is None:
            return
        begun = [(job_id, start_s) for job_id, start_s in started]
        said = [(job_id, start_s, now_s) for job_id, start_s in promised.items()]

        def write(database: sqlite3.Connection) -> None:
            # A job that starts is told apart from one that is promised again (requeued).
            database.executemany(_STARTED, begun)
            database.executemany("DELETE FROM promise WHERE job_id = ?", [(j,) for j, _ in begun])
            database.executemany(_PROMISE, said)

        if begun or said:
            self._put(write)
        if time.monotonic() - self._saved >= SAVE_EVERY_S:
            self._saved = time.monotonic()
            self._save()

    def _save(self) -> None:
        if self._memory is None:
            return
        text = json.dumps({"planned_start_s": dict(self._memory.planned_start_s)})
        self._put(
            lambda database: database.execute(
                "INSERT OR REPLACE INTO memory VALUES ('policies', ?)", (text,)
            )
        )

    def _put(self, write: Callable[[sqlite3.Connection], object]) -> None:
        try:
            self._queue.put_nowait(write)
        except queue.Full:
            _log.error("memory %s cannot keep up: something is forgotten", self.path)

    def _write(self) -> None:
        database = self._database
        if database is None:
            return
        over = False
        while not over:
            batch = [self._queue.get()]
            with contextlib.suppress(queue.Empty):
                while True:
                    batch.append(self._queue.get_nowait())
            over = None in batch
            try:
                with database:
                    for write in batch:
                        if write is not None:
                            write(database)
            except sqlite3.Error as error:
                _log.error("memory %s: %s; something is forgotten", self.path, error)
        database.close()

    def close(self) -> None:
        """Writes what is left and closes the file."""
        if self._database is None or not self._thread.is_alive():
            return
        self._save()
        self._queue.put(None)
        self._thread.join(timeout=30)


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


def _prepare(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, timeout=5, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        verdict = database.execute("PRAGMA quick_check(1)").fetchone()[0]
        if verdict != "ok":
            raise sqlite3.DatabaseError(verdict)
        version = database.execute("PRAGMA user_version").fetchone()[0]
        if version > 1:
            raise ConfigError(
                "memory.path", f"{path} was written by a newer schedbridge: use another file"
            )
        database.executescript(_SCHEMA)
        with database:
            for table, column in (("promise", "last_said_s"), ("started", "start_s")):
                database.execute(
                    f"DELETE FROM {table} WHERE {column} < (SELECT max({column}) FROM {table}) - ?",
                    (KEEP_S,),
                )
    except BaseException:
        database.close()
        raise
    return database


def _read_memory(database: sqlite3.Connection | None) -> Memory:
    if database is None:
        return Memory()
    row = database.execute("SELECT value FROM memory WHERE key = 'policies'").fetchone()
    if row is None:
        return Memory()
    try:
        planned = json.loads(row[0])["planned_start_s"]
        return Memory({str(job_id): int(start_s) for job_id, start_s in planned.items()})
    except (ValueError, TypeError, KeyError, AttributeError):
        _log.warning("what policies remembered cannot be read; they begin anew")
        return Memory()
