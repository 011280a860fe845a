# SPDX-License-Identifier: Apache-2.0
"""The reported state of one controller, kept up to date by deltas.

Words
    epoch        one life of a controller; `bridge.rpc.reported.fence` says which one counts.
    generation   counts the controller's reports within an epoch.

Rules
    1. A delta is applied only to exactly the generation against which it was computed. Otherwise a
       full report is requested.
    2. A report that contradicts itself is an error of the controller, not of a user. The state is
       discarded and a full report is requested, once; if that is no better, the controller gets an
       error with the problem.
    3. An invalid request is an error of the user: that job is held with a reason that says so.
    4. The end of a job is in the snapshot of the report that contained it, and in no other.
    5. A start that the controller refused holds the job for a time
       (`bridge.rpc.reported.refusals`).
    6. Time may run back by `SKEW_S` within an epoch; beyond that, a full report is requested. A
       leap by `LEAP_S` is accepted only if full reports confirm it for `STAYS_S`: then the clock
       was wrong before.
    7. An irregularity (`bridge.rpc.reported.irregularities`) causes one request for a full report,
       at most every `DOUBT_S`; what a full report says is used. Times stated by users are never
       refused, but clipped to valid bounds.
"""

import contextlib
import dataclasses
import logging
import time
from collections.abc import Callable, Container, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from bridge.dialect import DIALECTS, dialect_of
from bridge.errors import RequestError, SnapshotError, UnsupportedVersion
from bridge.model.job import NONE_ENDED, EndedTable, Ending, JobTable, RunningTable
from bridge.model.resizes import Resizes, resized
from bridge.model.snapshot import Partition, Reservation, Snapshot
from bridge.model.topology import Topology
from bridge.planning.queue.implied_switches import imply
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.decode_allocation import check_id, read_allocation
from bridge.rpc.reported.decode_request import MAX_NODE_LIST, Lowered, lower
from bridge.rpc.reported.features import Feature
from bridge.rpc.reported.fence import Fence
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.rpc.reported.irregularities import SKEW_S, irregularities
from bridge.rpc.reported.jobs import (
    PENDING_FIELDS,
    RUNNING_FIELDS,
    PendingJobs,
    RunningJobs,
)
from bridge.rpc.reported.nodes import Nodes
from bridge.rpc.reported.refusals import Refusals
from bridge.rpc.reported.safe_text import printable
from bridge.rpc.reported.table_columns import TableColumns
from bridge.rpc.reported.tables import read_licences, read_partitions, read_reservations
from bridge.state.accuracy import Began
from bridge.units import UNLIMITED_S

_log = logging.getLogger(__name__)

WIRE_VERSION = 1
MAX_JOBS = 2_000_000
MAX_FEATURES = 64
MAX_ENDED = 100_000
"""Most ended jobs used from one report: the last ones."""

LATEST_NOW_S = 32_503_680_000
"""Latest valid clock of a controller: the year 3000."""

LEAP_S = 100 * UNLIMITED_S
STAYS_S = 60
_GAP_S = 3600
"""Longest gap between reports that confirm a leap of the clock, s."""
DOUBT_S = 60
MOST_ODD = 1000
"""Irregularities remembered, so that each causes only one request for a full report."""

LONG = 256
"""Texts of at least this many characters are parsed before the report's turn."""
SHORT_REPORT = 1 << 14
"""Bytes of a report below which no text in it is long enough to delay others."""
_MAX_LOWERED = 200_000
_MAX_LOWERED_BYTES = 64 << 20
_VERSION, _HOLD, _TASKS, _STARTABLE = (
    PENDING_FIELDS.numbers.index(name)
    for name in ("version", "hold", "array_tasks", "array_startable")
)


class Session:
    """The state of one controller, and the snapshots made of it.

    Attributes:
        generation: of the last report applied; 0: none.
        full_requests: number of requests for a full report.
        started: jobs that started with the last report.
        gone: waiting jobs that it removed.
        whole: it was a full one.
        ended: jobs that ended with it.
    """

    def __init__(
        self,
        retry_s: int = 30,
        switches: Callable[[Sequence[str], str], Topology | None] = lambda *_: None,
        switches_wait_s: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Starts without a state.

        Args:
            retry_s: delay before a refused start is retried.
            switches: returns the switches above nodes of these names, in a dialect.
            switches_wait_s: how long jobs without a switch request wait for few leaf switches.
            clock: monotonic clock, s; shows which controllers are silent.
        """
        self._fence = Fence(clock)
        self._switches, self._wait_s = switches, switches_wait_s
        self._warned = False
        self.generation = 0
        self.full_requests = 0
        self.hello = pb.HelloRequest()
        self.started: list[Began] = []
        self.gone: list[str] = []
        self.whole = False
        self.ended = NONE_ENDED
        self._broken = False
        self._odd: dict[str, str] = {}
        self._doubted_s = -DOUBT_S
        self._clock_s: int | None = None
        self._leapt_s = (0, 0)
        self._changes = 0
        self.retry_s = retry_s
        self._refusals = Refusals(retry_s)
        self._clear()

    def _clear(self) -> None:
        self.generation = 0
        self.now_s = 0
        self._nodes = Nodes()
        self._partition_messages = pb.Partitions()
        self._reservation_messages = pb.Reservations()
        self._licence_messages = pb.Licences()
        self._partitions: tuple[Partition, ...] = ()
        self._reservations: tuple[Reservation, ...] = ()
        self._layout = TableColumns(
            self._nodes.index, self._nodes.resources, {}, self._nodes.memory_mib
        )
        self._pending = PendingJobs(2, 0)
        self._running = RunningJobs(2, 0)
        self._releases: dict[str, tuple[NDArray[np.int32], int]] = {}
        self._lowered: dict[bytes, Lowered] = {}
        self._lowered_bytes = 0
        self._job_table: tuple[JobTable, NDArray[np.int64]] | None = None
        self._running_table: RunningTable | None = None
        self._licence_total: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._odd_names: dict[str, str] = {}

    @property
    def epoch(self) -> int:
        """Of the accepted controller; 0 before its hello."""
        return self._fence.epoch

    @property
    def nodes(self) -> NodeIndex:
        """The names of the nodes."""
        return self._nodes.index

    def greet(self, hello: pb.HelloRequest) -> bool:
        """Begins an epoch; a repeated hello changes nothing.

        Returns:
            False if it is a repeated one.

        Raises:
            UnsupportedVersion: the controller uses another version of the wire.
            StaleSnapshot: another controller is accepted.
            SnapshotError: the epoch is 0, or the dialect is unknown.
        """
        if hello.wire_version != WIRE_VERSION:
            raise UnsupportedVersion(
                f"the controller speaks wire version {hello.wire_version}, this service "
                f"{WIRE_VERSION}: install matching versions of plugin and service"
            )
        if hello.epoch == 0:
            raise SnapshotError("epoch", "must not be 0")
        if hello.dialect and hello.dialect not in DIALECTS:
            raise SnapshotError("dialect", f"is none of {', '.join(sorted(DIALECTS))}")
        self._fence.take(hello.epoch)
        hello = _bounded(hello)
        if hello == self.hello:
            return False
        if hello.epoch != self.hello.epoch:
            self._broken, self._odd, self._doubted_s = False, {}, -DOUBT_S
            self._clock_s = None
        self.hello = hello
        self._clear()
        return True

    def apply(self, request: pb.CycleRequest) -> bool:
        """Applies a report.

        Returns:
            False if a full report is needed first.

        Raises:
            StaleSnapshot: a newer controller has taken over.
            SnapshotError: even a full report contradicts itself.
        """
        greeted = self._fence.admit(request.epoch)
        self.started, self.gone, self.ended = [], [], NONE_ENDED
        self.whole = full = request.base_generation == 0
        if not greeted or not self.follows(request):
            return self._ask()
        try:
            if request.generation <= request.base_generation:
                raise SnapshotError("generation", "does not grow")
            self._check_clock(request.now_s, full)
            if full:
                self._clear()
            self._apply(request)
            doubt = self._doubt(request, full)
        except SnapshotError as error:
            self._clear()
            if full and self._broken:
                raise
            _log.warning("asking the controller for everything: %s", error)
            self._broken = True
            return self._ask()
        except BaseException:
            self._clear()  # a partly applied report leaves no valid state
            raise
        if doubt:
            _log.warning("asking the controller for everything: %s", doubt)
            self._doubted_s = request.now_s
            self._clear()
            return self._ask()
        self._broken = False if full else self._broken
        self.generation = request.generation
        self.now_s = self._clock_s = request.now_s
        self._fence.reported()
        return True

    def follows(self, request: pb.CycleRequest) -> bool:
        """Tells whether a report is a full one, or a delta to the last one applied."""
        base = request.base_generation
        return request.epoch == self.epoch and (not base or base == self.generation)

    def prepare(self, request: pb.CycleRequest) -> None:
        """Parses the long node lists of a report into the cache; safe beside a running cycle."""
        if request.ByteSize() < SHORT_REPORT:
            return
        nodes = self._nodes.index
        for job in request.jobs:
            asked = job.request
            for text, unknown_ok in ((asked.required_nodes, False), (asked.excluded_nodes, True)):
                if LONG <= len(text) <= MAX_NODE_LIST:
                    with contextlib.suppress(RequestError):  # reported when the job is read
                        nodes.parse(text, unknown_ok=unknown_ok)

    def _ask(self) -> bool:
        self.full_requests += 1
        return False

    def _check_clock(self, now_s: int, full: bool) -> None:
        """Rule 6."""
        before_s = self._clock_s
        if not 0 <= now_s < LATEST_NOW_S:
            raise SnapshotError("now_s", f"{now_s} is no time")
        if before_s is None:
            return
        if abs(now_s - before_s) >= LEAP_S:
            first_s, last_s = self._leapt_s
            if not 0 <= now_s - last_s <= _GAP_S:
                first_s = now_s
            self._leapt_s = first_s, now_s
            if not full or now_s - first_s < STAYS_S:
                raise SnapshotError("now_s", f"leaps from {before_s} to {now_s}")
            _log.warning("the controller's clock stays at %d: at %d it was wrong", now_s, before_s)
            before_s = now_s + LEAP_S  # no recorded instant is by this clock
        else:
            self._leapt_s = (0, 0)
        if now_s < before_s - SKEW_S:
            if not full:
                raise SnapshotError("now_s", f"runs back from {before_s} to {now_s}")
            self._refusals.clear()  # their times are by another clock
            self._doubted_s = now_s - DOUBT_S

    def _doubt(self, request: pb.CycleRequest, full: bool) -> str:
        """New irregularities, which a lost delta may have caused (rule 7)."""
        if self._running_table is not None and not (request.nodes or request.removed_nodes):
            return ""
        if self._running_table is None:
            self._running_table = self._running.table()
        found = irregularities(
            request.now_s, self._nodes.resources, self._nodes.table(), self._running_table
        )
        odd = dict(islice((*self._odd_names.items(), *islice(found, MOST_ODD)), MOST_ODD))
        fresh = [f"{field} {text}" for field, text in odd.items() if field not in self._odd]
        if not fresh:
            self._odd = odd
            return ""
        shown = "; ".join(fresh[:3]) + (f" and {len(fresh) - 3} more" if len(fresh) > 3 else "")
        if not full and request.now_s - self._doubted_s >= DOUBT_S:
            return shown
        self._odd = odd
        _log.warning("planning with what is odd: %s", shown)
        return ""

    def _apply(self, request: pb.CycleRequest) -> None:
        nodes, renumbered = self._nodes, self._nodes.renumbered
        if nodes.apply(request.nodes, request.removed_nodes):
            self._changes += 1
        changed = nodes.renumbered != renumbered
        for field, kept in (
            ("partitions", self._partition_messages),
            ("reservations", self._reservation_messages),
            ("licences", self._licence_messages),
        ):
            if request.HasField(field) and getattr(request, field) != kept:
                kept.CopyFrom(getattr(request, field))
                changed = True
        jobs = list(request.jobs)
        ids = {job.id for job in jobs}
        if len(ids) < len(jobs):
            raise SnapshotError("jobs", "a job is there twice")
        for job_id in request.removed_jobs:
            if job_id in ids:
                raise SnapshotError("removed_jobs", f"job {job_id[:64]} is changed and removed")
            self._forget(job_id)
        # The former allocation of a changed job may be on removed nodes: remove it first.
        held = {job_id for job_id in ids if self._running.remove(job_id)}
        for job_id in held:
            self._releases.pop(job_id, None)
        if held:
            self._running_table = None
            self._changes += 1
        if changed:
            self._refer()
        if len(self._pending) + len(self._running) + len(jobs) > MAX_JOBS:
            raise SnapshotError("jobs", f"more than {MAX_JOBS} jobs")
        self._take_pending([job for job in jobs if job.state == pb.JOB_STATE_PENDING])
        running = [job for job in jobs if job.state != pb.JOB_STATE_PENDING]
        self._take_running(running)
        self._begin(running, held)
        self.ended = _ended_table(request.ended, request.now_s)

    def _refer(self) -> None:
        """Resolves names to indexes again, after nodes or partitions changed."""
        nodes, hello = self._nodes, self.hello
        odd: dict[str, str] = {}
        partitions = read_partitions(self._partition_messages, nodes.index, odd)
        licences = read_licences(self._licence_messages)
        layout = TableColumns(
            nodes=nodes.index,
            resources=nodes.resources,
            column=nodes.column,
            memory_mib=nodes.memory_mib,
            partitions={partition.name: at for at, partition in enumerate(partitions)},
            partition_exclusive=tuple(partition.exclusive for partition in partitions),
            partition_threads=tuple(
                int(nodes.threads[partition.nodes].max(initial=1)) if hello.whole_cores else 1
                for partition in partitions
            ),
            partition_mixed=tuple(
                hello.whole_cores and len(set(nodes.threads[partition.nodes].tolist())) > 1
                for partition in partitions
            ),
            reservations={
                item.name: at for at, item in enumerate(self._reservation_messages.items)
            },
            licences={name: at for at, name in enumerate(licences)},
            memory_consumable=hello.memory_consumable,
            memory_optional=hello.memory_optional,
            features=nodes.features,
            unconsumed=nodes.unconsumed,
            resizable=Feature.RESIZE in self.hello.features,
            dialect=hello.dialect,
        )
        self._reservations = read_reservations(
            self._reservation_messages, nodes.index, list(licences), odd
        )
        self._odd_names = odd
        self._partitions = partitions
        self._licence_total = np.array(list(licences.values()), dtype=np.int64)
        self._layout = layout
        self._lowered, self._lowered_bytes = {}, 0
        requests = self._pending.requests()
        self._pending.lower_again(
            [self._lower(request) for request in requests], len(nodes.resources), len(licences)
        )
        held = [pb.Job.FromString(message) for message in self._running.messages()]
        self._running = RunningJobs(len(nodes.resources), len(licences))
        self._take_running(held)
        self._job_table = self._running_table = None
        self._changes += 1

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

    def _forget(self, job_id: str) -> None:
        if self._running.remove(job_id):
            self._releases.pop(job_id, None)
            self._running_table = None
            self._changes += 1
        if self._pending.remove(job_id):
            self._job_table = None
            self.gone.append(job_id)
        self._refusals.forget(job_id)

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

    def _take_pending(self, jobs: Sequence[pb.Job]) -> None:
        if not jobs:
            return
        numbers, texts = [], []
        for job in jobs:
            told = PENDING_FIELDS.read_numbers(job)
            if told[_VERSION] == 0 or not 0 <= told[_HOLD] <= pb.HOLD_OTHER:
                raise SnapshotError(f"jobs[{job.id[:64]}]", "has no version or an unknown hold")
            told[_STARTABLE] = min(told[_STARTABLE], told[_TASKS])
            check_id(job.id)
            numbers.append(told)
            texts.append(PENDING_FIELDS.read_texts(job))
        requests = [job.request.SerializeToString() for job in jobs]
        self._pending.put(numbers, texts, requests, [self._lower(each) for each in requests])
        self._job_table = None

    def _take_running(self, jobs: Sequence[pb.Job]) -> None:
        if not jobs:
            return
        for job in jobs:
            check_id(job.id)
        self._running.put(
            [RUNNING_FIELDS.read_numbers(job) for job in jobs],
            [RUNNING_FIELDS.read_texts(job) for job in jobs],
            [job.SerializeToString() for job in jobs],
            held := [read_allocation(job, self._layout, self._malleable(job)) for job in jobs],
        )
        for job, each in zip(jobs, held, strict=True):
            self._releases.pop(job.id, None)
            if each.kept is not None:
                self._releases[job.id] = each.kept, each.until_s
        self._running_table = None

    def _malleable(self, job: pb.Job) -> Lowered | None:
        """A running job's options, if the controller can change its width; else None."""
        if not job.request.malleable.max_nodes or Feature.RESIZE not in self.hello.features:
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
            if job.state == pb.JOB_STATE_COMPLETING:
                self._changes += 1
                if waited:  # it ran and ended between two reports
                    self.started.append(Began(job.id, allocation.start_s, allocation.partition))
            elif job.id not in held:
                self.started.append(Began(job.id, allocation.start_s, allocation.partition))

    def refuse(
        self,
        job_id: str,
        version: int,
        text: str,
        now_s: int,
        *,
        busy: bool = False,
        nodes: Sequence[str] = (),
        partition: str = "",
    ) -> None:
        """Holds a job after a refused start on some nodes (rule 5); busy: briefly."""
        words = printable(text) or "the controller refused to start it"
        self._refusals.add(
            job_id, version, words, changes=self._changes, now_s=now_s, busy=busy, nodes=nodes,
            partition=partition,
        )  # fmt: skip

    def _others(self, jobs: JobTable, row: int, names: frozenset[str]) -> tuple[int, ...]:
        """The nodes of these names, if the job does not need them; otherwise none."""
        index = self._nodes.table().index
        nodes = {index[name] for name in names if name in index} - set(jobs.required[row])
        usable = self._nodes.table().usable
        left = {
            node
            for partition in jobs.partitions[row]
            for node in self._partitions[partition].nodes.tolist()
            if usable[node]
        }
        left -= nodes | set(jobs.excluded[row])
        return tuple(nodes) if len(left) >= jobs.min_nodes[row] else ()

    @property
    def changes(self) -> int:
        """Counts a change that may make a refused start possible."""
        return self._changes

    def next_retry_s(self) -> int | None:
        """When the next refused start may be retried, even without a change."""
        return self._refusals.next_retry_s(self._changes, self.now_s)

    def nodes_awaited(self) -> bool:
        """Whether a waiting job is about to get nodes that look idle."""
        return self._refusals.nodes_awaited(self.now_s)

    def snapshot(self) -> tuple[Snapshot, NDArray[np.int64]]:
        """Returns the snapshot, and the ascending serial numbers of its job rows."""
        if self._job_table is None:
            self._job_table = self._pending.table()
        if self._running_table is None:
            self._running_table = self._running.table()
        jobs, serials = self._job_table
        if self._refusals:
            rows = self._pending.rows_of(self._refusals, serials)
            jobs = self._refusals.overlay(
                jobs, rows, changes=self._changes, now_s=self.now_s, others=self._others,
                partitions=self._layout.partitions,
            )  # fmt: skip
        nodes = self._nodes.table()
        snapshot = Snapshot(
            now_s=self.now_s,
            generation=self.generation,
            resources=self._nodes.resources,
            nodes=nodes,
            jobs=jobs,
            running=_now_running(self._running_table, self.now_s),
            partitions=self._partitions,
            reservations=self._reservations,
            licences=tuple(self._layout.licences),
            licence_total=self._licence_total,
            ended=self.ended,
            topology=self._switches(nodes.names, self.hello.dialect),
            dialect=self.hello.dialect,
        )
        if self._releases:
            snapshot = self._with_releases(snapshot)
        if snapshot.topology is None and not self._warned and jobs.switches.any():
            self._warned = True
            option = dialect_of(snapshot).words.switches_option
            _log.warning("a job asks for %s: left to the controller: no switches known", option)
        return imply(snapshot, self._wait_s), serials


def _now_running(running: RunningTable, now_s: int) -> RunningTable:
    """Clips starts to the present, and ends to their starts."""
    start_s = np.minimum(running.start_s, now_s)
    end_s = np.where((running.end_s > 0) & (running.end_s < start_s), start_s, running.end_s)
    if (start_s == running.start_s).all() and (end_s == running.end_s).all():
        return running
    return dataclasses.replace(running, start_s=start_s, end_s=end_s)


def _ended_table(messages: Sequence[pb.EndedJob], now_s: int) -> EndedTable:
    """The jobs that ended, without those with impossible times."""
    if len(messages) > MAX_ENDED:
        messages = messages[-MAX_ENDED:]
    rows = [
        (
            check_id(job.id),
            printable(job.name),
            printable(job.user),
            job.start_s,
            job.end_s,
            min(job.time_limit_s, UNLIMITED_S),
            job.ending if job.ending in Ending._value2member_map_ else Ending.UNKNOWN,
        )
        for job in messages
        if 0 < job.start_s < job.end_s <= now_s + SKEW_S and job.time_limit_s >= 0
    ]
    if not rows:
        return NONE_ENDED
    kinds = (object, object, object, np.int64, np.int64, np.int64, np.int8)
    columns = zip(*rows, strict=True)
    return EndedTable(*(np.array(c, dtype=k) for c, k in zip(columns, kinds, strict=True)))


def _bounded(hello: pb.HelloRequest) -> pb.HelloRequest:
    """A copy with long texts cut."""
    kept = pb.HelloRequest()
    kept.CopyFrom(hello)
    kept.controller, kept.cluster = printable(hello.controller), printable(hello.cluster)
    del kept.features[:]
    kept.features.extend(printable(word) for word in hello.features[:MAX_FEATURES])
    return kept
