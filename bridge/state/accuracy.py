# SPDX-License-Identifier: Apache-2.0
"""Compares promised with actual starts: takes plans and starts, returns a record for each start.

Terms
    promise     a planned start that was announced. For a waiting job the first and the last are
                kept, with the instants of announcement; of those between, the number and the sum of
                the shifts.
    shift       new - old announced start, s; later (> 0) and earlier (< 0) ones are added up
                separately.
    head        the one row of an array's unstarted tasks, "100" of task "100_7".

Rules
    1. Repeating an unchanged promise is not a change.
    2. A withdrawn promise (the job is held, or beyond the depth) remains until there is another, as
       users may have relied on it.
    3. A start ends the job's promise; a requeued job gets a new one.
    4. A promise first announced after the job had started is ignored.
    5. The promise of an array belongs to its head, for the next task. Tasks that start together
       share it; the next announcement of the head is a new promise. If the plan that starts tasks
       also announces the next one, the promise of the starting tasks is kept for `OPEN_S`.
    6. If a waiting job leaves without a start, its promise is recorded as `gone`.

Pure and deterministic; used by the service and the simulator.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bridge.dialect import dialect_named
from bridge.measures import StartAccuracy, start_accuracy

OPEN_S: Final = 10
"""How long after a decision the starts of an array's tasks may be reported."""

FIELDS: Final = (
    "first_start_s", "first_said_s", "last_start_s", "last_said_s", "changes", "later_s",
    "earlier_s",
)  # fmt: skip
PROMISE: Final = np.dtype([(name, np.int64) for name in FIELDS])
"""The record of a job's promises; `first_start_s` 0: no promise."""

_FIRST, _LAST = FIELDS.index("first_start_s"), FIELDS.index("last_start_s")
_NONE: Final = np.zeros((), dtype=PROMISE)
_SPARE = 1024


class Promise(NamedTuple):
    """One `PROMISE` as plain numbers."""

    first_start_s: int
    first_said_s: int
    last_start_s: int
    last_said_s: int
    changes: int = 0
    later_s: int = 0
    earlier_s: int = 0


class PromiseColumns:
    """Promises by row, as columns.

    Attributes:
        held: (n_rows,) `PROMISE`.
    """

    def __init__(self, rows: int = 0) -> None:
        self.held: NDArray[np.void]
        self._hold(np.zeros((rows, len(FIELDS)), dtype=np.int64))

    def _hold(self, numbers: NDArray[np.int64]) -> None:
        self._numbers = numbers  # as `held`, as plain numbers, which are gathered faster
        self.held = numbers.view(PROMISE)[:, 0]

    def announce(
        self, rows: NDArray[np.intp], start_s: NDArray[np.int64], now_s: int
    ) -> NDArray[np.int64]:
        """Records the current promises; O(rows).

        Args:
            rows: (n,) distinct.
            start_s: (n,) announced starts, >= 1.
            now_s: current time.

        Returns:
            (n,) shifts; 0 for a first or repeated promise.
        """
        if len(rows) == 1 and self._numbers[rows[0], _LAST] == start_s[0]:
            return np.zeros(1, dtype=np.int64)  # a start is at least 1, so it is no first promise
        held, known = self.held, self._numbers.take(rows, axis=0)
        first = known[:, _FIRST] == 0
        if np.array_equal(known[:, _LAST], start_s) and not np.count_nonzero(first):
            return np.zeros(len(rows), dtype=np.int64)  # the common case: no change
        shift: NDArray[np.int64] = np.where(first, 0, start_s - known[:, _LAST])
        begun, moved = rows[first], first | (shift != 0)
        held["first_start_s"][begun] = start_s[first]
        held["first_said_s"][begun] = now_s
        held["last_start_s"][rows[moved]] = start_s[moved]
        held["last_said_s"][rows[moved]] = now_s
        moved = rows[shift != 0]
        held["changes"][moved] += 1
        held["later_s"][rows] += np.maximum(shift, 0)
        held["earlier_s"][rows] -= np.minimum(shift, 0)
        return shift

    def take(self, rows: NDArray[np.intp]) -> NDArray[np.void]:
        """Removes and returns the promises of some rows."""
        taken = self._numbers.take(rows, axis=0)
        self._numbers[rows] = 0
        return taken.view(PROMISE)[:, 0]

    def reserve(self, rows: int) -> None:
        """Makes space for this many rows."""
        if rows > len(self.held):
            numbers = np.zeros((max(rows, 2 * len(self.held)), len(FIELDS)), dtype=np.int64)
            numbers[: len(self.held)] = self._numbers
            self._hold(numbers)


@dataclass(frozen=True)
class StartColumns:
    """Starts with their promises; columns of length n_starts.

    Attributes:
        start_s: int64: actual.
        promise: `PROMISE`, or more fields; the instants of announcement are not needed.
        gone: waiting jobs that left without a start after an announcement.
    """

    start_s: NDArray[np.int64]
    promise: NDArray[np.void]
    gone: int = 0

    def accuracy(self) -> StartAccuracy:
        """Judges them; see `bridge.measures`."""
        start_s, promise = self.start_s, self.promise
        promised = promise["first_start_s"] != 0
        # Jobs without a promise contribute zeros.
        return start_accuracy(
            (start_s - promise["first_start_s"])[promised],
            (start_s - promise["last_start_s"])[promised],
            unpromised=int(len(promised) - promised.sum()),
            gone=self.gone,
            changed=int((promise["changes"] > 0).sum()),
            changes=int(promise["changes"].sum()),
            later_s=int(promise["later_s"].sum()),
            earlier_s=int(promise["earlier_s"].sum()),
        )


class Began(NamedTuple):
    """A start as reported by the controller."""

    job_id: str
    start_s: int
    partition: str


class Announced(NamedTuple):
    """A planned start as announced to the controller."""

    start_s: int
    partition: str


@dataclass(frozen=True)
class Happened:
    """One report of the controller and the resulting plan.

    Attributes:
        now_s: the controller's clock.
        started: jobs that started since the last report.
        gone: waiting jobs that left without having started.
        waiting: all waiting jobs if this was a full report; jobs not listed are gone.
        starting: jobs that the plan starts now.
        promised: announced start by job id.
        dialect: the controller's dialect (`bridge.dialect`).
    """

    now_s: int
    started: Sequence[Began] = ()
    gone: Sequence[str] = ()
    waiting: Iterable[str] | None = None
    starting: Collection[str] = ()
    promised: Mapping[str, Announced] = field(default_factory=dict)
    dialect: str = ""


class WaitEnd(NamedTuple):
    """The end of a job's wait at `at_s`: it started, or left."""

    job_id: str
    at_s: int
    partition: str
    promise: Promise | None


@dataclass
class RecordChanges:
    """The effect of a report and its plan.

    Attributes:
        started, gone: records, in the order of the report.
        touched: jobs whose promise changed or ended.
        later, earlier: number of announced starts that moved either way.
    """

    started: list[WaitEnd] = field(default_factory=list)
    gone: list[WaitEnd] = field(default_factory=list)
    touched: set[str] = field(default_factory=set)
    later: int = 0
    earlier: int = 0


class Waiting:
    """Promises of waiting jobs, by job id."""

    def __init__(self) -> None:
        self._row: dict[str, int] = {}
        self._partition: dict[str, str] = {}
        self._free: list[int] = []
        self._promises = PromiseColumns(_SPARE)
        self._aside: dict[str, tuple[Promise | None, int]] = {}

    def __len__(self) -> int:
        return len(self._row)

    def __contains__(self, job_id: object) -> bool:
        return job_id in self._row

    def __iter__(self) -> Iterator[str]:
        return iter(self._row)

    def __getitem__(self, job_id: str) -> tuple[str, Promise]:
        """Partition and promise of a waiting job."""
        return self._partition[job_id], self._promise(self._row[job_id])

    def restore(self, kept: Iterable[tuple[str, str, Promise]]) -> None:
        """Restores promises from the plain numbers that `__getitem__` returned, with job ids."""
        for job_id, partition, promise in kept:
            row = self._rows([job_id])[0]
            self._promises.held[row] = tuple(promise)
            self._partition[job_id] = partition

    def happen(self, event: Happened) -> RecordChanges:
        """Applies one report and its plan. O(jobs named in it)."""
        changes = RecordChanges()
        shared: dict[str, Promise | None] = {}
        dialect = dialect_named(event.dialect)
        for began in event.started:
            array = dialect.array_of(began.job_id)
            changes.started.append(self._start(began, array, shared, changes))
        gone = dict.fromkeys(job_id for job_id in event.gone if job_id in self._row)
        if event.waiting is not None:
            still = set(event.waiting)
            gone |= dict.fromkeys(job_id for job_id in self._row if job_id not in still)
        for job_id in gone:
            partition, promise = self._partition[job_id], self._drop(job_id, changes)
            changes.gone.append(WaitEnd(job_id, event.now_s, partition, promise))
        for job_id in event.starting:
            if job_id in event.promised:  # tasks of an array start, and the next one is announced
                before = self._drop(job_id, changes) if job_id in self._row else None
                self._aside[job_id] = (before, event.now_s + OPEN_S)
        if self._aside:
            late = [head for head, (_, last_s) in self._aside.items() if last_s < event.now_s]
            for head in late:
                del self._aside[head]
        self._announce(event, changes)
        return changes

    def _start(
        self, began: Began, array: str, shared: dict[str, Promise | None], changes: RecordChanges
    ) -> WaitEnd:
        job_id, start_s, partition = began
        promise: Promise | None = None
        if job_id in self._row:
            promise = self._drop(job_id, changes)
            if promise.first_said_s > start_s:
                promise = None
        elif array != job_id:
            promise = self._of_head(array, start_s, shared, changes)
        return WaitEnd(job_id, start_s, partition, promise)

    def _of_head(
        self, head: str, start_s: int, shared: dict[str, Promise | None], changes: RecordChanges
    ) -> Promise | None:
        aside = self._aside.get(head)
        if aside is not None and start_s <= aside[1]:
            return aside[0]
        if head not in shared:
            row = self._row.get(head)
            if row is None or self._promise(row).first_said_s > start_s:
                return None
            shared[head] = self._drop(head, changes)
        return shared[head]

    def _announce(self, event: Happened, changes: RecordChanges) -> None:
        promised = event.promised
        if not promised:
            return
        rows = self._rows(promised)
        start_s = np.fromiter((one[0] for one in promised.values()), np.int64, len(promised))
        new = self._promises.held["first_start_s"][rows] == 0
        shift = self._promises.announce(rows, start_s, event.now_s)
        changes.later += int((shift > 0).sum())
        changes.earlier += int((shift < 0).sum())
        ids = list(promised)
        changes.touched.update(ids[at] for at in np.flatnonzero(new | (shift != 0)).tolist())
        self._partition.update((job_id, one.partition) for job_id, one in promised.items())

    def _rows(self, job_ids: Collection[str]) -> NDArray[np.intp]:
        """The rows of some jobs; jobs without one get a new row."""
        row_of = self._row
        for job_id in job_ids:
            if job_id not in row_of:
                row_of[job_id] = self._free.pop() if self._free else len(row_of)
        self._promises.reserve(len(row_of) + len(self._free))
        return np.fromiter((row_of[job_id] for job_id in job_ids), np.intp, len(job_ids))

    def _drop(self, job_id: str, changes: RecordChanges) -> Promise:
        row = self._row.pop(job_id)
        del self._partition[job_id]
        promise = self._promise(row)
        self._promises.held[row] = _NONE
        self._free.append(row)
        changes.touched.add(job_id)
        return promise

    def _promise(self, row: int) -> Promise:
        return Promise(*self._promises.held.item(row))
