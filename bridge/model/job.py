# SPDX-License-Identifier: Apache-2.0
"""Jobs as columns: pending with their requests, running with their allocations, and ended ones.

A request is lowered to two resource vectors. `per_node` is needed once on each node, `per_task`
once for each task there. With `tasks` 0 a job needs only `per_node` on each of its nodes;
otherwise its nodes together must hold the tasks, at least one each.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from functools import lru_cache
from typing import Annotated, Any, Final

import numpy as np
from numpy.typing import NDArray

from bridge.model.job_columns import LEFT_OUT, Column, Source, Unit, columns, fill_left_out

MESSAGE, REQUEST, LOWERED = Source.MESSAGE, Source.REQUEST, Source.LOWERED
ALLOCATION, SERVICE = Source.ALLOCATION, Source.SERVICE


class Hold(IntEnum):
    """Why the controller itself would not start a job now; numbers as on the wire."""

    NONE = 0
    HELD = 1
    DEPENDENCY = 2
    BEGIN_TIME = 3
    LIMIT = 4
    ARRAY_LIMIT = 5
    PARTITION = 6
    RESERVATION = 7
    OTHER = 8
    REFUSED = 9
    BAD_REQUEST = 10


class WidthRule(IntEnum):
    """Which node counts a job can run on (`--node-constraints`).

    The rule is implemented here for Python, in `core/single_pass/widths.hpp` for kernels, in the
    plugin's `malleable.c`, and again in `core/judge/`, which shares no code with planners.
    `tests/shim/widths.cases` tests all of them.
    """

    ANY = 0
    POF2 = 1
    EVEN = 2
    ODD = 3
    CUBIC = 4

    def next_width(self, minimum: int) -> int:
        """The least number of nodes, of at least `minimum` and 1, that a job can run on."""
        minimum = max(minimum, 1)
        match self:
            case WidthRule.POF2:
                return 1 << (minimum - 1).bit_length()
            case WidthRule.EVEN:
                return minimum + minimum % 2
            case WidthRule.ODD:
                return minimum + 1 - minimum % 2
            case WidthRule.CUBIC:
                root: int = max(round(minimum ** (1 / 3)) - 1, 1)
                while root**3 < minimum:
                    root += 1
                return root**3
        return minimum

    def allows(self, nodes: int) -> bool:
        """Tells whether a job of this rule can run on that many nodes."""
        return self.next_width(nodes) == nodes


class Ending(IntEnum):
    """How a job ended that ran; numbers as on the wire."""

    UNKNOWN = 0
    COMPLETED = 1
    FAILED = 2
    TIMEOUT = 3
    CANCELLED = 4
    LOST = 5

    @property
    def by_itself(self) -> bool:
        """False if the machine or its administrators cut it short."""
        return self is not Ending.LOST


def _no_objects() -> NDArray[np.object_]:
    return np.empty(0, dtype=object)


def _no_ints() -> NDArray[np.int64]:
    return np.empty(0, dtype=np.int64)


Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
Codes = NDArray[np.int8]
Objects = NDArray[np.object_]


@dataclass(frozen=True, kw_only=True)
class JobTable:
    """Pending jobs, in ascending order of their ids.

    All columns have length n_jobs; those of amounts have shape (n_jobs, R) or (n_jobs, L). A column
    with the default `LEFT_OUT` may be left out. CONTRIBUTING.md describes how to add one.
    """

    id: Annotated[Objects, Column(MESSAGE, Unit.TEXT)]
    """What users type; one row for the unstarted tasks of an array."""
    version: Annotated[NDArray[np.uint64], Column(MESSAGE, Unit.VERSION)] = LEFT_OUT
    """Changes with the request."""
    name: Annotated[Objects, Column(MESSAGE, Unit.TEXT)] = LEFT_OUT
    user: Annotated[Objects, Column(MESSAGE, Unit.TEXT)] = LEFT_OUT
    account: Annotated[Objects, Column(MESSAGE, Unit.TEXT)] = LEFT_OUT
    priority: Annotated[Ints, Column(MESSAGE, Unit.NUMBER)]
    """The controller's; larger goes first."""
    submit_s: Annotated[Ints, Column(MESSAGE, Unit.INSTANT)]
    """0: unknown; so for the next two."""
    eligible_s: Annotated[Ints, Column(MESSAGE, Unit.INSTANT)]
    """When it became eligible."""
    begin_s: Annotated[Ints, Column(MESSAGE, Unit.INSTANT)] = LEFT_OUT
    """Earliest start; 0: no bound."""
    time_limit_s: Annotated[Ints, Column(MESSAGE, Unit.SECONDS)]
    """0: the partition's limit."""
    hold: Annotated[Codes, Column(MESSAGE, Unit.CODE)] = LEFT_OUT
    """`Hold`; a request that cannot be planned overrules the controller's."""
    hold_text: Annotated[Objects, Column(MESSAGE, Unit.TEXT)] = LEFT_OUT
    """The controller's text for it."""
    partitions: Annotated[Objects, Column(LOWERED, Unit.PARTITIONS)]
    """In the order in which the user named them."""
    min_nodes: Annotated[Ints, Column(LOWERED, Unit.COUNT)]
    """At least 1."""
    max_nodes: Annotated[Ints, Column(LOWERED, Unit.COUNT)]
    """At least `min_nodes`."""
    per_node: Annotated[Ints, Column(LOWERED, Unit.RESOURCES)]
    """Needed once on each node."""
    per_task: Annotated[Ints, Column(LOWERED, Unit.RESOURCES)]
    """Needed once for each task on a node."""
    tasks: Annotated[Ints, Column(LOWERED, Unit.COUNT)] = LEFT_OUT
    """0: one unit of `per_node` on each node."""
    max_tasks_per_node: Annotated[Ints, Column(LOWERED, Unit.COUNT)] = LEFT_OUT
    """0: no bound."""
    exclusive: Annotated[Flags, Column(LOWERED, Unit.FLAG)] = LEFT_OUT
    """Whole nodes."""
    width_rule: Annotated[Codes, Column(LOWERED, Unit.CODE)] = LEFT_OUT
    """`WidthRule`."""
    features: Annotated[Objects, Column(LOWERED, Unit.TEXT)] = LEFT_OUT
    """Feature expression (`bridge.planning.requests.features`); empty: no constraint."""
    required: Annotated[Objects, Column(LOWERED, Unit.NODES)] = LEFT_OUT
    """Nodes that must be used."""
    excluded: Annotated[Objects, Column(LOWERED, Unit.NODES)] = LEFT_OUT
    """Nodes that must not be used."""
    licences: Annotated[Ints, Column(LOWERED, Unit.LICENCES)]
    reservation: Annotated[Ints, Column(LOWERED, Unit.RESERVATION)] = LEFT_OUT
    array_tasks: Annotated[Ints, Column(MESSAGE, Unit.COUNT)] = LEFT_OUT
    """Unstarted tasks of this row; 0: not an array."""
    array_startable: Annotated[Ints, Column(MESSAGE, Unit.COUNT)] = LEFT_OUT
    """Tasks that may be started now under the array's own limit."""
    chunks: Annotated[Objects, Column(LOWERED, Unit.CHUNKS)] = LEFT_OUT
    """The chunks that a job requests; None: it does not. If they are of one kind, the other columns
    are equivalent."""
    deadline_s: Annotated[Ints, Column(MESSAGE, Unit.DEADLINE)] = LEFT_OUT
    """Must end by then; 0: no deadline."""
    min_time_s: Annotated[Ints, Column(MESSAGE, Unit.SECONDS)] = LEFT_OUT
    """The time limit to which it may be cut, to end before its deadline or to start earlier;
    0: it must not be cut."""
    fixed: Annotated[Flags, Column(REQUEST, Unit.FLAG, "fixed_start")] = LEFT_OUT
    """Starts at its begin time (`begin_s`; once that has passed, `eligible_s`), not later."""
    kill_limit_s: Annotated[Ints, Column(SERVICE, Unit.SECONDS)] = LEFT_OUT
    """Its kill limit, if `time_limit_s` is its predicted run time
    (`bridge.planning.prediction.apply_predictions`); 0: `time_limit_s`."""
    switches: Annotated[NDArray[np.int32], Column(REQUEST, Unit.COUNT, maximum=1 << 20)] = LEFT_OUT
    """Maximum number of leaf switches (`--switches`), while it waits for that; 0: any number."""
    switches_wait_s: Annotated[Ints, Column(REQUEST, Unit.SECONDS, maximum=1 << 32)] = LEFT_OUT
    """Maximum wait for `switches` after it became eligible."""
    controller_chooses: Annotated[Flags, Column(LOWERED, Unit.FLAG)] = LEFT_OUT
    """These columns lack parts of its request; the controller chooses its nodes at its start."""
    no_place: Annotated[Flags, Column(REQUEST, Unit.FLAG)] = LEFT_OUT
    """Starts now or is not planned: no later start is reserved for it."""
    min_start: Annotated[Ints, Column(LOWERED, Unit.COUNT)] = LEFT_OUT
    """The minimum number of nodes on which a moldable job may start."""
    max_start: Annotated[Ints, Column(LOWERED, Unit.COUNT)] = LEFT_OUT
    """The maximum; 0: it starts on the requested number (`bridge.model.decisions.start_widths`)."""
    min_power_w: Annotated[Ints, Column(LOWERED, Unit.WATTS)] = LEFT_OUT
    """Minimum draw on each node, as stated by its user; 0: not stated; so for the next."""
    max_power_w: Annotated[Ints, Column(LOWERED, Unit.WATTS)] = LEFT_OUT
    """Likewise the maximum."""
    learnt_min_power_w: Annotated[Ints, Column(SERVICE, Unit.WATTS)] = LEFT_OUT
    """Draw of earlier runs on each node, a low quantile; 0: nothing learnt; so for the next."""
    learnt_max_power_w: Annotated[Ints, Column(SERVICE, Unit.WATTS)] = LEFT_OUT
    """Likewise a high quantile."""
    coschedule: Annotated[Codes, Column(MESSAGE, Unit.CODE, maximum=4)] = LEFT_OUT
    """Whether its user lets it share nodes; 0: as the site says."""
    max_slowdown_permille: Annotated[Ints, Column(MESSAGE, Unit.COUNT)] = LEFT_OUT
    """Maximum slowdown by sharing, in thousandths; 0: the site's value."""
    rigid: Annotated[Flags, Column(MESSAGE, Unit.FLAG)] = LEFT_OUT
    """It states widths, but cannot be resized unless it holds whole nodes (`exclusive`)."""
    requeue: Annotated[Flags, Column(MESSAGE, Unit.FLAG)] = LEFT_OUT
    """It may be put back into the queue after it started."""
    share_of: Annotated[Objects, Column(MESSAGE, Unit.TEXT)] = LEFT_OUT
    """Fair share: the entity that the job counts for; empty: the controller computes none."""
    share_ppm: Annotated[Ints, Column(MESSAGE, Unit.COUNT)] = LEFT_OUT
    """The part of the machine that this entity is to have, in millionths."""
    share_usage: Annotated[Ints, Column(MESSAGE, Unit.NUMBER)] = LEFT_OUT
    """Its usage so far, in the controller's units."""
    share_cost: Annotated[Ints, Column(MESSAGE, Unit.NUMBER)] = LEFT_OUT
    """What the job would add to the usage."""

    def __post_init__(self) -> None:
        fill_left_out(self, COLUMNS, len(self.id))

    def __len__(self) -> int:
        return len(self.id)

    @classmethod
    def of_columns(cls, columns: Mapping[str, NDArray[Any]]) -> "JobTable":
        """The table of these columns; for tables by the thousand.

        Args:
            columns: all but those that may be left out.
        """
        table = cls.__new__(cls)
        if len(columns) < len(COLUMNS):
            table.__dict__.update(_jobs_left_out(len(columns["id"])))
        table.__dict__.update(columns)
        return table

    def with_columns(self, **columns: NDArray[Any]) -> "JobTable":
        """The table with other values in some columns."""
        return JobTable.of_columns({**vars(self), **columns})

    def rows(self, which: NDArray[np.intp] | NDArray[np.bool_] | slice) -> "JobTable":
        """The table of some rows; a row may be there several times."""
        return JobTable(**{column.name: getattr(self, column.name)[which] for column in COLUMNS})

    def followed_by(self, other: "JobTable") -> "JobTable":
        """The table of all rows of both."""
        return JobTable(
            **{
                column.name: np.concatenate(
                    (getattr(self, column.name), getattr(other, column.name))
                )
                for column in COLUMNS
            }
        )


COLUMNS: Final = columns(JobTable)
"""Of `JobTable`."""

_JOBS_LEFT_OUT: Final = tuple(
    each for each in COLUMNS if getattr(JobTable, each.name, None) is LEFT_OUT
)


@lru_cache(maxsize=512)
def _jobs_left_out(n_jobs: int) -> dict[str, NDArray[Any]]:
    """The columns of `JobTable` that may be left out, as they are then; not to be changed."""
    return {each.name: each.left_out(n_jobs) for each in _JOBS_LEFT_OUT}


@dataclass(frozen=True, kw_only=True)
class RunningTable:
    """Jobs that hold nodes: running, configuring, and completing (their remaining nodes).

    Attributes:
        indptr: (n_running + 1,); job i holds nodes[indptr[i]:indptr[i + 1]].
        nodes: (nnz,) node indexes.
        use: (nnz, R): what is held on each of them.
    """

    id: Annotated[Objects, Column(MESSAGE, Unit.TEXT)]
    name: Annotated[Objects, Column(MESSAGE, Unit.TEXT)] = LEFT_OUT
    user: Annotated[Objects, Column(MESSAGE, Unit.TEXT)] = LEFT_OUT
    start_s: Annotated[Ints, Column(ALLOCATION, Unit.INSTANT)]
    end_s: Annotated[Ints, Column(ALLOCATION, Unit.INSTANT)]
    """Expected end, start + time limit. May lie in the past: such a job is expected to end within
    the next second."""
    partition: Annotated[Ints, Column(ALLOCATION, Unit.PARTITION)] = LEFT_OUT
    exclusive: Annotated[Flags, Column(ALLOCATION, Unit.FLAG)] = LEFT_OUT
    """Holds its nodes whole."""
    licences: Annotated[Ints, Column(ALLOCATION, Unit.LICENCES)]
    indptr: Ints
    nodes: NDArray[np.int32]
    use: Ints
    use_elsewhere: Annotated[Ints, Column(ALLOCATION, Unit.RESOURCES)] = LEFT_OUT
    """What it holds in total on nodes that `Snapshot.nodes` does not have. It counts to limits."""
    nodes_elsewhere: Annotated[Ints, Column(ALLOCATION, Unit.COUNT)] = LEFT_OUT
    """The number of these nodes. They count to the bounds of power."""
    account: Annotated[Objects, Column(MESSAGE, Unit.TEXT)] = LEFT_OUT
    version: Annotated[NDArray[np.uint64], Column(MESSAGE, Unit.VERSION)] = LEFT_OUT
    """Changes with the request."""
    min_nodes: Annotated[Ints, Column(ALLOCATION, Unit.COUNT)] = LEFT_OUT
    """The minimum width of a malleable job."""
    max_nodes: Annotated[Ints, Column(ALLOCATION, Unit.COUNT)] = LEFT_OUT
    """The maximum; 0: the job keeps its nodes."""
    width_rule: Annotated[Codes, Column(ALLOCATION, Unit.CODE)] = LEFT_OUT
    """`WidthRule` of malleable jobs."""
    features: Annotated[Objects, Column(ALLOCATION, Unit.TEXT)] = LEFT_OUT
    """Constraint expression that nodes added to a malleable job must match; empty: none."""
    reservation: Annotated[Ints, Column(ALLOCATION, Unit.RESERVATION)] = LEFT_OUT
    """Of malleable jobs."""
    head: Annotated[Ints, Column(ALLOCATION, Unit.NODE)] = LEFT_OUT
    """The node that a malleable job keeps, as its batch script runs there; -1: its first one."""
    mtct: Annotated[NDArray[np.float64], Column(SERVICE, Unit.RATIO)] = LEFT_OUT
    """Time in MPI calls over computing time since the last change of width; -1: unknown."""
    adapting: Annotated[Flags, Column(ALLOCATION, Unit.FLAG)] = LEFT_OUT
    """It is changing its width; until that is done or cancelled it accepts no further decision."""
    keeps_nodes: Annotated[Flags, Column(ALLOCATION, Unit.FLAG)] = LEFT_OUT
    """Its user forbids resizes, although it is malleable."""
    requested_nodes: Annotated[Ints, Column(ALLOCATION, Unit.COUNT)] = LEFT_OUT
    """The number of nodes that a malleable job requested; 0: unknown."""
    number: Annotated[Ints, Column(ALLOCATION, Unit.NUMBER)] = LEFT_OUT
    """The job number of an array task on its nodes; 0: its id has it, or it is unknown."""
    resized_s: Annotated[Ints, Column(SERVICE, Unit.INSTANT)] = LEFT_OUT
    """When its last change of width began; 0: there was none, or unknown."""
    user_resizes: Annotated[Ints, Column(SERVICE, Unit.COUNT)] = LEFT_OUT
    """How often jobs of its user have been resized within the last hour; of malleable jobs."""
    releasing: Annotated[Flags, Column(SERVICE, Unit.FLAG)] = LEFT_OUT
    """Not a separate job, but nodes that the job of this id gives back by `end_s`."""
    min_power_w: Annotated[Ints, Column(ALLOCATION, Unit.WATTS)] = LEFT_OUT
    """Minimum draw on each node, as stated by its user; 0: not stated; so for the next."""
    max_power_w: Annotated[Ints, Column(ALLOCATION, Unit.WATTS)] = LEFT_OUT
    """Likewise the maximum."""
    learnt_min_power_w: Annotated[Ints, Column(SERVICE, Unit.WATTS)] = LEFT_OUT
    """Draw of earlier runs on each node, a low quantile; 0: nothing learnt; so for the next."""
    learnt_max_power_w: Annotated[Ints, Column(SERVICE, Unit.WATTS)] = LEFT_OUT
    """Likewise a high quantile."""
    measured_min_power_w: Annotated[Ints, Column(SERVICE, Unit.WATTS)] = LEFT_OUT
    """Draw on each node in the last minute, a low quantile; 0: not measured; so for the next."""
    measured_max_power_w: Annotated[Ints, Column(SERVICE, Unit.WATTS)] = LEFT_OUT
    """Likewise a high quantile."""
    power_source: Annotated[Objects, Column(SERVICE, Unit.TEXT)] = LEFT_OUT
    """The sensors of its nodes whose values these are; empty: it is not measured."""
    power_at_s: Annotated[Ints, Column(SERVICE, Unit.INSTANT)] = LEFT_OUT
    """When the oldest of them was measured; 0: unknown."""
    power_lost_s: Annotated[Ints, Column(SERVICE, Unit.INSTANT)] = LEFT_OUT
    """Since when the measurement of one of its nodes is lost; 0: none is."""
    coschedule: Annotated[Codes, Column(MESSAGE, Unit.CODE, maximum=4)] = LEFT_OUT
    """Whether its user lets it share nodes; 0: as the site says."""
    max_slowdown_permille: Annotated[Ints, Column(MESSAGE, Unit.COUNT)] = LEFT_OUT
    """Maximum slowdown by sharing, in thousandths; 0: the site's value."""
    rigid: Annotated[Flags, Column(MESSAGE, Unit.FLAG)] = LEFT_OUT
    """It states widths, but cannot be resized unless it holds whole nodes (`exclusive`)."""
    requeue: Annotated[Flags, Column(MESSAGE, Unit.FLAG)] = LEFT_OUT
    """It may be put back into the queue after it started."""
    host_id: Annotated[Objects, Column(MESSAGE, Unit.TEXT, "host_job_id")] = LEFT_OUT
    """The running job on whose CPUs it runs; empty: it has CPUs of its own."""
    hosted_s: Annotated[Ints, Column(MESSAGE, Unit.COUNT)] = LEFT_OUT
    """Time for which others ran on its CPUs since its start, s, without the present ones."""
    hosted_since_s: Annotated[Ints, Column(MESSAGE, Unit.INSTANT)] = LEFT_OUT
    """Since when it has the present ones; 0: it has none."""
    extended_s: Annotated[Ints, Column(MESSAGE, Unit.COUNT)] = LEFT_OUT
    """By how much its time limit was lengthened for these, s; contained in `end_s`."""
    extendable: Annotated[Flags, Column(MESSAGE, Unit.FLAG)] = LEFT_OUT
    """The controller can lengthen its time limit."""
    own_cpus: Annotated[Ints, Column(SERVICE, Unit.COUNT)] = LEFT_OUT
    """Of one with a `host_id`: the CPUs that it holds on each node once that job has ended."""
    cpu_s: Annotated[NDArray[np.float64], Column(SERVICE, Unit.RATIO)] = LEFT_OUT
    """CPU time since its start, on all nodes, s; -1: not measured."""
    busy_cpus: Annotated[NDArray[np.float64], Column(SERVICE, Unit.RATIO)] = LEFT_OUT
    """CPUs that it uses at present, on all nodes: a mean of seconds; -1: not measured."""
    peak_mib: Annotated[Ints, Column(SERVICE, Unit.COUNT)] = LEFT_OUT
    """Maximum memory that it has used on any of its nodes, MiB; 0: not measured."""
    progress: Annotated[NDArray[np.float64], Column(SERVICE, Unit.RATIO)] = LEFT_OUT
    """Share of its work that is done, as reported by the application, 0 to 1; -1: unknown."""
    memory_stall: Annotated[NDArray[np.float64], Column(SERVICE, Unit.RATIO)] = LEFT_OUT
    """Share of the last 10 s in which some of its processes waited for memory (PSI), on the node
    where it is largest, 0 to 1; 1 while its memory is swapped out; -1: not measured."""
    unused_nodes: Annotated[Objects, Column(SERVICE, Unit.NODES)] = LEFT_OUT
    """Nodes that it holds and has no process on at present, as far as that is known."""
    measured_s: Annotated[Ints, Column(SERVICE, Unit.INSTANT)] = LEFT_OUT
    """When `cpu_s` and the columns after it were measured; 0: they were not."""

    def __post_init__(self) -> None:
        # Columns of a file may have any shape until they are checked as a whole.
        width = self.use.shape[1] if self.use.ndim == 2 else 0
        fill_left_out(self, RUNNING_COLUMNS, len(self.id), width)

    def __len__(self) -> int:
        return len(self.id)

    @property
    def malleable(self) -> NDArray[np.bool_]:
        """(n_running,) the jobs that can change their width, or are changing it."""
        found: NDArray[np.bool_] = ((self.max_nodes > 0) | self.adapting) & ~self.releasing
        return found

    def head_of(self, job: int) -> int:
        """The node that a job keeps, whatever its width; -1: it holds none."""
        if self.head[job] >= 0:
            return int(self.head[job])
        first, end = int(self.indptr[job]), int(self.indptr[job + 1])
        return int(self.nodes[first]) if first < end else -1

    @classmethod
    def of_columns(cls, columns: Mapping[str, NDArray[Any]]) -> "RunningTable":
        """The table of these columns; for tables by the thousand.

        Args:
            columns: all but those that may be left out.
        """
        table = cls.__new__(cls)
        table.__dict__.update(_running_left_out(len(columns["id"]), columns["use"].shape[1]))
        table.__dict__.update(columns)
        return table

    def with_columns(self, **columns: NDArray[Any]) -> "RunningTable":
        """The table with other values in some columns; ratios are not checked."""
        return RunningTable.of_columns({**vars(self), **columns})


RUNNING_COLUMNS: Final = columns(RunningTable)
"""Of `RunningTable`, with one row for each job."""

_RUNNING_LEFT_OUT: Final = tuple(
    each for each in RUNNING_COLUMNS if getattr(RunningTable, each.name, None) is LEFT_OUT
)


@lru_cache(maxsize=512)
def _running_left_out(n_running: int, n_resources: int) -> dict[str, NDArray[Any]]:
    """The columns of `RunningTable` that may be left out, as they are then; not to be changed."""
    return {each.name: each.left_out(n_running, n_resources) for each in _RUNNING_LEFT_OUT}


def left_out_of(running: RunningTable) -> Mapping[str, NDArray[Any]]:
    """The columns that `RunningTable.of_columns` fills in if they are left out, of this length."""
    return _running_left_out(len(running), running.use.shape[1])


def rows_by_id(running: RunningTable) -> dict[str, int]:
    """Running jobs by their ids, without the rows of nodes that they are releasing."""
    releasing = running.releasing.tolist()
    return {job_id: row for row, job_id in enumerate(running.id.tolist()) if not releasing[row]}


def has_value(running: RunningTable, names: Iterable[str]) -> bool:
    """Whether any job has a value in one of these columns; of the same column again at once."""
    for name in names:
        column, usual = getattr(running, name), left_out_of(running)[name]
        if column is usual:
            continue
        result = next((result for known, result in _results if known is column), None)
        if result is None:
            result = bool((column != usual).any())
            _results[:] = [(column, result), *_results[:1]]
        if result:
            return True
    return False


_results: list[tuple[NDArray[Any], bool]] = []
"""The last two: one cycle asks many times for the same columns."""


@dataclass(frozen=True)
class EndedTable:
    """Jobs that ended since the last snapshot, of those that ran.

    An end may be lost if controller and service lost contact; none is reported twice. A run that
    was cut short and requeued does not count as an end.

    Attributes:
        id, name, user: (n_ended,) object (str).
        start_s, end_s: (n_ended,) int64 instants, end_s > start_s.
        time_limit_s: (n_ended,) int64; 0: unlimited or unknown.
        ending: (n_ended,) int8 `Ending`.
    """

    id: NDArray[np.object_] = field(default_factory=_no_objects)
    name: NDArray[np.object_] = field(default_factory=_no_objects)
    user: NDArray[np.object_] = field(default_factory=_no_objects)
    start_s: NDArray[np.int64] = field(default_factory=_no_ints)
    end_s: NDArray[np.int64] = field(default_factory=_no_ints)
    time_limit_s: NDArray[np.int64] = field(default_factory=_no_ints)
    ending: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, dtype=np.int8))

    def __len__(self) -> int:
        return len(self.id)


NONE_ENDED = EndedTable()
