# SPDX-License-Identifier: Apache-2.0
"""The tables of one controller: its nodes, jobs and the rest, changed in place by deltas.

A table is made again only if something in it changed. An object that cannot be read stops no other
(`bridge.left_out`): a waiting job is left out, one that runs holds all of the nodes that it names,
also if its id is impossible (`bridge.rpc.reported.unaddressable_jobs`).
After an error the tables are not valid, and `bridge.rpc.reported.session` discards them.
"""

import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from bridge.errors import SnapshotError
from bridge.extension_packages import counted
from bridge.left_out import LeftOut
from bridge.model.decisions.resizes import Resizes, resized
from bridge.model.job import EndedTable, JobTable, RunningTable, left_out_of
from bridge.model.snapshot import Partition, Reservation, Snapshot
from bridge.model.topology import Topology
from bridge.planning.eligibility.substitutes import Substitutes
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.decode_allocation import Allocated, is_id, read_allocation
from bridge.rpc.reported.decode_request import Lowered, lower
from bridge.rpc.reported.extension_wire import unread_columns
from bridge.rpc.reported.features import Feature
from bridge.rpc.reported.irregularities import MAX_ODD, irregularities
from bridge.rpc.reported.jobs import (
    PENDING_FIELDS,
    RUNNING_FIELDS,
    PendingJobs,
    ReportedRunningJobs,
    beside_completing,
)
from bridge.rpc.reported.nodes import ReportedNodes
from bridge.rpc.reported.refusals import Others, Refusals
from bridge.rpc.reported.safe_text import printable
from bridge.rpc.reported.table_columns import TableColumns
from bridge.rpc.reported.tables import read_licences, read_partitions, read_reservations
from bridge.rpc.reported.unaddressable_jobs import UnaddressableJobs
from bridge.rpc.reported.unread_allocation import unread_allocation
from bridge.state.accuracy import Began

MAX_JOBS = 2_000_000
_MAX_LOWERED = 200_000
_MAX_LOWERED_BYTES = 64 << 20
_HOLD, _TASKS, _STARTABLE = (
    PENDING_FIELDS.numbers.index(name) for name in ("hold", "array_tasks", "array_startable")
)


class ReportedCluster:
    """Nodes, partitions, reservations, licences and jobs of one controller.

    Attributes:
        nodes: by index.
        started: jobs that started with the report being applied.
        gone: waiting jobs that it removed.
        changes: counts the changes that may make a refused start possible.
    """

    def __init__(self, hello: pb.HelloRequest, refusals: Refusals, changes: int) -> None:
        """Starts empty.

        Args:
            refusals: starts that it refused; jobs that are gone or run are removed.
            changes: initial value of the counter.
        """
        self._hello, self._refusals, self.changes = hello, refusals, changes
        self.started: list[Began] = []
        self.gone: list[str] = []
        self.nodes = ReportedNodes()
        self._partition_messages = pb.Partitions()
        self._reservation_messages = pb.Reservations()
        self._licence_messages = pb.Licences()
        self._partitions: tuple[Partition, ...] = ()
        self._reservations: tuple[Reservation, ...] = ()
        self._layout = TableColumns(
            self.nodes.index, self.nodes.resources, {}, self.nodes.memory_mib
        )
        self._pending = PendingJobs(2, 0)
        self._running = ReportedRunningJobs(2, 0)
        self._releases: dict[str, tuple[NDArray[np.int32], int]] = {}
        self._lowered: dict[bytes, Lowered] = {}
        self._lowered_bytes = 0
        self._job_table: tuple[JobTable, NDArray[np.int64]] | None = None
        self._running_table: RunningTable | None = None
        self._licence_total: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._odd_names: dict[str, str] = {}
        self._unread_names: dict[str, str] = {}
        self._left_out = LeftOut("job")
        self._unaddressable: UnaddressableJobs | None = None  # until there is one
        self._contradictory: dict[str, str] = {}

    def apply(self, request: pb.CycleRequest) -> None:
        """Applies a report to the tables.

        Raises:
            SnapshotError: it has too many objects; the tables are no longer valid.
        """
        self.started, self.gone = [], []
        nodes, renumbered = self.nodes, self.nodes.renumbered
        if nodes.apply(request.nodes, request.removed_nodes):
            self.changes += 1
        changed = nodes.renumbered != renumbered
        for field, kept in (
            ("partitions", self._partition_messages),
            ("reservations", self._reservation_messages),
            ("licences", self._licence_messages),
        ):
            if request.HasField(field) and getattr(request, field) != kept:
                kept.CopyFrom(getattr(request, field))
                changed = True
        self._contradictory = {}
        by_id = self._each_once(request.jobs)
        ids, jobs = by_id.keys(), list(by_id.values())
        for job_id in request.removed_jobs:
            if job_id in ids:
                self._contradictory[printable(job_id)] = "is changed and removed"
            else:
                self._forget(job_id)
        # The former allocation of a changed job may be on removed nodes: remove it first.
        held = {job_id for job_id in ids if self._running.remove(job_id)}
        for job_id in held:
            self._releases.pop(job_id, None)
        if held:
            self._running_table = None
            self.changes += 1
        if changed:
            self._refer()
        if len(self._pending) + len(self._running) + len(jobs) > MAX_JOBS:
            raise SnapshotError("jobs", f"more than {MAX_JOBS} jobs")
        self._take_pending([job for job in jobs if job.state == pb.JOB_STATE_PENDING])
        running = [job for job in jobs if job.state != pb.JOB_STATE_PENDING]
        self._take_running(running)
        self._begin(running, held)

    def _refer(self) -> None:
        """Resolves names to indexes again, after nodes or partitions changed."""
        nodes, hello = self.nodes, self._hello
        odd: dict[str, str] = {}
        unread: dict[str, str] = {}
        partitions = read_partitions(self._partition_messages, nodes.index, unread, odd)
        if Feature.SHARE not in hello.features:
            partitions = tuple(dataclasses.replace(part, shared=False) for part in partitions)
        licences = read_licences(self._licence_messages, unread)
        self._reservations = read_reservations(
            self._reservation_messages, nodes.index, licences, unread, odd
        )
        layout = TableColumns(
            nodes=nodes.index,
            resources=nodes.resources,
            column=nodes.column,
            memory_mib=nodes.memory_mib,
            partitions={partition.name: at for at, partition in enumerate(partitions)},
            partition_exclusive=tuple(partition.exclusive for partition in partitions),
            partition_widths=tuple((part.min_nodes, part.max_nodes) for part in partitions),
            partition_threads=tuple(
                int(nodes.threads[partition.nodes].max(initial=1)) if hello.whole_cores else 1
                for partition in partitions
            ),
            partition_mixed=tuple(
                hello.whole_cores and len(set(nodes.threads[partition.nodes].tolist())) > 1
                for partition in partitions
            ),
            reservations={item.name: at for at, item in enumerate(self._reservations)},
            licences={name: at for at, name in enumerate(licences)},
            memory_consumable=hello.memory_consumable,
            memory_optional=hello.memory_optional,
            features=nodes.features,
            unconsumed=nodes.unconsumed,
            resizable=Feature.RESIZE in self._hello.features,
            dialect=hello.dialect,
        )
        self._odd_names, self._unread_names = odd, unread
        self._partitions = partitions
        self._licence_total = np.array(list(licences.values()), dtype=np.int64)
        self._layout = layout
        self._lowered, self._lowered_bytes = {}, 0
        requests = self._pending.requests()
        self._pending.lower_again(
            [self._lower(request) for request in requests], len(nodes.resources), len(licences)
        )
        held = [pb.Job.FromString(message) for message in self._running.messages()]
        self._running = ReportedRunningJobs(len(nodes.resources), len(licences))
        self._take_running(held)
        self._job_table = self._running_table = None
        self.changes += 1

    def _lower(self, request: bytes) -> Lowered:
        found = self._lowered.get(request)
        if found is None:
            full = self._lowered_bytes + len(request) > _MAX_LOWERED_BYTES
            if full or len(self._lowered) >= _MAX_LOWERED:
                self._lowered.clear()
                self._lowered_bytes = 0
            self._lowered_bytes += len(request)
            found = lower(pb.Request.FromString(request), self._layout)
            self._lowered[request] = found
        return found

    def _each_once(self, jobs: Iterable[pb.Job]) -> dict[str, pb.Job]:
        """The jobs by id: of one listed twice the one that holds nodes, or the last one."""
        found: dict[str, pb.Job] = {}
        impossible: list[pb.Job] = []
        for job in jobs:
            if not job.version:  # the plugin's own stamp, of every job: not a user's to get wrong
                raise SnapshotError(f"jobs[{printable(job.id)}]", "has no version")
            if not is_id(job.id):
                impossible.append(job)
                continue
            if (before := found.get(job.id)) is not None:
                self._contradictory[job.id] = "is listed twice"
                if before.state != pb.JOB_STATE_PENDING == job.state:
                    continue
            found[job.id] = job
        return found | self._counted(impossible) if impossible else found

    def _counted(self, jobs: Iterable[pb.Job]) -> dict[str, pb.Job]:
        """What counts of jobs whose ids are impossible, by keys of their own."""
        found: dict[str, pb.Job] = {}
        before: Counter[str] = Counter()
        self._unaddressable = self._unaddressable or UnaddressableJobs()
        for job in jobs:
            waits = job.state == pb.JOB_STATE_PENDING
            why = "this is not a job id" if waits else "this is not a job id; what it holds counts"
            self._left_out.add(printable(job.id), why)
            if waits:
                self._release(self._unaddressable.forget(job.id))
                continue
            counted = self._unaddressable.counted(job, before[job.id])
            before[job.id] += 1
            found[counted.id] = counted
        return found

    def _release(self, job_id: str | None) -> None:
        """Forgets what a job holds; None: none."""
        if job_id is not None and self._running.remove(job_id):
            self._releases.pop(job_id, None)
            self._left_out.reasons.pop(job_id, None)
            self._running_table = None
            self.changes += 1

    def _forget(self, job_id: str) -> None:
        unaddressable = self._unaddressable
        if unaddressable is not None and unaddressable.is_shared(job_id):
            return
        if self._left_out.reasons.pop(printable(job_id), None) is not None:
            self.gone.append(job_id)
        if is_id(job_id):
            self._release(job_id)
        elif unaddressable is not None:
            self._release(unaddressable.forget(job_id))
        if self._pending.remove(job_id):
            self._job_table = None
            self.gone.append(job_id)
        self._refusals.forget(job_id)

    def _take_pending(self, jobs: Sequence[pb.Job]) -> None:
        numbers, texts, read = [], [], []
        for job in jobs:
            told = self._left_out.unless(job.id, _waiting_numbers, job)
            if told is None:  # it still waits, and keeps its announced start
                if self._pending.remove(job.id):
                    self._job_table = None
                continue
            numbers.append(told)
            texts.append(PENDING_FIELDS.read_texts(job))
            read.append(job)
        if not read:
            return
        requests = [job.request.SerializeToString() for job in read]
        self._pending.put(numbers, texts, requests, [self._lower(each) for each in requests])
        self._job_table = None

    def _take_running(self, jobs: Sequence[pb.Job]) -> None:
        if not jobs:
            return
        self._running.put(
            [RUNNING_FIELDS.read_numbers(job) for job in jobs],
            [RUNNING_FIELDS.read_texts(job) for job in jobs],
            [job.SerializeToString() for job in jobs],
            held := [self._allocated(job) for job in jobs],
        )
        for job, each in zip(jobs, held, strict=True):
            self._releases.pop(job.id, None)
            if each.kept is not None:
                self._releases[job.id] = each.kept, each.until_s
        self._running_table = None

    def _allocated(self, job: pb.Job) -> Allocated:
        read = self._left_out.unless(job.id, self._read_allocation, job)
        if read is None:
            return unread_allocation(job, self._layout, self.nodes.table().capacity)
        return read

    def _read_allocation(self, job: pb.Job) -> Allocated:
        return read_allocation(job, self._layout, self._malleable(job))

    def _malleable(self, job: pb.Job) -> Lowered | None:
        """A running job's options, if the controller can change its width; else None."""
        if not job.request.malleable.max_nodes or Feature.RESIZE not in self._hello.features:
            return None
        return self._lower(job.request.SerializeToString())

    def _begin(self, jobs: Sequence[pb.Job], held: Container[str]) -> None:
        """Records the jobs that started with this report, and whether others ended.

        Args:
            jobs: those that hold nodes now.
            held: ids of those that did before.
        """
        for job in jobs:
            waited = self._pending.remove(job.id)
            if waited:
                self._job_table = None
                self._refusals.forget(job.id)
            allocation = job.allocation
            where = printable(allocation.partition)
            if job.id in self._left_out.reasons or not is_id(job.id):
                continue
            if job.state == pb.JOB_STATE_COMPLETING:
                self.changes += 1
                if waited:  # it ran and ended between two reports
                    self.started.append(Began(job.id, allocation.start_s, where))
            elif job.id not in held:
                self.started.append(Began(job.id, allocation.start_s, where))

    def _with_releases(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot in which nodes being released are rows of their own."""
        running = snapshot.running
        row_of = {job_id: row for row, job_id in enumerate(running.id.tolist())}
        rows = [
            (row_of[job_id], max(until_s, snapshot.now_s + 1), kept, "")
            for job_id, (kept, until_s) in self._releases.items()
            if job_id in row_of
        ]
        return resized(snapshot, Resizes.of(rows))

    @property
    def has_left_out(self) -> bool:
        """Whether some job cannot be read, or a report contradicts itself."""
        return bool(self._left_out.reasons or self._contradictory)

    @property
    def left_out_jobs(self) -> Collection[str]:
        """Ids of the jobs that cannot be read; what is shown of an id that is none."""
        return self._left_out.reasons.keys()

    def first_left_out(self, count: int) -> list[str]:
        """The fields of the first objects that cannot be read."""
        return [field for field, _ in islice(self._unread(), count)]

    def _unread(self) -> Iterator[tuple[str, str]]:
        yield from ((f"jobs[{name}]", why) for name, why in self._left_out.reasons.items())
        yield from ((f"nodes[{name}] ", why) for name, why in self.nodes.left_out.reasons.items())
        yield from self._unread_names.items()

    @property
    def running_changed(self) -> bool:
        """Whether running jobs have changed since their table was last read."""
        return self._running_table is None

    def _running_jobs(self) -> RunningTable:
        if self._running_table is None:
            table = self._running.table()
            if unread := unread_columns(frozenset(self._hello.features)):
                usual = left_out_of(table)
                table = table.with_columns(**{name: usual[name] for name in unread})
            if Feature.SHARE in self._hello.features:
                table = beside_completing(counted(table), self.nodes.table().capacity)
            self._running_table = table
        return self._running_table

    def irregularities(self, now_s: int) -> dict[str, str]:
        """Fields that are irregular and why (`bridge.rpc.reported.irregularities`)."""
        nodes = self.nodes
        found = chain(
            self._unread(),
            ((f"jobs[{name}] ", why) for name, why in self._contradictory.items()),
            self._odd_names.items(),
            irregularities(now_s, nodes.resources, nodes.table(), self._running_jobs()),
        )
        return dict(islice(found, MAX_ODD))

    def snapshot(
        self,
        *,
        now_s: int,
        generation: int,
        ended: EndedTable,
        switches: Callable[[Sequence[str], str], Topology | None],
    ) -> tuple[Snapshot, NDArray[np.int64]]:
        """Returns the snapshot, and the ascending serial numbers of its job rows."""
        if self._job_table is None:
            self._job_table = self._pending.table()
        jobs, serials = self._job_table
        nodes = self.nodes.table()
        snapshot = Snapshot(
            now_s=now_s,
            generation=generation,
            resources=self.nodes.resources,
            nodes=nodes,
            jobs=jobs,
            running=_now_running(self._running_jobs(), now_s),
            partitions=self._partitions,
            reservations=self._reservations,
            licences=tuple(self._layout.licences),
            licence_total=self._licence_total,
            ended=ended,
            topology=switches(nodes.names, self._hello.dialect),
            dialect=self._hello.dialect,
        )
        if self._refusals:
            rows = self._pending.rows_of(self._refusals, serials)
            jobs = self._refusals.overlay(
                jobs, rows, changes=self.changes, now_s=now_s, others=_others(snapshot),
                partitions=self._layout.partitions,
            )  # fmt: skip
            snapshot = dataclasses.replace(snapshot, jobs=jobs)
        return self._with_releases(snapshot) if self._releases else snapshot, serials


def _others(snapshot: Snapshot) -> Others:
    """Returns which of some nodes a job could do without; all of them or none."""
    substitutes, index, jobs = Substitutes(snapshot), snapshot.nodes.index, snapshot.jobs

    def found(row: int, names: frozenset[str]) -> tuple[int, ...]:
        nodes = {index[name] for name in names if name in index} - set(jobs.required[row])
        return tuple(nodes) if substitutes.exist(row, nodes) else ()

    return found


def _now_running(running: RunningTable, now_s: int) -> RunningTable:
    """Clips starts to the present, and ends to their starts."""
    start_s = np.minimum(running.start_s, now_s)
    end_s = np.where((running.end_s > 0) & (running.end_s < start_s), start_s, running.end_s)
    if (start_s == running.start_s).all() and (end_s == running.end_s).all():
        return running
    return running.with_columns(start_s=start_s, end_s=end_s)


def _waiting_numbers(job: pb.Job) -> list[int]:
    """The numbers of a job that waits.

    Raises:
        SnapshotError: its hold is unknown.
    """
    told = PENDING_FIELDS.read_numbers(job)
    if not 0 <= told[_HOLD] <= pb.HOLD_OTHER:
        raise SnapshotError(f"jobs[{job.id}]", "has an unknown hold")
    told[_STARTABLE] = min(told[_STARTABLE], told[_TASKS])
    return told
