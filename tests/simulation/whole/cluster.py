# SPDX-License-Identifier: Apache-2.0
"""A model of slurmctld's tables: the truth. It checks every start itself and trusts nobody.

Everything that changes here is written into the history.
"""

import re
import zlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace

from tests.simulation.whole.history import History
from tests.simulation.whole.schedule import Clock, Schedule

GRACE_S = 60
"""A fixed start may be so late."""


@dataclass(frozen=True)
class Ask:
    """What a job asks for; to alter a job is to replace it.

    Attributes:
        cpus: of each task, or on each node where no tasks are said.
        memory_mib: on each node.
        chunks, place: as in `--chunks` and `--place`; `tasks` is then the number of CPUs.
        unsaid: it asks for more than is reported.
        shuns: nodes that do not do for it, which is not reported.
    """

    partitions: tuple[str, ...]
    limit_s: int
    nodes: int = 1
    most_nodes: int = 1
    tasks: int = 0
    cpus: int = 1
    memory_mib: int = 0
    exclusive: bool = False
    features: str = ""
    excluded: tuple[str, ...] = ()
    licences: tuple[tuple[str, int], ...] = ()
    deadline_s: int = 0
    least_s: int = 0
    fixed: bool = False
    reservation: str = ""
    chunks: str = ""
    place: str = ""
    unsaid: bool = False
    shuns: tuple[str, ...] = ()

    @property
    def version(self) -> int:
        return zlib.crc32(repr(self).encode()) | 1


@dataclass
class Job:
    """A job's record; of an array, that of the tasks that have not started."""

    id: str
    user: str
    account: str
    ask: Ask
    run_s: int
    priority: int
    submit_s: int
    begin_s: int = 0
    held: bool = False
    array_tasks: int = 0
    array_most: int = 0
    array_started: int = 0
    state: str = "pending"
    nodes: dict[str, tuple[int, int]] = field(default_factory=dict)
    partition: str = ""
    start_s: int = 0
    limit_s: int = 0
    life: int = 0
    told_s: int = 0

    @property
    def head(self) -> str:
        return self.id.partition("_")[0]


@dataclass
class Node:
    name: str
    cpus: int
    memory_mib: int
    features: tuple[str, ...] = ()
    usable: bool = True


@dataclass
class Partition:
    name: str
    nodes: tuple[str, ...]
    up: bool = True
    most_s: int = 0
    exclusive: bool = False


@dataclass
class Reservation:
    name: str
    start_s: int
    end_s: int
    nodes: tuple[str, ...]
    licences: dict[str, int] = field(default_factory=dict)


class Refused(Exception):
    """A start that is not made."""


class Cluster:
    """The tables, and all that may be done to them.

    Attributes:
        changed: called after every change.
        ended: jobs that ended since they were reported, as (job, ending).
    """

    def __init__(self, schedule: Schedule, history: History) -> None:
        self.clock = Clock(schedule)
        self.jobs: dict[str, Job] = {}
        self.nodes: dict[str, Node] = {}
        self.partitions: dict[str, Partition] = {}
        self.reservations: dict[str, Reservation] = {}
        self.licences: dict[str, int] = {}
        self.memory_counts = True
        self.ended: list[tuple[Job, int, str]] = []
        self.changed: Callable[[], None] = lambda: None
        self.clean_ms = 0
        self._schedule = schedule
        self._history = history

    @property
    def now_s(self) -> int:
        return self.clock.now_s

    def note(self, kind: str, **what: object) -> None:
        """Writes into the history, with the controller's clock."""
        self._history.add(self._schedule.now_ms, kind, now_s=self.now_s, **what)

    # ------------------------------------------------------------ what administrators do

    def put_node(self, node: Node) -> None:
        self.nodes[node.name] = node
        self.note("node", **asdict(node))
        if not node.usable and node.name in self._lost:
            self._lose(node.name)
        self.changed()

    _lost: frozenset[str] = frozenset()

    def down(self, name: str) -> None:
        """A node is lost with everything on it."""
        self._lost = frozenset((name,))
        self.put_node(replace(self.nodes[name], usable=False))
        self._lost = frozenset()

    def _lose(self, name: str) -> None:
        for job in list(self.jobs.values()):
            if name not in job.nodes:
                continue
            if job.state == "completing":
                self._clean(job.id, job.life)
            elif "_" in job.id or zlib.crc32(job.id.encode()) % 3 == 0:
                self._end(job, "lost")
            else:
                job.state, job.nodes, job.start_s = "pending", {}, 0
                job.life += 1
                self.note("requeue", job=job.id)

    def put_partition(self, partition: Partition) -> None:
        self.partitions[partition.name] = partition
        self.note("partition", **asdict(partition))
        self.changed()

    def put_licences(self, total: dict[str, int]) -> None:
        self.licences = dict(total)
        self.note("licences", total=dict(total))
        self.changed()

    def reserve(self, reservation: Reservation) -> None:
        self.reservations[reservation.name] = reservation
        self.note("reserve", **asdict(reservation))
        for edge_s in (reservation.start_s, reservation.end_s):
            self._schedule.after(max(edge_s - self.now_s, 0) * 1000 + 1, self._edge)
        self.changed()

    def unreserve(self, name: str) -> None:
        if self.reservations.pop(name, None) is not None:
            self.note("unreserve", name=name)
            self.changed()

    def _edge(self) -> None:
        for item in [r for r in self.reservations.values() if r.end_s <= self.now_s]:
            self.unreserve(item.name)
        self.changed()

    def step_clock(self, seconds: int) -> None:
        self.clock.offset_ms += seconds * 1000
        self.note("clock", who="controller", step_s=seconds)
        for job in list(self.jobs.values()):
            if job.state == "running" and job.start_s + job.limit_s <= self.now_s:
                self._end(job, "timeout")
        self._edge()

    # ------------------------------------------------------------ what users do

    def submit(self, job: Job) -> None:
        self.jobs[job.id] = job
        self.note(
            "submit", job=job.id, user=job.user, account=job.account, priority=job.priority,
            begin_s=job.begin_s, held=job.held, array_tasks=job.array_tasks,
            array_most=job.array_most, version=job.ask.version, ask=asdict(job.ask),
        )  # fmt: skip
        self.changed()

    def alter(self, job_id: str, **changes: object) -> None:
        job = self.jobs.get(job_id)
        if job is None or job.state != "pending":
            return
        ask = {name: value for name, value in changes.items() if name in Ask.__dataclass_fields__}
        job.ask = replace(job.ask, **ask)  # type: ignore[arg-type]
        for name in ("begin_s", "priority", "held"):
            if name in changes:
                setattr(job, name, changes[name])
        self.note(
            "alter", job=job_id, version=job.ask.version, begin_s=job.begin_s, held=job.held,
            priority=job.priority, ask=asdict(job.ask),
        )  # fmt: skip
        self.changed()

    def cancel(self, job_id: str) -> None:
        for job in list(self.jobs.values()):
            if job.head != job_id:
                continue
            if job.state == "pending":
                self._leave(job, "cancelled")
            elif job.state == "running":
                self._end(job, "cancelled")

    def _leave(self, job: Job, why: str) -> None:
        del self.jobs[job.id]
        self.note("left", job=job.id, why=why)
        self.changed()

    # ------------------------------------------------------------ starts and ends

    def judge_deadlines(self) -> None:
        """Ends the jobs that cannot end before their deadlines any more, as Slurm does."""
        for job in list(self.jobs.values()):
            ask = job.ask
            if job.state == "pending" and ask.deadline_s:
                least_s = ask.least_s or ask.limit_s
                if self.now_s + least_s > ask.deadline_s:
                    self._leave(job, "deadline")

    def used(self, name: str) -> tuple[int, int]:
        held = [job.nodes[name] for job in self.jobs.values() if name in job.nodes]
        return sum(cpus for cpus, _ in held), sum(memory for _, memory in held)

    def start(
        self, job: Job, nodes: tuple[str, ...], partition: str, cpus: dict[str, int], by: str
    ) -> Job:
        """Starts a job, or one task of an array.

        Args:
            job: it waits.
            nodes: exactly these.
            partition: one of those it named.
            cpus: on each node, where the job leaves that open.
            by: who wants it.

        Raises:
            Refused: it may not be started so.
        """
        use, limit_s = self._admit(job, nodes, partition, cpus)
        if job.array_tasks:
            job.array_tasks -= 1
            job.array_started += 1
            task = replace(
                job, id=f"{job.id}_{job.array_started}", array_tasks=0, array_most=0, nodes={}
            )
            if job.array_tasks == 0:
                del self.jobs[job.id]
            self.jobs[task.id] = task
            job = task
        job.state, job.nodes, job.partition = "running", use, partition
        job.start_s, job.limit_s = self.now_s, limit_s
        self.note(
            "start", job=job.id, by=by, partition=partition, limit_s=limit_s,
            nodes={name: list(held) for name, held in use.items()},
        )  # fmt: skip
        life = job.life
        self._schedule.after(
            min(job.run_s, limit_s) * 1000, lambda: self._expire(job.id, life, job.start_s)
        )
        self.changed()
        return job

    def _expire(self, job_id: str, life: int, start_s: int) -> None:
        job = self.jobs.get(job_id)
        if job and job.state == "running" and (job.life, job.start_s) == (life, start_s):
            self._end(job, "timeout" if job.run_s > job.limit_s else "completed")

    def _end(self, job: Job, why: str) -> None:
        job.state = "completing"
        self.ended.append((job, self.now_s, why))
        self.note("end", job=job.id, why=why)
        if self.clean_ms:
            self._schedule.after(self.clean_ms, lambda: self._clean(job.id, job.life))
        else:
            self._clean(job.id, job.life)
        self.changed()

    def _clean(self, job_id: str, life: int) -> None:
        job = self.jobs.get(job_id)
        if job is not None and job.state == "completing" and job.life == life:
            del self.jobs[job_id]
            self.note("clean", job=job_id)
            self.changed()

    def running_of(self, head: str) -> int:
        return sum(job.head == head and job.state == "running" for job in self.jobs.values())

    def startable_tasks(self, job: Job) -> int:
        if not job.array_most:
            return job.array_tasks
        return max(min(job.array_tasks, job.array_most - self.running_of(job.head)), 0)

    def _admit(
        self, job: Job, nodes: tuple[str, ...], partition: str, cpus: dict[str, int]
    ) -> tuple[dict[str, tuple[int, int]], int]:
        """What a start would hold on each node, and its time limit."""
        ask, now_s = job.ask, self.now_s
        if job.held:
            raise Refused("the job is held")
        if job.begin_s > now_s:
            raise Refused("its begin time has not come")
        if ask.fixed and now_s > job.begin_s + GRACE_S:
            raise Refused("its fixed start has passed")
        if job.array_tasks and not self.startable_tasks(job):
            raise Refused("as many tasks run as may")
        room = self.partitions.get(partition)
        if room is None or partition not in ask.partitions:
            raise Refused(f"it may not use partition {partition}")
        if not room.up:
            raise Refused(f"partition {partition} is down")
        limit_s = ask.limit_s
        if room.most_s and limit_s > room.most_s:
            raise Refused("more time than the partition allows")
        if ask.deadline_s:
            limit_s = min(limit_s, ask.deadline_s - now_s)
            if limit_s < (ask.least_s or ask.limit_s):
                raise Refused("its deadline cannot be kept")
        if len(set(nodes)) < len(nodes) or not set(nodes) <= set(room.nodes):
            raise Refused("nodes twice, unknown or of another partition")
        if not ask.chunks and not ask.nodes <= len(nodes) <= max(ask.most_nodes, ask.nodes):
            raise Refused(f"{len(nodes)} nodes, it asks for {ask.nodes} to {ask.most_nodes}")
        if set(nodes) & set(ask.excluded):
            raise Refused("a node that it excluded")
        self._admit_reserved(job, nodes, limit_s)
        self._admit_licences(job, limit_s)
        use = {}
        for name in nodes:
            use[name] = self._admit_node(job, self.nodes[name], room, cpus)
        if ask.tasks and not ask.exclusive and not room.exclusive:
            each = 1 if ask.chunks else ask.cpus
            if sum(cpus.get(name, 0) for name in nodes) != ask.tasks * each:
                raise Refused("not as many CPUs as it asks for")
        return use, limit_s

    def _admit_node(
        self, job: Job, node: Node, room: Partition, cpus: dict[str, int]
    ) -> tuple[int, int]:
        ask = job.ask
        if not node.usable:
            raise Refused(f"node {node.name} is not usable")
        if node.name in ask.shuns:
            raise Refused(f"node {node.name} does not do")
        if ask.features and ask.features not in node.features:
            raise Refused(f"node {node.name} has not the feature {ask.features}")
        here = [other for other in self.jobs.values() if node.name in other.nodes]
        if any(other.state == "completing" for other in here):
            raise Refused(f"a job is completing on {node.name}")
        whole = ask.exclusive or room.exclusive
        taken = any(self._whole(other) for other in here)
        if taken or (whole and here):
            raise Refused(f"node {node.name} is held exclusively")
        used_cpus, used_memory = self.used(node.name)
        wanted = cpus.get(node.name, 0) if ask.tasks else ask.cpus
        memory = ask.memory_mib if self.memory_counts else 0
        if wanted < 1 or wanted > node.cpus - used_cpus:
            raise Refused(f"{wanted} CPUs on {node.name}, {node.cpus - used_cpus} are free")
        if memory > node.memory_mib - used_memory or ask.memory_mib > node.memory_mib:
            raise Refused(f"not enough memory on {node.name}")
        if whole:
            return node.cpus, node.memory_mib if self.memory_counts else 0
        return wanted, memory

    def _whole(self, job: Job) -> bool:
        return job.ask.exclusive or self.partitions[job.partition].exclusive

    def _admit_reserved(self, job: Job, nodes: tuple[str, ...], limit_s: int) -> None:
        now_s, name = self.now_s, job.ask.reservation
        if name:
            own = self.reservations.get(name)
            if own is None or not own.start_s <= now_s < own.end_s:
                raise Refused(f"reservation {name} is not active")
            if own.nodes and not set(nodes) <= set(own.nodes):
                raise Refused(f"nodes outside reservation {name}")
        for item in self.reservations.values():
            apart = item.end_s <= now_s or item.start_s >= now_s + limit_s
            if item.name != name and not apart and set(nodes) & set(item.nodes):
                raise Refused(f"nodes of reservation {item.name}")

    def free_licences(self, name: str) -> int:
        held = sum(
            count
            for job in self.jobs.values()
            if job.state == "running"
            for licence, count in job.ask.licences
            if licence == name
        )
        return self.licences.get(name, 0) - held

    def _admit_licences(self, job: Job, limit_s: int) -> None:
        del limit_s
        for name, count in job.ask.licences:
            if count > self.free_licences(name):
                raise Refused(f"{count} of licence {name}, {self.free_licences(name)} are free")

    # ------------------------------------------------------------ Slurm's own scheduler

    def backfill(self) -> None:
        """Starts what fits, by priority: what Slurm does while the service is silent."""
        for job in sorted(self.jobs.values(), key=lambda job: (-job.priority, job.submit_s)):
            while job.state == "pending" and job.id in self.jobs:
                if not self._start_anywhere(job):
                    break
                if not job.array_tasks:
                    break

    def _start_anywhere(self, job: Job) -> bool:
        for partition in job.ask.partitions:
            room = self.partitions.get(partition)
            if room is None or job.ask.chunks:
                continue
            try:
                self.choose(job, room.nodes, partition, by="slurm")
            except Refused:
                continue
            return True
        return False

    def choose(self, job: Job, names: tuple[str, ...], partition: str, by: str) -> Job:
        """Starts a job on nodes that Slurm chooses among some.

        Raises:
            Refused: it finds none.
        """
        room = self.partitions.get(partition)
        if room is None:
            raise Refused(f"no partition {partition}")
        why = Refused("nodes are busy")
        for nodes, cpus in self._sets(job, replace(room, nodes=names)):
            try:
                return self.start(job, nodes, partition, cpus, by=by)
            except Refused as error:
                why = error
        raise why

    def _sets(self, job: Job, room: Partition) -> Iterable[tuple[tuple[str, ...], dict[str, int]]]:
        """One set of nodes that may do: the first with room."""
        ask = job.ask
        chosen: dict[str, int] = {}
        left = ask.tasks
        for name in room.nodes:
            node = self.nodes[name]
            free = node.cpus - self.used(name)[0]
            fits = free // ask.cpus
            if not node.usable or not fits or name in (*ask.excluded, *ask.shuns):
                continue
            if ask.features and ask.features not in node.features:
                continue
            if ask.tasks:
                take = min(fits, left)
                chosen[name], left = take * ask.cpus, left - take
                if not left:
                    break
            else:
                chosen[name] = ask.cpus
                if len(chosen) == ask.nodes:
                    break
        if (ask.tasks and not left) or (not ask.tasks and len(chosen) == ask.nodes):
            yield tuple(chosen), chosen


def names_in(hostlist: str) -> tuple[str, ...]:
    """Reads a hostlist."""
    found: list[str] = []
    for prefix, inner in re.findall(r"([^,\[\]]+)(?:\[([^\]]*)\])?", hostlist):
        if not inner:
            found.append(prefix)
            continue
        for part in inner.split(","):
            low, _, high = part.partition("-")
            for number in range(int(low), int(high or low) + 1):
                found.append(f"{prefix}{number:0{len(low)}d}")
    return tuple(found)
