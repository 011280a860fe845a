# SPDX-License-Identifier: Apache-2.0
"""Follows promises, and keeps the tables of the file up to date.

One thread uses a writer: that of `bridge.state.store`, whose docstring has the rules.
"""

import json
import logging
import sqlite3
import time
from dataclasses import replace
from pathlib import Path

from bridge.model.layers import Layers
from bridge.model.learnt import Learnt
from bridge.planning.scheduler.kept_plan import KeptPlan, from_bytes, to_bytes
from bridge.ports import Promises, State
from bridge.state.accuracy import Announced, Happened, RecordChanges, WaitEnd, Waiting
from bridge.state.announced_starts import (
    MAX_S,
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
    open_file,
    reason_of,
    set_aside,
    transaction,
)
from bridge.state.predictor_store import (
    PredictorRecords,
    read_predictor_records,
    write_predictor_records,
)

_log = logging.getLogger(__name__)


MAX_OWED = 1_000_000

MAX_MISSED = 200_000
"""Facts that wait for a file to be opened; see `MemoryWriter.missed`."""

PRUNE_EVERY_S = 3600.0

SHARE = 20

CHEAP_S = 0.05
"""A summary that took longer than this is repeated, not renewed, for `SHARE` times as long. Plans
are saved at most that often, too."""


class MemoryWriter:
    """Follows promises, and keeps the tables up to date; used by one thread.

    Attributes:
        file: the file of the database; None: there is none.
        missed: events for a file that is opened later; None: there is a file.
        corridor: the operators' entries of the corridor, as text.
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
        self._started: dict[tuple[str, int], WaitEnd] = {}
        self._gone: list[WaitEnd] = []
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
        self.corridor = _value(database, "corridor").decode(errors="replace")
        self._corridor_written: str | None = self.corridor
        self._encode_after = float("-inf")

    def remembered(self) -> State:
        """The state of policies in the file; once."""
        promises = _read_promises(self.memory)
        learnt, self._learnt = self._learnt, {}
        return State(
            replace(promises, kept_plan=_read_plan(self.plan_bytes)),
            {predictor: Learnt(Layers(known)) for predictor, known in learnt.items()},
        )

    def take_over(self, before: "MemoryWriter") -> None:
        """Applies the events without a file to the contents of this one."""
        for event in before.missed or ():
            self.follow(event)
        self._now_s = max(self._now_s, before._now_s)
        self.predictor_records = before._stored_records | before.predictor_records
        if before.memory:  # policies have planned since
            self.memory, self.plan, self.plan_bytes = before.memory, before.plan, before.plan_bytes

    def mark_all_unwritten(self, database: sqlite3.Connection) -> None:
        """Prepares to write everything into another file."""
        self._touched.update(job_id for job_id, _, _ in kept_promises(database))
        self._touched.update(self._waiting)
        self._written, self._plan_written, self._since_written = "", b"", 0
        self._corridor_written = None
        self._kept = None

    def encode_plan(self, *, last: bool) -> None:
        """Encodes the plan if it is due: a large plan is expensive, and changes every cycle."""
        if self.plan is None or (time.monotonic() < self._encode_after and not last):
            return
        began = time.thread_time()
        self.plan_bytes = to_bytes(self.plan) if self.plan.placements else b""
        self.plan = None
        self._encode_after = time.monotonic() + SHARE * (time.thread_time() - began)

    def follow(self, event: Happened) -> RecordChanges:
        self._now_s = event.now_s
        if not self._since_s or event.now_s < self._since_s:  # the clock was ahead
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
        if len(self._started) + len(self._gone) > MAX_OWED:
            self._started.clear()
            self._gone.clear()
            _log.error("nothing can be written: %d records are dropped", MAX_OWED)
        return changes

    def _miss(self, event: Happened) -> None:
        """Keeps an event for later; of too many events, only the effect on waiting jobs is kept."""
        assert self.missed is not None
        if event.waiting is not None:
            event = replace(event, waiting=tuple(event.waiting))
        self._missed += len(event.started) + len(event.gone) + len(event.promised)
        self._missed += len(event.waiting) if isinstance(event.waiting, tuple) else 0
        if self._missed > MAX_MISSED and self.missed:
            _log.error("memory: no file for a long time: starts so far are dropped")
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
        """Writes the changes, in one transaction; False: there were none.

        Raises:
            sqlite3.Error: nothing was written; all changes are still pending.
        """
        waiting = self._waiting
        prunes = self._now_s and time.monotonic() - self._pruned >= PRUNE_EVERY_S
        texts = self.memory, self.plan_bytes, self.corridor
        if not (
            self._touched or self._started or self._gone or self.predictor_records or prunes
        ) and texts == (self._written, self._plan_written, self._corridor_written):
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
            if self.corridor != self._corridor_written:
                _keep(database, "corridor", self.corridor)
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
        self._written, self._plan_written, self._corridor_written = texts
        self._since_written = self._since_s
        self._pruned = time.monotonic() if prunes else self._pruned
        return True

    def kept(self) -> StartRecords:
        """Evaluates the records, or repeats a recent result."""
        if self._kept is None or time.monotonic() > self._fresh_until:
            began = time.thread_time()
            self._kept = summarise(self.database, self._now_s, self._keep_days, len(self._waiting))
            spent_s = time.thread_time() - began
            self._fresh_until = time.monotonic() + (SHARE * spent_s if spent_s > CHEAP_S else 0)
        return self._kept


def open_writer(path: Path, keep_days: int) -> MemoryWriter:
    """Opens a file and reads its contents.

    Raises:
        NotOpened: it cannot be used at present.
    """
    for _ in range(2):
        database = open_file(path)
        try:
            return MemoryWriter(database, keep_days, identity(path))
        except (sqlite3.Error, UnicodeDecodeError) as error:
            if not is_damage(error):
                database.close()
                raise NotOpened(f"cannot use {path}: {reason_of(error)}") from error
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
    """The announced starts by policy; files of earlier versions do not name the policy."""
    if not text:
        return Promises()
    try:
        saved = json.loads(text)
        planned = saved["planned_start_s"]
        found = {
            job_id: start_s
            for job_id, start_s in planned.items()
            if type(start_s) is int and 0 <= start_s <= MAX_S
        }
        if len(found) < len(planned):
            damaged = len(planned) - len(found)
            _log.warning("%d announced starts cannot be read: they are dropped", damaged)
        return Promises(str(saved.get("by", "")), found)
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        _log.warning("the state of policies cannot be read; they start without it")
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
