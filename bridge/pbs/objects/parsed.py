# SPDX-License-Identifier: Apache-2.0
"""The parsed tables of a server; unchanged objects are reused from the last reading.

Rules
    1. A job counts for limits while it holds vnodes, or is asked to run; suspended jobs do not.
    2. A queue starts jobs if it is an execution queue and started. That it is not enabled stops
       submissions only.
    3. Reservations in the states of `STANDING` hold their nodes.
    4. Of a standing one, the next `MAX_LATER` occurrences are reservations of their own, as
       `S1.server#2`; the server names only the present or next one.
    5. An object that cannot be read is left out (`left_out.py`). What such a job holds is unknown:
       the vnodes that it names start no other job.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from bridge.errors import BadRequest
from bridge.left_out import LeftOut
from bridge.pbs.objects import values
from bridge.pbs.objects.definitions import ResourceDefinition, read_definitions
from bridge.pbs.objects.exec_vnode import parse_exec_vnode, total_by_vnode
from bridge.pbs.objects.jobs import SUSPENDED, Held, PbsJob, read_job
from bridge.pbs.objects.limits import Limits, Used, add_use, read_limits
from bridge.pbs.objects.recurrence import begins, count_of, index_of, vnodes_by_occurrence
from bridge.pbs.objects.sched_config import PrimeTimeSettings
from bridge.pbs.objects.sched_files import NO_FILES, SchedFiles
from bridge.pbs.objects.vnodes import Vnode, read_vnode, wire_nodes
from bridge.pbs.tables import Attributes, Objects, Tables, amounts, text

_T = TypeVar("_T")

_RESV_STATES = {
    "RESV_NONE": 0, "RESV_UNCONFIRMED": 1, "RESV_CONFIRMED": 2, "RESV_WAIT": 3,
    "RESV_TIME_TO_RUN": 4, "RESV_RUNNING": 5, "RESV_FINISHED": 6, "RESV_BEING_DELETED": 7,
    "RESV_DELETED": 8, "RESV_DELETING_JOBS": 9, "RESV_DEGRADED": 10, "RESV_BEING_ALTERED": 11,
    "RESV_IN_CONFLICT": 12,
    "UN": 1, "CO": 2, "WT": 3, "TR": 4, "RN": 5, "FN": 6, "BD": 7, "DE": 8, "DJ": 9, "DG": 10,
    "AL": 11, "IC": 12,
}  # fmt: skip
_VNODE = re.compile(r"\(([^:()+]+)")
DEFAULT_PARTITION = "pbs-default"
"""Of the default scheduler: queues and vnodes without a partition."""

UNCONFIRMED, CONFIRMED, RUNNING, DEGRADED, ALTERED, IN_CONFLICT = 1, 2, 5, 10, 11, 12
STANDING = frozenset((2, 4, 5, 10, 11, 12))
"""States of reservations that were confirmed."""
MAX_LATER = 50


@dataclass(frozen=True)
class PbsQueue:
    """One queue.

    Attributes:
        own_vnodes: vnodes that only its jobs may use; empty: it uses those without queue.
    """

    name: str
    starts: bool
    problem: str
    priority: int
    limits: Limits
    attributes: Attributes
    own_vnodes: bool = False


@dataclass(frozen=True)
class PbsReservation:
    """One reservation.

    Attributes:
        held: vnode to what is reserved there.
        of: the standing reservation of which this is a later occurrence; empty: it is none.
    """

    name: str
    state: int
    start_s: int
    end_s: int
    held: Held
    queue: str
    attributes: Attributes
    problem: str = ""
    of: str = ""

    @property
    def is_maintenance(self) -> bool:
        """Whether it was made for maintenance of hosts (`pbs_rsub --hosts`)."""
        return self.name.startswith("M")


@dataclass(frozen=True)
class Parsed:
    """The tables, read.

    Attributes:
        nodes: the nodes of the wire, with their vnodes.
        jobs: by id; `problem` describes those that are invalid.
        used: what is used of each queue, and of the server under "".
        tasks_running: array to the number of its tasks that run.
        problems: one line for each value that was left out.
    """

    tables: Tables
    definitions: Mapping[str, ResourceDefinition]
    vnodes: Mapping[str, Vnode]
    nodes: Mapping[str, tuple[str, ...]]
    queues: Mapping[str, PbsQueue]
    jobs: Mapping[str, PbsJob]
    reservations: Mapping[str, PbsReservation]
    limits: Limits
    used: Mapping[str, Used]
    tasks_running: Mapping[str, int]
    by_queue: Mapping[str, PbsReservation]
    problems: tuple[str, ...] = field(default_factory=tuple)
    files: SchedFiles = NO_FILES

    @property
    def settings(self) -> PrimeTimeSettings:
        """The settings of the present time of day."""
        now_s = self.tables.now_s
        return self.files.config.at(prime=self.files.calendar.is_prime(now_s))

    def limits_of(self, job: PbsJob) -> list[tuple[Limits, Used]]:
        """The limits that a job counts against, with what is used."""
        found = [(self.limits, self.used.get("", {}))]
        if job.queue in self.queues:
            found.append((self.queues[job.queue].limits, self.used.get(job.queue, {})))
        return found


@dataclass(frozen=True)
class _Kept:
    """What was read last of a kind of objects."""

    objects: Objects
    read: Mapping[str, Any]


Uses = tuple[Mapping[str, Used], Mapping[str, int]]
"""What running jobs use of the server and of each queue, and the running tasks of each array."""


def _uses(jobs: Mapping[str, PbsJob]) -> Uses:
    used: dict[str, Used] = {"": {}}
    running: dict[str, int] = {}
    for job in jobs.values():
        if job.has_vnodes and job.state not in SUSPENDED:
            add_use(used[""], job.owner, job.total)
            add_use(used.setdefault(job.queue, {}), job.owner, job.total)
            if job.array:
                running[job.array] = running.get(job.array, 0) + 1
    return used, running


class Reader:
    """Reads tables; keeps what it read by the identity of the attributes."""

    def __init__(self, files: SchedFiles = NO_FILES) -> None:
        """Starts with nothing read.

        Args:
            files: files of sched_priv; may be replaced at any time.
        """
        self.files = files
        self._compares = files.config.compared, files.config.dynamic
        self._kept: dict[str, _Kept] = {}
        self._uses: tuple[Mapping[str, PbsJob], Uses] | None = None
        self._definitions: tuple[Objects, Mapping[str, ResourceDefinition]] | None = None
        self._partition = ""
        self._left_out: dict[str, LeftOut] = {}
        self._closed: tuple[Mapping[str, Vnode], set[str], Mapping[str, Vnode]] | None = None
        self._nodes: tuple[Mapping[str, Vnode], Mapping[str, tuple[str, ...]]] | None = None

    def read(self, tables: Tables) -> Parsed:
        definitions = self._defined(tables)
        vnodes = self._each(
            "vnode", tables.vnodes, lambda n, a: read_vnode(n, a, definitions, self._partition)
        )
        jobs = self._each("job", tables.jobs, lambda n, a: read_job(n, a, definitions))
        vnodes = self._without_unknown(vnodes, tables.jobs)
        queues = self._each(
            "queue", tables.queues, lambda n, a: read_queue(n, a, definitions, self._partition)
        )
        read = self._each(
            "reservation", tables.reservations, lambda n, a: read_reservations(n, a, definitions)
        )
        reservations = {one.name: one for several in read.values() for one in several}
        limits = self._each(
            "server", {"": tables.server}, lambda _, a: read_limits("the server", a, definitions)
        ).get("") or read_limits("the server", {}, definitions)
        if self._uses is None or self._uses[0] is not jobs:
            self._uses = jobs, _uses(jobs)
        used, running = self._uses[1]
        problems = [line for vnode in vnodes.values() for line in vnode.problems]
        problems += [line for queue in queues.values() for line in queue.limits.problems]
        problems += [
            f"reservation {r.name}: {r.problem}" for r in reservations.values() if r.problem
        ]
        return Parsed(
            tables, definitions, vnodes, self._grouped(vnodes), queues, jobs, reservations,
            limits, used, running,
            {r.queue: r for r in reservations.values() if r.queue and not r.of},
            (*problems, *limits.problems, *self._left_out_problems()),
            self.files,
        )  # fmt: skip

    def _each(
        self, kind: str, objects: Objects, make: Callable[[str, Attributes], _T]
    ) -> Mapping[str, _T]:
        """Reads objects of a kind; the same as last time if none has changed."""
        kept = self._kept.get(kind)
        if kept is not None and kept.objects is objects:
            return kept.read
        before, found = kept, dict[str, _T]()
        left_out = self._left_out.setdefault(kind, LeftOut(kind))
        for name, attributes in objects.items():
            if before is not None and before.objects.get(name) is attributes:
                made = before.read.get(name)  # without it: as it could not be read before
            else:
                made = left_out.unless(name, make, name, attributes)
            if made is not None:
                found[name] = made
        left_out.keep(objects)
        self._kept[kind] = _Kept(objects, found)
        return found

    def _left_out_problems(self) -> list[str]:
        return [line for each in self._left_out.values() for line in each.problems()]

    def _without_unknown(self, vnodes: Mapping[str, Vnode], jobs: Objects) -> Mapping[str, Vnode]:
        """The vnodes; those of jobs that are left out start nothing (rule 5)."""
        taken = {
            vnode
            for job in self._left_out["job"].reasons
            for vnode in _VNODE.findall(text(jobs[job], "exec_vnode"))
        } & vnodes.keys()
        if not taken:
            self._closed = None
            return vnodes
        if self._closed is None or self._closed[0] is not vnodes or self._closed[1] != taken:
            closed = {name: replace(vnodes[name], usable=False) for name in taken}
            self._closed = vnodes, taken, {**vnodes, **closed}
        return self._closed[2]

    def _defined(self, tables: Tables) -> Mapping[str, ResourceDefinition]:
        partition = text(tables.sched, "partition")
        if partition == DEFAULT_PARTITION:
            partition = ""
        known = self._definitions
        compares = self.files.config.compared, self.files.config.dynamic
        if (
            known is None
            or known[0] != tables.resources
            or (partition, compares) != (self._partition, self._compares)
        ):
            made = read_definitions(tables.resources, self.files.config)
            known = self._definitions = (tables.resources, made)
            self._kept = {}
            self._compares = compares
            self._partition = partition
        return known[1]

    def _grouped(self, vnodes: Mapping[str, Vnode]) -> Mapping[str, tuple[str, ...]]:
        known = self._nodes
        same = known is not None and (
            known[0] is vnodes
            or (
                known[0].keys() == vnodes.keys()
                and all(known[0][name] is vnode for name, vnode in vnodes.items())
            )
        )
        if known is None or not same:
            known = self._nodes = (vnodes, wire_nodes(vnodes))
        return known[1]


def read_queue(
    name: str, queue: Attributes, definitions: Mapping[str, ResourceDefinition], partition: str = ""
) -> PbsQueue:
    problem = ""
    if text(queue, "queue_type").lower().startswith("r"):
        problem = f"queue {name} only routes jobs"
    elif not values.is_true(text(queue, "started")):
        problem = f"queue {name} is not started"
    elif text(queue, "partition").replace(DEFAULT_PARTITION, "") != partition:
        problem = f"queue {name} is in the partition of another scheduler"
    try:
        priority = values.whole(text(queue, "Priority") or "0")
    except BadRequest:
        priority = 0
    return PbsQueue(
        name, not problem, problem, priority, read_limits(f"queue {name}", queue, definitions),
        queue, values.is_true(text(queue, "hasnodes")),
    )  # fmt: skip


def read_reservation(
    name: str, attributes: Attributes, definitions: Mapping[str, ResourceDefinition]
) -> PbsReservation:
    word, problem, held = text(attributes, "reserve_state"), "", {}
    state = int(word) if word.isdecimal() else _RESV_STATES.get(word, 0)
    try:
        held = (
            total_by_vnode(parse_exec_vnode(text(attributes, "resv_nodes"), definitions))
            if (text(attributes, "resv_nodes"))
            else {}
        )
    except BadRequest as error:
        problem = str(error)
    start_s = values.instant(text(attributes, "reserve_start"))
    return PbsReservation(
        name, state, start_s,
        values.instant(text(attributes, "reserve_end")) or start_s + _duration(attributes),
        held, text(attributes, "queue"), attributes, problem,
    )  # fmt: skip


def read_reservations(
    name: str, attributes: Attributes, definitions: Mapping[str, ResourceDefinition]
) -> tuple[PbsReservation, ...]:
    """Reads one reservation, with its next later occurrences (rule 4)."""
    first = read_reservation(name, attributes, definitions)
    if not text(attributes, "reserve_rrule") or first.state not in STANDING:
        return (first,)
    index, length_s = index_of(attributes), first.end_s - first.start_s
    try:
        count = min(count_of(attributes) - index + 1, MAX_LATER + 1)
        starts = begins(attributes, first.start_s, count) if count > 1 else []
        vnodes = vnodes_by_occurrence(text(attributes, "reserve_execvnodes"))
        later = [
            replace(
                first, name=f"{name}#{number}", state=CONFIRMED, start_s=start_s, of=name,
                end_s=start_s + length_s, problem="",
                held=total_by_vnode(parse_exec_vnode(vnodes[number - 1], definitions)),
            )
            for number, start_s in enumerate(starts[1:], index + 1)
            if number - 1 in vnodes
        ]  # fmt: skip
    except BadRequest as error:
        return (replace(first, problem=first.problem or str(error)),)
    return (first, *later)


def _duration(attributes: Attributes) -> int:
    try:
        return values.duration_s(
            text(attributes, "reserve_duration")
            or amounts(attributes, "Resource_List").get("walltime", "0")
        )
    except BadRequest:
        return 0
