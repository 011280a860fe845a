# SPDX-License-Identifier: Apache-2.0
"""What a user could change about a waiting job, as rows of a queue and as submit options.

Terms
    size        the part of a request that can be reduced: its nodes, its tasks, or the chunks of
                its most frequent kind.
    variant     a row with the request of the job except for one change.

Rules
    1. A job without tasks can have fewer nodes, as its width rule allows, and never fewer than it
       names. One with tasks can have fewer tasks, but at least one for each of its minimum nodes.
    2. Chunks of all kinds are reduced in proportion, to at least one of each kind.
    3. Other partitions are those that are up and that the job does not name.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from bridge.dialect import Dialect, RequestChange, dialect_of
from bridge.errors import RequestError
from bridge.model.job import JobTable, WidthRule
from bridge.model.node import CPUS, MEMORY_MIB
from bridge.model.resources import ChunkRequest, LoweredChunks
from bridge.model.snapshot import Snapshot
from bridge.planning.requests.chunk_groups import chunk_columns
from bridge.planning.site_rules.freepools import Closure
from bridge.units import format_duration

MAX_SIZES = 1024
"""Maximum number of sizes to try; of more, evenly spaced ones are tried."""
MAX_CHUNK_SIZES = 128
"""The same for chunks, which take longer to generate."""
MAX_PARTITIONS = 64
"""Maximum number of other partitions to try."""
SHORTEST_S = 1
"""The time limit of rows whose limit is searched for: every partition accepts it."""


class SizeKind(Enum):
    NODES = "nodes"
    TASKS = "tasks"
    CHUNKS = "chunks"


@dataclass(frozen=True, slots=True)
class JobChange:
    """A change of a job, and the resulting start.

    Attributes:
        start_s: with all other placements unchanged.
        time_limit_s: the new one; 0: unchanged.
        size: the new one; 0: unchanged.
        size_kind: unit of `size`.
        partition: index into `Snapshot.partitions`; -1: unchanged.
        text: for users, without the start.
        free_pools: that would have to give access; empty: no pool blocks it.
    """

    start_s: int
    time_limit_s: int
    size: int
    size_kind: SizeKind | None
    partition: int
    options: str
    text: str
    free_pools: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sizes:
    """The sizes below a job's own.

    Attributes:
        values: (n,) int64, ascending.
        columns: (n,) entries of `JobTable` that change with the size.
    """

    kind: SizeKind
    own: int
    values: NDArray[np.int64]
    columns: Mapping[str, NDArray[np.int64] | list[object]]


class Variants:
    """A job's variants, appended to a snapshot's queue.

    Each occurs twice: with the job's own time limit, and with `SHORTEST_S`.

    Attributes:
        partitions: other partitions.
    """

    def __init__(self, snapshot: Snapshot, row: int) -> None:
        self.row = row
        named = snapshot.jobs.partitions[row]
        self.partitions = [
            at for at, part in enumerate(snapshot.partitions) if part.up and at not in named
        ][:MAX_PARTITIONS]
        self.sizes = _sizes(snapshot, row)
        self._first = len(snapshot.jobs)
        self._first_size = self._first + 1 + len(self.partitions)
        self._count = 1 + len(self.partitions) + len(self.sizes.values)
        self.snapshot = dataclasses.replace(snapshot, jobs=self._table(snapshot.jobs))

    def plain(self, *, short: bool = False) -> int:
        """The row of the unchanged job."""
        return self._first + self._count * short

    def in_partition(self, which: int, *, short: bool = False) -> int:
        """The row of the job in one of `partitions`."""
        return self._first + 1 + which + self._count * short

    def of_size(self, which: int, *, short: bool = False) -> int:
        """The row of the job with one of the sizes."""
        return self._first_size + which + self._count * short

    def _table(self, jobs: JobTable) -> JobTable:
        more = np.repeat(self.row, 2 * self._count)
        table = jobs.rows(np.concatenate((np.arange(len(jobs)), more)))
        for short in (False, True):
            for which, partition in enumerate(self.partitions):
                table.partitions[self.in_partition(which, short=short)] = (partition,)
            begin = self.of_size(0, short=short)
            for name, values in self.sizes.columns.items():
                if isinstance(values, np.ndarray):
                    getattr(table, name)[begin : begin + len(values)] = values
                else:
                    for at, value in enumerate(values):
                        getattr(table, name)[begin + at] = value
        table.time_limit_s[self.plain(short=True) :] = SHORTEST_S
        return table


def _sizes(snapshot: Snapshot, row: int) -> Sizes:
    jobs = snapshot.jobs
    requested = jobs.chunks[row]
    if requested is not None:
        generic = frozenset(snapshot.resources[MEMORY_MIB + 1 :])
        return _fewer_chunks(requested, generic, dialect_of(snapshot))
    named = len(jobs.required[row])
    minimum, maximum, tasks = (
        int(column[row]) for column in (jobs.min_nodes, jobs.max_nodes, jobs.tasks)
    )
    if tasks:
        values = _spread(max(minimum, named, 1), tasks, MAX_SIZES)
        columns = {"tasks": values, "max_nodes": np.minimum(values, maximum)}
        return Sizes(SizeKind.TASKS, tasks, values, columns)
    rule = WidthRule(int(jobs.width_rule[row]))
    values = _spread(max(named, 1), minimum, MAX_SIZES)
    if rule:
        allowed = [n for n in range(max(named, 1), minimum) if rule.allows(n)]
        values = np.array(allowed, dtype=np.int64)[_spread(0, len(allowed), MAX_SIZES)]
    columns = {"min_nodes": values}
    if maximum == minimum:
        columns["max_nodes"] = values
    return Sizes(SizeKind.NODES, minimum, values, columns)


def _fewer_chunks(requested: LoweredChunks, generic: frozenset[str], dialect: Dialect) -> Sizes:
    own = max(kind.count for kind in requested.request.kinds)
    sizes = _spread(1, own, MAX_CHUNK_SIZES).tolist()
    possible = {
        size: fewer
        for size in sizes
        for fewer in [fewer_chunks(requested, size)]
        if _can_hold(dialect, fewer.request, generic)
    }
    values, fewer = np.array(list(possible), dtype=np.int64), list(possible.values())
    columns: dict[str, list[object]] = {"chunks": list(fewer)}
    of_chunks = [vars(chunk_columns(each)) for each in fewer]
    for name in of_chunks[0] if of_chunks else ():
        columns[name] = [each[name] for each in of_chunks]
    return Sizes(SizeKind.CHUNKS, own, values, columns)


def fewer_chunks(requested: LoweredChunks, size: int) -> LoweredChunks:
    """A request with `size` chunks of the most frequent kind, the others in proportion."""
    own = max(kind.count for kind in requested.request.kinds)
    kinds = tuple(
        dataclasses.replace(kind, count=max(kind.count * size // own, 1))
        for kind in requested.request.kinds
    )
    return dataclasses.replace(
        requested, request=dataclasses.replace(requested.request, chunks=kinds)
    )


def _can_hold(dialect: Dialect, request: ChunkRequest, generic: frozenset[str]) -> bool:
    try:
        dialect.controller_request(request, generic)
    except RequestError:
        return False
    return True


def _spread(first: int, end: int, maximum: int) -> NDArray[np.int64]:
    """At most this many of the numbers from `first` up to, not including, `end`, ascending.

    The largest and (nearly) the smallest are among them. The others are never generated: a job may
    request a billion tasks.
    """
    step = max(-(-(end - first) // maximum), 1)
    return np.arange(end - 1, first - 1, -step, dtype=np.int64)[::-1].copy()


# ---------------------------------------------------------------------- words


def describe(
    snapshot: Snapshot,
    row: int,
    start_s: int,
    *,
    time_limit_s: int = 0,
    before_s: int = 0,
    sizes: Sizes | None = None,
    size: int = 0,
    partition: int = -1,
) -> JobChange:
    """Describes a change of a job.

    Args:
        row: the row of `snapshot.jobs`.
        time_limit_s: new; 0: unchanged.
        sizes: with `size`.
        size: new; 0: unchanged.
        partition: new; -1: unchanged.
    """
    dialect, words = dialect_of(snapshot), []
    requested = RequestChange(time_limit_s=time_limit_s)
    if partition >= 0:
        requested = dataclasses.replace(requested, partition=snapshot.partitions[partition].name)
        words.append(f"in {dialect.words.partition} {requested.partition}, if you may use it")
    if time_limit_s:
        words.append(
            f"with a {dialect.words.time_limit} of {format_duration(time_limit_s)} "
            f"in place of {format_duration(before_s)}"
        )
    kind = None
    if size and sizes is not None:
        kind = sizes.kind
        requested, text = _smaller(requested, snapshot, row, sizes, size)
        words.append(text)
    options = dialect.submit_options(requested)
    return JobChange(start_s, time_limit_s, size, kind, partition, options, " and ".join(words))


def let_in(start_s: int, closures: Sequence[Closure]) -> JobChange:
    """Describes access to FreePools."""
    names = tuple(closure.name for closure in closures)
    words = [f"{closure.name} (access: {closure.access or 'none'})" for closure in closures]
    text = f"with access to FreePool{'s' if len(names) > 1 else ''} {' and '.join(words)}"
    return JobChange(start_s, 0, 0, None, -1, "", text, names)


def _smaller(
    requested: RequestChange, snapshot: Snapshot, row: int, sizes: Sizes, size: int
) -> tuple[RequestChange, str]:
    """Adds a smaller size to a change, and describes it."""
    jobs = snapshot.jobs
    if sizes.kind is SizeKind.CHUNKS:
        request = fewer_chunks(jobs.chunks[row], size).request
        return dataclasses.replace(requested, chunks=request), _fewer(size, sizes.own, "chunk")
    if sizes.kind is SizeKind.TASKS:
        cpus = int(jobs.per_task[row][CPUS])
        if cpus <= 1:
            return dataclasses.replace(requested, tasks=size), _fewer(size, sizes.own, "task")
        # One unit may be several tasks that share cores; the number of CPUs is correct either way.
        return (
            dataclasses.replace(requested, tasks=size, cpus=size * cpus),
            f"with tasks for {size * cpus} CPUs in place of {sizes.own * cpus}",
        )
    maximum, rule = int(jobs.max_nodes[row]), bool(jobs.width_rule[row])
    maximum = maximum if maximum > sizes.own or (rule and maximum > size) else size
    changed = dataclasses.replace(requested, nodes=(size, maximum), malleable=rule)
    return changed, _fewer(
        size, sizes.own, dialect_of(snapshot).words.node
    ) + " and the tasks of as many"


def _fewer(size: int, own: int, what: str) -> str:
    return f"with {size} {what}{'s' if size != 1 else ''} in place of {own}"
