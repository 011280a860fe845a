# SPDX-License-Identifier: Apache-2.0
"""Jobs, as columns: the pending with what they ask for, the running with what they hold, the ended.

A request is lowered to two resource vectors. `per_node` is needed once on each node, `per_task`
once for each task there. With `tasks` 0 a job needs only `per_node` on each of its nodes;
otherwise its nodes together must hold the tasks, at least one each.
"""

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields
from enum import IntEnum
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray


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
    """Which node counts a job can run on (`--node-constraints`)."""

    ANY = 0
    POF2 = 1
    EVEN = 2
    ODD = 3
    CUBIC = 4

    def allows(self, nodes: int) -> bool:
        """Tells whether a job of this rule can run on that many nodes."""
        if self is WidthRule.POF2:
            return nodes > 0 and nodes & (nodes - 1) == 0
        if self is WidthRule.CUBIC:
            root: int = round(nodes ** (1 / 3))
            return root * root * root == nodes
        if self is WidthRule.ANY:
            return True
        return nodes % 2 == (1 if self is WidthRule.ODD else 0)


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
        """False when the machine or its administrators cut it short, which says nothing of it."""
        return self is not Ending.LOST


def _no_objects() -> NDArray[np.object_]:
    return np.empty(0, dtype=object)


def _no_ints() -> NDArray[np.int64]:
    return np.empty(0, dtype=np.int64)


def _no_counts() -> NDArray[np.int32]:
    return np.empty(0, dtype=np.int32)


def _no_bools() -> NDArray[np.bool_]:
    return np.empty(0, dtype=np.bool_)


def _throughout(value: object, dtype: np.dtype[Any], count: int) -> NDArray[Any]:
    """A column of one value, read-only: all tables share them."""
    key = (value, dtype.char)
    found = _SHARED.get(key)
    if found is None or len(found) < count:
        found = np.full(max(2 * count, 64), value, dtype=dtype)
        found.setflags(write=False)
        _SHARED[key] = found
    return found[:count]


def _no_versions() -> NDArray[np.uint64]:
    return np.empty(0, dtype=np.uint64)


def _no_rules() -> NDArray[np.int8]:
    return np.empty(0, dtype=np.int8)


_SHARED: dict[tuple[object, str], NDArray[Any]] = {}

_RUNNING_DEFAULTS: Final[Mapping[str, object]] = {
    "account": "", "version": 0, "min_nodes": 0, "max_nodes": 0, "width_rule": 0, "features": "",
    "reservation": -1, "adapting": False, "releasing": False,
}  # fmt: skip
"""Columns of running jobs that may be left out, and what they hold then."""

_OPTIONAL = (
    "deadline_s", "least_time_s", "fixed", "kill_limit_s", "switches", "switches_wait_s",
    "controller_chooses", "no_place",
)  # fmt: skip
"""Columns that are 0 throughout where they are left out."""


@dataclass(frozen=True)
class JobTable:
    """Pending jobs, in ascending order of their ids.

    All columns have length n_jobs; R resources, L licences.

    Attributes:
        id: object (str): what users type; one row for the unstarted tasks of an array.
        version: uint64: changes with the request.
        name, user, account: object (str).
        priority: int64: the controller's; larger goes first.
        submit_s, eligible_s, begin_s: int64 instants; 0 unknown, or no bound.
        time_limit_s: int64; 0: whatever the partition allows.
        hold: int8 `Hold`; hold_text: object (str), the controller's words.
        partitions: object (tuple of int): indexes into `Snapshot.partitions`, as the user named
            them.
        min_nodes, max_nodes: int64; max_nodes >= min_nodes >= 1.
        per_node, per_task: (n_jobs, R) int64.
        tasks: int64; 0: one unit of `per_node` on each node.
        max_tasks_per_node: int64; 0: no bound.
        exclusive: bool: whole nodes.
        width_rule: int8 `WidthRule`.
        features: object (str): feature expression (`bridge.planning.requests.features`); empty:
            no constraint.
        required, excluded: object (tuple of int): node indexes that must, must not be used.
        licences: (n_jobs, L) int64.
        reservation: int64 index into `Snapshot.reservations`; -1: none.
        array_tasks: int64: unstarted tasks of this row; 0: not an array.
        array_startable: int64: tasks that may be started now under the array's own limit.
        chunks: object (`bridge.model.resources.LoweredChunks` or None): what a job asks for that
            asked in chunks. Where they are of one kind the other columns say the same. Left out:
            None throughout.
        deadline_s: int64: must end by then; 0: no deadline. Left out: 0 throughout.
        least_time_s: int64: what its time limit may be cut to where it would end after its
            deadline otherwise, or where it starts earlier for it; 0: it may not be cut. Left out: 0
            throughout.
        fixed: bool: starts at its begin time (`begin_s`; once that has passed, `eligible_s`), not
            later. Left out: False throughout.
        kill_limit_s: int64: what it is killed after, where `time_limit_s` is only what it is
            predicted to take (`bridge.planning.prediction.apply_predictions`); 0: `time_limit_s`.
            Left out: 0 throughout.
        switches: int32: on at most so many leaf switches (`--switches`), while it waits for that;
            0: on any number. Left out: 0 throughout.
        switches_wait_s: int64: how long after it became eligible it waits for `switches` at most.
            Left out: 0 throughout.
        controller_chooses: bool: it asks for more than these columns say; the controller chooses
            its nodes when it starts. Left out: False throughout.
        no_place: bool: starts now or is not planned: no later place is kept for it. Left out: False
            throughout.
    """

    id: NDArray[np.object_]
    version: NDArray[np.uint64]
    name: NDArray[np.object_]
    user: NDArray[np.object_]
    account: NDArray[np.object_]
    priority: NDArray[np.int64]
    submit_s: NDArray[np.int64]
    eligible_s: NDArray[np.int64]
    begin_s: NDArray[np.int64]
    time_limit_s: NDArray[np.int64]
    hold: NDArray[np.int8]
    hold_text: NDArray[np.object_]
    partitions: NDArray[np.object_]
    min_nodes: NDArray[np.int64]
    max_nodes: NDArray[np.int64]
    per_node: NDArray[np.int64]
    per_task: NDArray[np.int64]
    tasks: NDArray[np.int64]
    max_tasks_per_node: NDArray[np.int64]
    exclusive: NDArray[np.bool_]
    width_rule: NDArray[np.int8]
    features: NDArray[np.object_]
    required: NDArray[np.object_]
    excluded: NDArray[np.object_]
    licences: NDArray[np.int64]
    reservation: NDArray[np.int64]
    array_tasks: NDArray[np.int64]
    array_startable: NDArray[np.int64]
    chunks: NDArray[np.object_] = field(default_factory=_no_objects)
    deadline_s: NDArray[np.int64] = field(default_factory=_no_ints)
    least_time_s: NDArray[np.int64] = field(default_factory=_no_ints)
    fixed: NDArray[np.bool_] = field(default_factory=_no_bools)
    kill_limit_s: NDArray[np.int64] = field(default_factory=_no_ints)
    switches: NDArray[np.int32] = field(default_factory=_no_counts)
    switches_wait_s: NDArray[np.int64] = field(default_factory=_no_ints)
    controller_chooses: NDArray[np.bool_] = field(default_factory=_no_bools)
    no_place: NDArray[np.bool_] = field(default_factory=_no_bools)

    def __post_init__(self) -> None:
        n_jobs = len(self.id)
        if len(self.chunks) != n_jobs:
            object.__setattr__(self, "chunks", np.empty(n_jobs, dtype=object))
        for name in _OPTIONAL:
            column = getattr(self, name)
            if len(column) != n_jobs:
                object.__setattr__(self, name, _throughout(0, column.dtype, n_jobs))

    def __len__(self) -> int:
        return len(self.id)

    @classmethod
    def of_columns(cls, columns: Mapping[str, NDArray[Any]]) -> "JobTable":
        """The table of all these columns; for tables by the thousand: none may be left out."""
        table = cls.__new__(cls)
        table.__dict__.update(columns)
        return table


@dataclass(frozen=True)
class RunningTable:
    """Jobs that hold nodes: running, configuring, and completing (their remaining nodes).

    Attributes:
        id, name, user: (n_running,) object (str).
        start_s: (n_running,) int64.
        end_s: (n_running,) int64: expected end, start + time limit. May lie in the past: such a
            job is expected to end within the next second.
        partition: (n_running,) int64 index into `Snapshot.partitions`; -1 unknown.
        exclusive: (n_running,) bool: holds its nodes whole.
        licences: (n_running, L) int64.
        indptr: (n_running + 1,) int64; job i holds nodes[indptr[i]:indptr[i + 1]].
        nodes: (nnz,) int32 node indexes.
        use: (nnz, R) int64: what is held on each of them.
        account: (n_running,) object (str). Left out: empty throughout.
        version: (n_running,) uint64: changes with the request. Left out: 0 throughout.
        min_nodes, max_nodes: (n_running,) int64: the widths that a malleable job can run on;
            max_nodes 0: it keeps the nodes it has. Left out: 0 throughout.
        width_rule: (n_running,) int8 `WidthRule` of malleable jobs. Left out: ANY throughout.
        features: (n_running,) object (str): constraint expression that nodes added to a malleable
            job must match. Left out: empty throughout.
        reservation: (n_running,) int64 index into `Snapshot.reservations`, of malleable jobs; -1:
            none. Left out: -1 throughout.
        adapting: (n_running,) bool: it is changing its width; until that is done or given up it
            takes no further decision. Left out: False throughout.
        releasing: (n_running,) bool: no job of its own, but nodes that the job of this id gives
            back by `end_s`. Left out: False throughout.
    """

    id: NDArray[np.object_]
    name: NDArray[np.object_]
    user: NDArray[np.object_]
    start_s: NDArray[np.int64]
    end_s: NDArray[np.int64]
    partition: NDArray[np.int64]
    exclusive: NDArray[np.bool_]
    licences: NDArray[np.int64]
    indptr: NDArray[np.int64]
    nodes: NDArray[np.int32]
    use: NDArray[np.int64]
    account: NDArray[np.object_] = field(default_factory=_no_objects)
    version: NDArray[np.uint64] = field(default_factory=_no_versions)
    min_nodes: NDArray[np.int64] = field(default_factory=_no_ints)
    max_nodes: NDArray[np.int64] = field(default_factory=_no_ints)
    width_rule: NDArray[np.int8] = field(default_factory=_no_rules)
    features: NDArray[np.object_] = field(default_factory=_no_objects)
    reservation: NDArray[np.int64] = field(default_factory=_no_ints)
    adapting: NDArray[np.bool_] = field(default_factory=_no_bools)
    releasing: NDArray[np.bool_] = field(default_factory=_no_bools)

    def __post_init__(self) -> None:
        n_running = len(self.id)
        for name, value in _RUNNING_DEFAULTS.items():
            column = getattr(self, name)
            if len(column) != n_running:
                object.__setattr__(self, name, _throughout(value, column.dtype, n_running))

    def __len__(self) -> int:
        return len(self.id)

    @classmethod
    def of_columns(cls, columns: Mapping[str, NDArray[Any]]) -> "RunningTable":
        """The table of these columns; for tables by the thousand.

        Args:
            columns: all but those that may be left out.
        """
        table, count = cls.__new__(cls), len(columns["id"])
        for name, value in _RUNNING_DEFAULTS.items():
            if name not in columns:
                table.__dict__[name] = _throughout(value, _RUNNING_TYPES[name], count)
        table.__dict__.update(columns)
        return table


_RUNNING_TYPES: Final = {
    each.name: each.default_factory().dtype
    for each in fields(RunningTable)
    if each.default_factory is not MISSING
}


@dataclass(frozen=True)
class EndedTable:
    """Jobs that ended since the last snapshot, of those that ran.

    An end may go untold when controller and service lost each other; none is told twice. A run that
    was cut short and went back to the queue is no end.

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
