# SPDX-License-Identifier: Apache-2.0
"""The pending and running jobs that a controller has reported, as columns."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import attrgetter, gt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import COLUMNS, RUNNING_COLUMNS, Hold, JobTable, RunningTable
from bridge.model.job_columns import Column, Source, Unit
from bridge.model.node import CPUS
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.decode_allocation import Allocated
from bridge.rpc.reported.decode_request import Lowered
from bridge.rpc.reported.row_store import RowStore, grown
from bridge.rpc.reported.safe_text import printable

_OVERRULED: Final = frozenset((Hold.NONE, Hold.BEGIN_TIME, Hold.RESERVATION))
"""Holds under which a job would be planned; an invalid request overrides them."""


class MessageFields:
    """Reads the columns that are plain fields of a job's message, within the bounds of their units.

    Attributes:
        numbers: names of the columns of numbers, in the order of `read_numbers`.
        texts: names of the columns of texts, in the order of `read_texts`.
    """

    def __init__(self, columns: Iterable[Column]) -> None:
        fields = [each for each in columns if each.source is Source.MESSAGE]
        numbers = [each for each in fields if each.is_number]
        self.numbers = tuple(each.name for each in numbers)
        self.texts = tuple(each.name for each in fields if each.unit is Unit.TEXT)
        self._maximum = [each.max_accepted for each in numbers]
        self._for_negative = [each.for_negative for each in numbers]
        self._versions = [at for at, each in enumerate(numbers) if each.unit is Unit.VERSION]
        self._numbers = _fields(each.field for each in numbers)
        self._texts = _fields(each.field for each in fields if each.unit is Unit.TEXT)

    def read_numbers(self, job: pb.Job) -> list[int]:
        """The numbers of one job; a version is the int64 of the same bits."""
        found = list(self._numbers(job))
        if found and (min(found) < 0 or any(map(gt, found, self._maximum))):
            for at, value in enumerate(found):
                found[at] = self._for_negative[at] if value < 0 else min(value, self._maximum[at])
        for at in self._versions:
            if found[at] >> 63:
                found[at] -= 1 << 64
        return found

    def read_texts(self, job: pb.Job) -> list[str]:
        return [printable(text) for text in self._texts(job)]


def _fields(names: Iterable[str]) -> Any:
    """A function that returns these attributes as a tuple, however few they are."""
    found = tuple(names)
    if len(found) > 1:
        return attrgetter(*found)
    return lambda thing: tuple(getattr(thing, name) for name in found)


PENDING_FIELDS: Final = MessageFields(COLUMNS)
RUNNING_FIELDS: Final = MessageFields(RUNNING_COLUMNS)


def _of(table: tuple[Column, ...], *sources: Source) -> list[Column]:
    return [each for source in sources for each in table if each.source is source]


_allocated = _fields(
    each.name for each in _of(RUNNING_COLUMNS, Source.ALLOCATION) if each.is_number
)
_allocated_texts = _fields(
    each.name for each in _of(RUNNING_COLUMNS, Source.ALLOCATION) if each.unit is Unit.TEXT
)


class PendingJobs(RowStore):
    """Pending jobs by row; see `bridge.model.job.JobTable` for the columns.

    For each job also its serial number, its hold with the controller's text for it, and its request
    as sent.
    """

    def __init__(self, n_resources: int, n_licences: int) -> None:
        super().__init__(
            _of(COLUMNS, Source.MESSAGE, Source.LOWERED, Source.REQUEST),
            {Unit.RESOURCES: n_resources, Unit.LICENCES: n_licences},
            own_numbers=("serial", "own_hold"),
            own_objects=("own_text", "request"),
        )
        self._serial = 0

    def put(
        self,
        numbers: Sequence[list[int]],
        texts: Sequence[list[str]],
        requests: Sequence[bytes],
        lowered: Sequence[Lowered],
    ) -> None:
        """Adds or replaces jobs, all of different ids.

        Args:
            numbers: for each job those of `PENDING_FIELDS.numbers`; not for further use.
            texts: for each job those of `PENDING_FIELDS.texts`; likewise.
        """
        self._reserve(len(numbers))
        rows: list[int] = []
        table: list[tuple[int, ...]] = []
        columns, at_serial = list(self._objects.values()), self._number["serial"]
        for fields, words, request, low in zip(numbers, texts, requests, lowered, strict=True):
            row = self._row.get(words[_AT_ID])
            if row is None:
                row = self._row[words[_AT_ID]] = self._end
                self._end += 1
                self._serial += 1
                serial = self._serial
            else:
                serial = int(self._numbers[at_serial, row])
            rows.append(row)
            own_hold, own_text = fields[_AT_HOLD], words[_AT_HOLD_TEXT]
            problem = low.problem or low.start_problem
            if problem and own_hold in _OVERRULED:
                fields[_AT_HOLD], words[_AT_HOLD_TEXT] = low.problem_hold, problem
            table.append((*fields, *low.numbers, serial, own_hold))
            for column, value in zip(
                columns, (*words, *low.objects, own_text, request), strict=True
            ):
                column[row] = value
        at = np.array(rows, dtype=np.intp)
        self._alive[at] = True
        self._numbers[:, at] = np.array(table, dtype=np.int64).T
        self._put_vectors(at, lowered)

    def requests(self) -> list[bytes]:
        """The requests of the jobs as sent, in the order of the table."""
        return list(self._objects["request"][self._take()])

    def lower_again(self, lowered: Sequence[Lowered], n_resources: int, n_licences: int) -> None:
        """Replaces the columns derived from requests, after a change of nodes or partitions.

        Args:
            lowered: in the order of `requests()`.
            n_resources: columns of resource vectors from now on.
            n_licences: columns of licence vectors from now on.
        """
        self._set_widths({Unit.RESOURCES: n_resources, Unit.LICENCES: n_licences})
        if not lowered:
            return
        rows = np.flatnonzero(self._alive[: self._end])
        fields = self._numbers[: len(PENDING_FIELDS.numbers), rows]
        fields[_AT_HOLD] = self._numbers[self._number["own_hold"], rows]
        words = [self._objects[name][rows] for name in PENDING_FIELDS.texts]
        words[_AT_HOLD_TEXT] = self._objects["own_text"][rows]
        requests = self._objects["request"][rows].tolist()
        texts = [list(each) for each in zip(*words, strict=True)]
        self.put(fields.T.tolist(), texts, requests, lowered)

    def rows_of(self, job_ids: Iterable[str], serials: NDArray[np.int64]) -> dict[str, int]:
        """Finds jobs in a table that was handed out, by the serial numbers of its rows."""
        found = {}
        for job_id in job_ids:
            row = self._row.get(job_id)
            if row is not None:
                serial = self._numbers[self._number["serial"], row]
                found[job_id] = int(np.searchsorted(serials, serial))
        return found

    def table(self) -> tuple[JobTable, NDArray[np.int64]]:
        """Returns the jobs as columns, and for each the ascending serial number of its row."""
        columns, own = self._handed_out()
        return JobTable(**columns), own["serial"]


_AT_ID: Final = PENDING_FIELDS.texts.index("id")
_AT_HOLD: Final = PENDING_FIELDS.numbers.index("hold")
_AT_HOLD_TEXT: Final = PENDING_FIELDS.texts.index("hold_text")


class ReportedRunningJobs(RowStore):
    """Jobs that hold nodes, by row; their nodes are in one pool, job after job.

    A job keeps its message as sent beside the columns of `bridge.model.job.RunningTable`.
    """

    def __init__(self, n_resources: int, n_licences: int) -> None:
        super().__init__(
            _of(RUNNING_COLUMNS, Source.MESSAGE, Source.ALLOCATION),
            {Unit.RESOURCES: n_resources, Unit.LICENCES: n_licences},
            own_numbers=("size",),
            own_objects=("raw",),
        )
        self._pool_end = 0
        self._owner = np.zeros(0, dtype=np.intp)
        self._nodes = np.zeros(0, dtype=np.int32)
        self._use = np.zeros((0, n_resources), dtype=np.int64)

    def messages(self) -> list[bytes]:
        """All jobs' messages as sent, in the order of the table."""
        return list(self._objects["raw"][self._take()])

    def put(
        self,
        numbers: Sequence[Sequence[int]],
        texts: Sequence[Sequence[str]],
        raw: Sequence[bytes],
        held: Sequence[Allocated],
    ) -> None:
        """Adds or replaces jobs, all of different ids.

        Args:
            numbers: for each job those of `RUNNING_FIELDS.numbers`.
            texts: for each job those of `RUNNING_FIELDS.texts`.
            raw: the messages as sent.
        """
        at_id = RUNNING_FIELDS.texts.index("id")
        for words in texts:
            self.remove(words[at_id])
        sizes = [len(each.nodes) for each in held]
        total = sum(sizes)
        self._reserve(len(texts))
        self._reserve_pool(total)
        rows = np.arange(self._end, self._end + len(texts))
        columns = list(self._objects.values())
        table: list[tuple[int, ...]] = []
        for fields, words, message, each in zip(numbers, texts, raw, held, strict=True):
            table.append((*fields, *_allocated(each), len(each.nodes)))
            texts_of = (*words, *_allocated_texts(each), message)
            for column, value in zip(columns, texts_of, strict=True):
                column[self._end] = value
            self._row[words[at_id]] = self._end
            self._end += 1
        self._alive[rows] = True
        self._numbers[:, rows] = np.array(table, dtype=np.int64).T
        self._put_vectors(rows, held)
        pool = slice(self._pool_end, self._pool_end + total)
        self._owner[pool] = np.repeat(rows, sizes)
        self._nodes[pool] = np.concatenate([each.nodes for each in held])
        self._use[pool] = np.concatenate([each.use for each in held])
        self._pool_end += total

    def _reserve_pool(self, extra: int) -> None:
        capacity = len(self._owner)
        if self._pool_end + extra > capacity:
            more = max(capacity, 2 * (self._pool_end + extra - capacity))
            self._owner, self._nodes = grown(self._owner, more), grown(self._nodes, more)
            self._use = grown(self._use, more)

    def _pack(self, take: NDArray[np.intp]) -> None:
        pool = self._held()
        n, m = len(take), len(pool)
        self._owner[:m] = np.repeat(np.arange(n), self._numbers[self._number["size"], take])
        self._nodes[:m] = self._nodes[pool]
        self._use[:m] = self._use[pool]
        self._pool_end = m
        super()._pack(take)

    def _held(self) -> NDArray[np.intp]:
        """The entries of the pool that belong to present jobs."""
        return np.flatnonzero(self._alive[self._owner[: self._pool_end]])

    def table(self) -> RunningTable:
        columns, own = self._handed_out()
        pool = self._held()
        indptr = np.zeros(len(own["size"]) + 1, dtype=np.int64)
        own["size"].cumsum(out=indptr[1:])
        held: dict[str, NDArray[Any]] = {
            "indptr": indptr,
            "nodes": self._nodes.take(pool),
            "use": self._use.take(pool, axis=0),
        }
        return RunningTable.of_columns({**columns, **held})


def beside_completing(running: RunningTable, capacity: NDArray[np.int64]) -> RunningTable:
    """The table in which completing jobs count with the CPUs that running jobs leave on each node.

    It is the same table if no node has more CPUs in use than it has.

    Args:
        running: jobs that are completing have an `end_s` of 0.
        capacity: (n_nodes, R) of the nodes.
    """
    completing = (running.end_s == 0).repeat(np.diff(running.indptr))
    if not completing.any():
        return running
    held, cpus = np.zeros(len(capacity), dtype=np.int64), running.use[:, CPUS]
    np.add.at(held, running.nodes, cpus)
    over = completing & (held > capacity[:, CPUS])[running.nodes]
    if not over.any():
        return running
    excess, use = held - capacity[:, CPUS], running.use.copy()
    for entry in over.nonzero()[0].tolist():
        node = int(running.nodes[entry])
        less = min(int(use[entry, CPUS]), max(int(excess[node]), 0))
        use[entry, CPUS] -= less
        excess[node] -= less
    return replace(running, use=use)
