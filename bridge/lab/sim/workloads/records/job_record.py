# SPDX-License-Identifier: Apache-2.0
"""The records of a site workload: jobs, outages of nodes, reservations.

Rules
    1. Instants are Unix seconds, amounts whole numbers; 0 and "" mean unknown or none.
    2. A job is what accounting calls one: each task of an array, each component of a heterogeneous
       job. `cpus`, `gres` and `nodes` are of the whole job, memory is of a node or a CPU.
    3. `after` names the jobs that it waited for, with the kind of each dependency.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from enum import Enum
from functools import cache
from typing import Any, Final, Self, cast

LARGEST: Final = 1 << 53
"""Maximum of any number."""
MAX_TIME_S: Final = 1 << 35
"""Maximum of any instant or duration, s: the year 3058."""
MAX_MEMORY_MIB: Final = 1 << 40
MAX_COUNT: Final = (1 << 31) - 1
"""Maximum number of anything that a job has."""
LONGEST: Final = 4096
"""Maximum length of any text; lists of nodes may be longer."""
_LONGEST_LIST: Final = 1 << 20
_MAX_ITEMS: Final = 100_000


class JobEnding(Enum):
    """The end of a job, or why it has none."""

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    TIMEOUT = "timeout"
    NODE_FAILED = "node-failed"
    OUT_OF_MEMORY = "out-of-memory"
    PREEMPTED = "preempted"
    RUNNING = "running"
    PENDING = "pending"
    UNKNOWN = "unknown"


_STATES: Final = {state.value: state for state in JobEnding}


class _Checked:
    """A record whose fields are those of a mapping."""

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """Makes a record of what a line has.

        Raises:
            ValueError: a field is unknown, missing, or has an impossible value.
        """
        record = cast("Hashable", cls)
        known = _kinds(record)
        if unknown := values.keys() - known.keys():
            raise ValueError(f"has the unknown field '{min(unknown)[:40]}'")
        if len(values) < len(known):
            for name in _required(record):
                if name not in values:
                    raise ValueError(f"has no field '{name}'")
        return cls(**{name: _checked(name, value, known[name]) for name, value in values.items()})

    def plain(self) -> dict[str, Any]:
        """The fields that are not empty."""
        found: dict[str, Any] = {}
        for name in _kinds(cast("Hashable", type(self))):
            value = getattr(self, name)
            if value:
                found[name] = value.value if isinstance(value, JobEnding) else value
        return found


@dataclass(frozen=True)
class JobRecord(_Checked):
    """One job.

    Attributes:
        id: unique in the file: "12", "12_3" (a task of an array), "12+1" (a component).
        submit_s, eligible_s, start_s, end_s: instants. A requeued job's are those of its last run.
        runtime_s: from start to end, without suspensions.
        time_limit_s: 0: none, or unknown.
        user, account, group, name: names, or pseudonyms.
        partitions: that it was submitted to, or the one in which it ran.
        nodes: allocated, or requested if it did not start.
        least_nodes: requested; 0: unknown.
        node_list: in Slurm's form.
        cpus: allocated, or requested if it did not start.
        requested_cpus: 0: unknown.
        memory_mib: requested, on each node or for each CPU as `memory_per` states ("node", "cpu").
        gres: generic resources, name to amount on all nodes together.
        features: constraint expression.
        exclusive: it held its nodes whole.
        licences: as the controller writes them.
        array: number of the array that it is a task of.
        array_limit: tasks of the array that may run at a time.
        component: number of the heterogeneous job that it is a part of.
        after: pairs of kind and job: afterok, afterany, afternotok, aftercorr, after, singleton.
        restarts: how often it was requeued.
        shape: other words of its request that have no field (PBS: its select).
    """

    id: str
    submit_s: int
    eligible_s: int = 0
    start_s: int = 0
    end_s: int = 0
    runtime_s: int = 0
    time_limit_s: int = 0
    state: JobEnding = JobEnding.UNKNOWN
    user: str = ""
    account: str = ""
    group: str = ""
    name: str = ""
    partitions: tuple[str, ...] = ()
    qos: str = ""
    reservation: str = ""
    nodes: int = 0
    least_nodes: int = 0
    node_list: str = ""
    cpus: int = 0
    requested_cpus: int = 0
    memory_mib: int = 0
    memory_per: str = ""
    gres: Mapping[str, int] = field(default_factory=dict)
    features: str = ""
    exclusive: bool = False
    licences: str = ""
    array: str = ""
    array_limit: int = 0
    component: str = ""
    after: tuple[tuple[str, str], ...] = ()
    restarts: int = 0
    priority: int = 0
    shape: str = ""


@dataclass(frozen=True)
class Outage(_Checked):
    """Nodes that were not available.

    Attributes:
        nodes: in Slurm's form.
        end_s: 0: it had not ended.
        state: "down" (its jobs were lost) or "drained" (they ended first).
        why: the reason; empty where names are removed.
    """

    nodes: str
    start_s: int
    end_s: int = 0
    state: str = "down"
    why: str = ""


@dataclass(frozen=True)
class ReservationRecord(_Checked):
    """A reservation.

    Attributes:
        name: or pseudonym.
        nodes: in Slurm's form; empty: unknown.
        flags: as the controller writes them.
    """

    name: str
    start_s: int
    end_s: int
    nodes: str = ""
    flags: str = ""


@dataclass(frozen=True)
class SiteWorkload:
    """The contents of a file.

    Attributes:
        name: the name of the site, or of what was read.
        jobs, outages, reservations: in any order.
        processors: CPUs of the cluster; 0: unknown.
        about: facts about its origin, text to text: reader, versions, what was anonymised.
        dropped: a message for each line that was left out.
    """

    name: str
    jobs: Sequence[JobRecord]
    outages: Sequence[Outage] = ()
    reservations: Sequence[ReservationRecord] = ()
    processors: int = 0
    about: Mapping[str, str] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()


@cache
def _kinds(record: Any) -> Mapping[str, object]:
    """The type of each field."""
    return {each.name: each.type for each in fields(record)}


@cache
def _required(record: Any) -> tuple[str, ...]:
    """The fields that have no usual value."""
    return tuple(
        each.name
        for each in fields(record)
        if each.default is MISSING and each.default_factory is MISSING
    )


def _max_of(name: str) -> int:
    """The maximum of a field."""
    if name.endswith("_s"):
        return MAX_TIME_S
    if name == "memory_mib":
        return MAX_MEMORY_MIB
    return LARGEST if name == "priority" else MAX_COUNT


def _checked(name: str, value: Any, kind: object) -> Any:  # noqa: PLR0912 - a branch for each kind
    if kind is int:
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not 0 <= value <= _max_of(name):
            raise ValueError(f"{name} is {_shown(value)}, not a possible number")
    elif kind is bool:
        if not isinstance(value, bool):
            raise ValueError(f"{name} is {_shown(value)}, not true or false")
    elif kind is str:
        maximum = _LONGEST_LIST if name in ("nodes", "node_list") else LONGEST
        if not isinstance(value, str) or len(value) > maximum or (name == "id" and not value):
            raise ValueError(f"{name} is {_shown(value)}, not a possible text")
    elif kind is JobEnding:
        if not isinstance(value, str) or value not in _STATES:
            raise ValueError(f"{name} is {_shown(value)}, not a state")
        return _STATES[value]
    elif name == "after":
        pairs = [_items(name, item) for item in _items(name, value)]
        if any(len(pair) != 2 for pair in pairs):
            raise ValueError(f"{name} is {_shown(value)}, not pairs of kind and job")
        return tuple(tuple(_checked(name, text, str) for text in pair) for pair in pairs)
    elif name == "partitions":
        return tuple(_checked(name, item, str) for item in _items(name, value))
    else:
        if not isinstance(value, dict) or len(value) > LONGEST:
            raise ValueError(f"{name} is {_shown(value)}, not names with amounts")
        return {name: _checked(f"gres {name[:40]}", n, int) for name, n in value.items()}
    return value


def _items(name: str, value: Any) -> Sequence[Any]:
    if not isinstance(value, list) or len(value) > _MAX_ITEMS:
        raise ValueError(f"{name} is {_shown(value)}, not a list")
    return value


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:40] + "..."
