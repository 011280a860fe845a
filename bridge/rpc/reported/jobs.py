# SPDX-License-Identifier: Apache-2.0
"""The pending and running jobs a controller has reported, as columns that deltas change in place.

Rules
    1. A job keeps its row until it leaves; new jobs are appended. So rows stand in the order in
       which the controller reported them, whatever happened in between.
    2. Rows of jobs that left are holes; when half the rows are holes the columns are packed.
    3. A table that is handed out is a copy: later deltas do not reach it.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import Hold, JobTable, RunningTable
from bridge.rpc.reported.decode_request import Lowered

_INTS: Final = (
    "priority", "submit_s", "eligible_s", "begin_s", "time_limit_s", "hold", "min_nodes",
    "max_nodes", "tasks", "max_tasks_per_node", "exclusive", "width_rule", "reservation",
    "array_tasks", "array_startable", "version", "serial", "own_hold", "deadline_s",
    "least_time_s", "fixed", "switches", "switches_wait_s", "controller_chooses",
    "no_place",
)  # fmt: skip
_OBJECTS: Final = (
    "id", "name", "user", "account", "hold_text", "partitions", "features", "required",
    "excluded", "chunks", "own_text", "request",
)  # fmt: skip
_HELD_OBJECTS: Final = ("id", "name", "user", "account", "raw")
_AT: Final = {name: at for at, name in enumerate(_INTS)}
_LOWERED: Final = (
    "hold", "min_nodes", "max_nodes", "tasks", "max_tasks_per_node", "exclusive", "width_rule",
    "reservation", "fixed", "switches", "switches_wait_s", "controller_chooses",
    "no_place",
)  # fmt: skip
_LOWERED_AT: Final = np.array([_AT[name] for name in _LOWERED])
_OVERRULED: Final = frozenset((Hold.NONE, Hold.BEGIN_TIME, Hold.RESERVATION))
"""Holds under which a job would be planned; a request that makes no sense overrules them."""

_SPARE = 1024


class PendingJobs:
    """Pending jobs by row; see `bridge.model.job.JobTable` for the columns."""

    def __init__(self, n_resources: int, n_licences: int) -> None:
        self._row: dict[str, int] = {}
        self._end = 0
        self._serial = 0
        self._alive = np.zeros(_SPARE, dtype=bool)
        self._ints = np.zeros((len(_INTS), _SPARE), dtype=np.int64)
        self._objects = [np.empty(_SPARE, dtype=object) for _ in _OBJECTS]
        self._widths = (n_resources, n_resources, n_licences)
        self._vectors = [np.zeros((_SPARE, width), dtype=np.int64) for width in self._widths]

    def __len__(self) -> int:
        return len(self._row)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._row

    def put(
        self,
        scalars: Sequence[tuple[int, ...]],
        words: Sequence[tuple[str, ...]],
        requests: Sequence[bytes],
        lowered: Sequence[Lowered],
    ) -> None:
        """Adds or replaces jobs, all of different ids.

        Args:
            scalars: for each job (version, priority, submit_s, eligible_s, begin_s, time_limit_s,
                hold, array_tasks, array_startable, deadline_s, least_time_s).
            words: for each job (id, name, user, account, hold_text).
            requests: what was lowered, as sent.
            lowered: what became of it.
        """
        if not scalars:
            return
        self._reserve(len(scalars))
        rows = np.empty(len(scalars), dtype=np.int64)
        table: list[tuple[int, ...]] = []
        (
            ids, names, users, accounts, hold_texts, parts, features, required, excluded, chunks,
            own, raw,
        ) = self._objects  # fmt: skip
        for at, (
            (
                version, priority, submit_s, eligible_s, begin_s, limit_s, hold, tasks, startable,
                deadline_s, least_s,
            ),
            (job_id, name, user, account, text),
            low,
        ) in enumerate(zip(scalars, words, lowered, strict=True)):  # fmt: skip
            row = self._row.get(job_id)
            if row is None:
                row = self._row[job_id] = self._end
                self._end += 1
                self._serial += 1
                serial = self._serial
            else:
                serial = int(self._ints[_AT["serial"], row])
            rows[at] = row
            bad = low.problem != "" and hold in _OVERRULED
            table.append(
                (
                    priority, submit_s, eligible_s, begin_s, limit_s,
                    low.problem_hold if bad else hold, low.min_nodes, low.max_nodes, low.tasks,
                    low.max_tasks_per_node, low.exclusive, low.width_rule, low.reservation,
                    tasks, startable, version, serial, hold, deadline_s, least_s, low.fixed,
                    low.switches, low.switches_wait_s, low.controller_chooses, low.no_place,
                )
            )  # fmt: skip
            ids[row], names[row], users[row], accounts[row] = job_id, name, user, account
            hold_texts[row] = low.problem if bad else text
            parts[row], features[row] = low.partitions, low.features
            required[row], excluded[row] = low.required, low.excluded
            chunks[row], own[row], raw[row] = low.chunks, text, requests[at]
        self._alive[rows] = True
        self._ints[:, rows] = np.array(table, dtype=np.int64).T
        self._put_vectors(rows, lowered)

    def _put_vectors(self, rows: NDArray[np.int64], lowered: Sequence[Lowered]) -> None:
        per_node, per_task, licences = self._vectors
        per_node[rows] = np.array([low.per_node for low in lowered], dtype=np.int64)
        per_task[rows] = np.array([low.per_task for low in lowered], dtype=np.int64)
        if licences.shape[1]:
            licences[rows] = np.array([low.licences for low in lowered], dtype=np.int64)

    def remove(self, job_id: str) -> bool:
        """Takes a job out; False if it was not there."""
        row = self._row.pop(job_id, None)
        if row is None:
            return False
        self._alive[row] = False
        for column in self._objects:
            column[row] = None
        return True

    def requests(self) -> list[bytes]:
        """What the jobs ask for, as sent, in the order of the table."""
        return list(self._objects[_OBJECTS.index("request")][self._take()])

    def lower_again(self, lowered: Sequence[Lowered], n_resources: int, n_licences: int) -> None:
        """Replaces what follows from the requests, after a change of nodes or partitions.

        Args:
            lowered: in the order of `requests()`.
            n_resources: columns of resource vectors from now on.
            n_licences: columns of licence vectors from now on.
        """
        self._widths = (n_resources, n_resources, n_licences)
        capacity = len(self._alive)
        self._vectors = [np.zeros((capacity, width), dtype=np.int64) for width in self._widths]
        if not lowered:
            return
        rows = np.flatnonzero(self._alive[: self._end])
        own_hold = self._ints[_AT["own_hold"], rows].tolist()
        texts, parts, features, required, excluded, chunks, own = (
            self._objects[_OBJECTS.index(name)]
            for name in (
                "hold_text", "partitions", "features", "required", "excluded", "chunks", "own_text",
            )
        )  # fmt: skip
        table = []
        for row, low, hold in zip(rows.tolist(), lowered, own_hold, strict=True):
            bad = low.problem != "" and hold in _OVERRULED
            table.append(
                (
                    low.problem_hold if bad else hold, low.min_nodes, low.max_nodes, low.tasks,
                    low.max_tasks_per_node, low.exclusive, low.width_rule, low.reservation,
                    low.fixed, low.switches, low.switches_wait_s, low.controller_chooses,
                    low.no_place,
                )
            )  # fmt: skip
            texts[row] = low.problem if bad else own[row]
            parts[row], features[row] = low.partitions, low.features
            required[row], excluded[row] = low.required, low.excluded
            chunks[row] = low.chunks
        self._ints[_LOWERED_AT[:, None], rows[None, :]] = np.array(table, dtype=np.int64).T
        self._put_vectors(rows, lowered)

    def rows_of(self, job_ids: Iterable[str], serials: NDArray[np.int64]) -> dict[str, int]:
        """Finds jobs in a table that was handed out, by the serial numbers of its rows."""
        found = {}
        for job_id in job_ids:
            row = self._row.get(job_id)
            if row is not None:
                found[job_id] = int(np.searchsorted(serials, self._ints[_AT["serial"], row]))
        return found

    def _take(self) -> NDArray[np.intp] | slice:
        """The rows that are alive; a slice where there are no holes."""
        if len(self._row) == self._end:
            return slice(0, self._end)
        return np.flatnonzero(self._alive[: self._end])

    def _reserve(self, extra: int) -> None:
        """Packs the columns if half of them are holes, and makes room for more rows."""
        if self._end - len(self._row) > len(self._row) + _SPARE:
            take = np.flatnonzero(self._alive[: self._end])
            n = len(take)
            self._ints[:, :n] = self._ints[:, take]
            for column in self._objects:
                column[:n] = column[take]
                column[n : self._end] = None
            for vector in self._vectors:
                vector[:n] = vector[take]
            self._alive[:n], self._alive[n : self._end] = True, False
            self._end = n
            ids = self._objects[_OBJECTS.index("id")][:n]
            self._row = {job_id: row for row, job_id in enumerate(ids)}
        capacity = len(self._alive)
        if self._end + extra > capacity:
            more = max(capacity, self._end + extra - capacity + _SPARE)
            self._alive = np.concatenate((self._alive, np.zeros(more, dtype=bool)))
            self._ints = np.concatenate(
                (self._ints, np.zeros((len(_INTS), more), dtype=np.int64)), axis=1
            )
            self._objects = [
                np.concatenate((column, np.empty(more, dtype=object))) for column in self._objects
            ]
            self._vectors = [
                np.concatenate((vector, np.zeros((more, vector.shape[1]), dtype=np.int64)))
                for vector in self._vectors
            ]

    def table(self) -> tuple[JobTable, NDArray[np.int64]]:
        """Returns the jobs as columns, and for each the ascending serial number of its row."""
        take = self._take()
        if isinstance(take, slice):
            ints = self._ints[:, take].copy()
            objects = [column[take].copy() for column in self._objects[:-2]]
            per_node, per_task, licences = (vector[take].copy() for vector in self._vectors)
        else:
            ints = self._ints.take(take, axis=1)
            objects = [column.take(take) for column in self._objects[:-2]]
            per_node, per_task, licences = (vector.take(take, axis=0) for vector in self._vectors)
        column = dict(zip(_INTS, ints, strict=True))
        text = dict(zip(_OBJECTS, objects, strict=False))
        return (
            JobTable(
                id=text["id"],
                version=column["version"].view(np.uint64),
                name=text["name"],
                user=text["user"],
                account=text["account"],
                priority=column["priority"],
                submit_s=column["submit_s"],
                eligible_s=column["eligible_s"],
                begin_s=column["begin_s"],
                time_limit_s=column["time_limit_s"],
                hold=column["hold"].astype(np.int8),
                hold_text=text["hold_text"],
                partitions=text["partitions"],
                min_nodes=column["min_nodes"],
                max_nodes=column["max_nodes"],
                per_node=per_node,
                per_task=per_task,
                tasks=column["tasks"],
                max_tasks_per_node=column["max_tasks_per_node"],
                exclusive=column["exclusive"].astype(bool),
                width_rule=column["width_rule"].astype(np.int8),
                features=text["features"],
                required=text["required"],
                excluded=text["excluded"],
                licences=licences,
                reservation=column["reservation"],
                array_tasks=column["array_tasks"],
                array_startable=column["array_startable"],
                chunks=text["chunks"],
                deadline_s=column["deadline_s"],
                least_time_s=column["least_time_s"],
                fixed=column["fixed"].astype(bool),
                switches=column["switches"].astype(np.int32),
                switches_wait_s=column["switches_wait_s"],
                controller_chooses=column["controller_chooses"].astype(bool),
                no_place=column["no_place"].astype(bool),
            ),
            column["serial"],
        )


class RunningJobs:
    """Jobs that hold nodes, by row; their nodes lie in one pool, job after job."""

    def __init__(self, n_resources: int, n_licences: int) -> None:
        self._row: dict[str, int] = {}
        self._end = 0
        self._pool_end = 0
        self._alive = np.zeros(_SPARE, dtype=bool)
        self._ints = np.zeros((5, _SPARE), dtype=np.int64)  # start, end, partition, exclusive, size
        self._objects = [np.empty(_SPARE, dtype=object) for _ in _HELD_OBJECTS]
        self._licences = np.zeros((_SPARE, n_licences), dtype=np.int64)
        self._owner = np.zeros(_SPARE, dtype=np.int64)
        self._nodes = np.zeros(_SPARE, dtype=np.int32)
        self._use = np.zeros((_SPARE, n_resources), dtype=np.int64)

    def __len__(self) -> int:
        return len(self._row)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._row

    def raw(self, job_id: str) -> bytes:
        """The job's message as sent."""
        found: bytes = self._objects[-1][self._row[job_id]]
        return found

    def messages(self) -> list[bytes]:
        """All jobs' messages as sent, in the order of the table."""
        return list(self._objects[-1][: self._end][self._alive[: self._end]])

    def put(
        self,
        scalars: Sequence[tuple[int, int, int, bool]],
        words: Sequence[tuple[str, str, str, str]],
        raw: Sequence[bytes],
        licences: Sequence[tuple[int, ...]],
        held: Sequence[tuple[NDArray[np.int32], NDArray[np.int64]]],
    ) -> None:
        """Adds or replaces jobs, all of different ids.

        Args:
            scalars: for each job (start_s, end_s, partition, exclusive).
            words: for each job (id, name, user, account).
            raw: the messages as sent.
            licences: (L,) for each job.
            held: for each job its nodes (n,) and what it holds there (n, R).
        """
        if not scalars:
            return
        for job_id, *_ in words:
            self.remove(job_id)
        sizes = [len(nodes) for nodes, _ in held]
        total = sum(sizes)
        self._reserve(len(scalars), total)
        first = self._end
        rows = slice(first, first + len(scalars))
        self._ints[:4, rows] = np.array(scalars, dtype=np.int64).T
        self._ints[4, rows] = sizes
        ids, names, users, accounts, messages = self._objects
        for row, (job_id, name, user, account), message in zip(
            range(first, first + len(scalars)), words, raw, strict=True
        ):
            self._row[job_id] = row
            ids[row], names[row], users[row], messages[row] = job_id, name, user, message
            accounts[row] = account
        if self._licences.shape[1]:
            self._licences[rows] = np.array(licences, dtype=np.int64)
        self._alive[rows] = True
        self._end += len(scalars)
        pool = slice(self._pool_end, self._pool_end + total)
        self._owner[pool] = np.repeat(np.arange(first, self._end), sizes)
        self._nodes[pool] = np.concatenate([nodes for nodes, _ in held])
        self._use[pool] = np.concatenate([use for _, use in held])
        self._pool_end += total

    def remove(self, job_id: str) -> bool:
        """Takes a job out; False if it was not there."""
        row = self._row.pop(job_id, None)
        if row is None:
            return False
        self._alive[row] = False
        for column in self._objects:
            column[row] = None
        return True

    def _reserve(self, extra: int, extra_nodes: int) -> None:
        if self._end - len(self._row) > len(self._row) + _SPARE:
            self._pack()
        capacity = len(self._alive)
        if self._end + extra > capacity:
            more = max(capacity, self._end + extra - capacity + _SPARE)
            self._alive = np.concatenate((self._alive, np.zeros(more, dtype=bool)))
            self._ints = np.concatenate((self._ints, np.zeros((5, more), dtype=np.int64)), axis=1)
            self._objects = [
                np.concatenate((column, np.empty(more, dtype=object))) for column in self._objects
            ]
            self._licences = _grown(self._licences, more)
        capacity = len(self._owner)
        if self._pool_end + extra_nodes > capacity:
            more = max(capacity, self._pool_end + extra_nodes - capacity + _SPARE)
            self._owner = np.concatenate((self._owner, np.zeros(more, dtype=np.int64)))
            self._nodes = np.concatenate((self._nodes, np.zeros(more, dtype=np.int32)))
            self._use = _grown(self._use, more)

    def _pack(self) -> None:
        take = np.flatnonzero(self._alive[: self._end])
        pool = np.flatnonzero(self._alive[self._owner[: self._pool_end]])
        n, m = len(take), len(pool)
        self._owner[:m] = np.repeat(np.arange(n), self._ints[4, take])
        self._nodes[:m] = self._nodes[pool]
        self._use[:m] = self._use[pool]
        self._ints[:, :n] = self._ints[:, take]
        self._licences[:n] = self._licences[take]
        for column in self._objects:
            column[:n] = column[take]
            column[n : self._end] = None
        self._alive[:n], self._alive[n : self._end] = True, False
        self._end, self._pool_end = n, m
        self._row = {job_id: row for row, job_id in enumerate(self._objects[0][:n])}

    def table(self) -> RunningTable:
        """Returns the jobs as columns."""
        take = np.flatnonzero(self._alive[: self._end])
        pool = np.flatnonzero(self._alive[self._owner[: self._pool_end]])
        start_s, end_s, partition, exclusive, size = self._ints.take(take, axis=1)
        return RunningTable(
            id=self._objects[0].take(take),
            name=self._objects[1].take(take),
            user=self._objects[2].take(take),
            start_s=start_s,
            end_s=end_s,
            partition=partition,
            exclusive=exclusive.astype(bool),
            licences=self._licences.take(take, axis=0),
            indptr=np.concatenate(([0], np.cumsum(size))).astype(np.int64),
            nodes=self._nodes.take(pool),
            use=self._use.take(pool, axis=0),
            account=self._objects[3].take(take),
        )


def _grown(matrix: NDArray[np.int64], more: int) -> NDArray[np.int64]:
    return np.concatenate((matrix, np.zeros((more, matrix.shape[1]), dtype=np.int64)))
