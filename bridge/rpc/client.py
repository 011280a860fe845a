# SPDX-License-Identifier: Apache-2.0
"""The service from outside: a controller that asks it to decide, and an operator that asks it why.

`RemoteDecider` speaks exactly as the plugin does: a hello, then deltas with the results of earlier
decisions, everything if it is asked for; it keeps the announcements it was given.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Protocol, Self

import grpc
import numpy as np
from numpy.typing import NDArray

from bridge.errors import BridgeError, ControllerError
from bridge.model.job import COLUMNS
from bridge.model.job_columns import Source
from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.resizes import Resizes
from bridge.model.snapshot import Reservation, Snapshot
from bridge.planning.queue.time_windows import end_s
from bridge.rpc.encode import Messages, ended_jobs
from bridge.rpc.pb import operator_pb2, operator_pb2_grpc, scheduler_pb2_grpc
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.rpc.reported.session import WIRE_VERSION
from bridge.rpc.transport.status_codes import error_of
from bridge.units import NEVER, UNLIMITED_S, UNPLANNED

_OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.initial_reconnect_backoff_ms", 50),  # a service that restarts is back soon
    ("grpc.max_reconnect_backoff_ms", 1000),
]
_NO_NODES: NDArray[np.int32] = np.empty(0, dtype=np.int32)


@dataclass(frozen=True, slots=True)
class _Announced:
    """What the service said last of a waiting job."""

    start_s: int
    partition: str
    nodes: NDArray[np.int32]
    reason: Reason


@dataclass(frozen=True, slots=True)
class _Resizing:
    """A resize the service decided, whose result is to be told."""

    decision_id: int
    by_s: int
    nodes: NDArray[np.int32]
    reason: str


@dataclass(frozen=True, slots=True)
class _Start:
    """A start the service decided, whose result is to be told."""

    decision_id: int
    job_id: str
    version: int
    partition: str
    nodes: NDArray[np.int32]
    tasks: NDArray[np.int32]


class Reserving(Protocol):
    """A controller that can make reservations."""

    def reserve(self, reservation: Reservation) -> str:
        """Makes one; returns why not, empty if it is made."""

    def unreserve(self, name: str) -> str:
        """Removes one; returns why not, empty if it is gone."""


class RemoteDecider:
    """Decides for a simulated controller by asking the service; a `bridge.ports.Decide`."""

    def __init__(
        self,
        address: str,
        *,
        timeout_s: float = 60.0,
        controller: str = "simulated controller",
        reserving: Reserving | None = None,
    ) -> None:
        """Connects with the first decision.

        Args:
            address: as gRPC has it: "unix:/run/schedbridge/bridge.sock".
            timeout_s: an answer that takes longer counts as none.
            controller: who calls, for the service's log.
            reserving: carries out the reservations of operators; None: they are refused.
        """
        self._address = address
        self._timeout_s = timeout_s
        self._controller = controller
        self._channel = grpc.insecure_channel(address, options=_OPTIONS)
        self._stub = scheduler_pb2_grpc.SchedulerStub(self._channel)
        self._epoch = time.time_ns() // 1000
        self._service_epoch = 0
        self._generation = 0
        self._starts: list[_Start] = []
        self._resizes: dict[str, _Resizing] = {}
        self._reserving = reserving
        self._orders: list[pb.Fate] = []
        self._forget()

    def _forget(self) -> None:
        """Forgets what the service knows: it will be told everything."""
        self._acknowledged = 0
        self._messages: Messages | None = None
        self._last: Snapshot | None = None
        self._pending: dict[str, int] = {}
        self._running: dict[str, int] = {}
        self._announced: dict[str, _Announced] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection."""
        self._channel.close()

    def decide(self, snapshot: Snapshot) -> Plan:
        """Has one snapshot planned.

        Raises:
            Unreachable: nobody answers.
            ControllerError: the service refuses, or does not understand.
            SnapshotError: a job cannot be said on the wire.
        """
        try:
            reply = self._ask(snapshot)
        except BaseException:
            self._forget()  # nobody knows what arrived
            raise
        self._acknowledged = reply.generation
        self._take(reply)
        return self._plan(snapshot)

    def _ask(self, snapshot: Snapshot) -> pb.CycleReply:
        if self._service_epoch == 0:
            self._greet()
        reply: pb.CycleReply = self._call(self._stub.Cycle, self._report(snapshot))
        if reply.service_epoch != self._service_epoch:
            self._greet()
        if reply.need_full:
            self._forget()
            reply = self._call(self._stub.Cycle, self._report(snapshot))
            if reply.need_full:
                raise ControllerError(f"{self._address} asks for everything again and again")
        return reply

    def _greet(self) -> None:
        reply = self._call(
            self._stub.Hello,
            pb.HelloRequest(
                wire_version=WIRE_VERSION,
                controller=self._controller,
                epoch=self._epoch,
                cluster="simulated",
                features=[
                    "start", "planned_start", "pending_reason", "resize",
                    *(["reserve", "reserve_licences"] if self._reserving is not None else []),
                ],
                memory_consumable=True,
                memory_optional=True,
            ),
        )  # fmt: skip
        self._service_epoch = reply.service_epoch
        self._forget()

    def _call(self, method: Callable[..., Any], request: Any) -> Any:
        try:
            return method(request, timeout=self._timeout_s)
        except grpc.RpcError as error:
            raise error_of(error, self._address) from None

    # ------------------------------------------------------------ out

    def _report(self, snapshot: Snapshot) -> pb.CycleRequest:
        """What changed since the last acknowledged report; everything if there is none."""
        if self._messages is None or not self._messages.fits(snapshot):
            self._forget()
            self._messages = Messages(snapshot)
        messages, last = self._messages, self._last
        self._generation += 1
        request = pb.CycleRequest(
            epoch=self._epoch,
            generation=self._generation,
            base_generation=self._acknowledged,
            now_s=snapshot.now_s,
        )
        if last is None or last.nodes is not snapshot.nodes:
            rows = range(len(snapshot.nodes)) if last is None else _changed_nodes(last, snapshot)
            request.nodes.extend(messages.node(snapshot.nodes, row) for row in rows)
        if last is None or last.partitions is not snapshot.partitions:
            request.partitions.CopyFrom(messages.partitions(snapshot))
        if last is None or last.reservations is not snapshot.reservations:
            request.reservations.CopyFrom(messages.reservations(snapshot))
        if last is None or (last.licences, last.licence_total.tolist()) != (
            snapshot.licences,
            snapshot.licence_total.tolist(),
        ):
            request.licences.CopyFrom(messages.licences(snapshot))
        self._report_jobs(snapshot, messages, request)
        request.ended.extend(ended_jobs(snapshot))
        self._last = snapshot
        return request

    def _report_jobs(
        self, snapshot: Snapshot, messages: Messages, request: pb.CycleRequest
    ) -> None:
        jobs = snapshot.jobs
        pending = dict(zip(jobs.id.tolist(), _pending_prints(snapshot).tolist(), strict=True))
        holding, released = _holders(snapshot)
        known = self._pending
        request.jobs.extend(
            messages.pending(snapshot, row)
            for row, (job_id, mark) in enumerate(pending.items())
            if known.get(job_id) != mark
        )
        known = self._running
        request.jobs.extend(
            messages.running(snapshot, row, released.get(job_id, ()))
            for row, (job_id, mark) in enumerate(holding.items())
            if known.get(job_id) != mark
        )
        gone = (self._pending.keys() | self._running.keys()) - pending.keys() - holding.keys()
        request.removed_jobs.extend(gone)
        for job_id in self._announced.keys() - pending.keys():
            del self._announced[job_id]
        self._report_results(snapshot, request)
        self._pending, self._running = pending, holding

    def _report_results(self, snapshot: Snapshot, request: pb.CycleRequest) -> None:
        request.fates.extend(self._orders)
        self._orders = []
        self._report_resizes(snapshot, request)
        if not self._starts:
            return
        versions = dict(zip(snapshot.jobs.id, snapshot.jobs.version.tolist(), strict=True))
        for start in self._starts:
            refused = versions.get(start.job_id) == start.version
            request.fates.add(
                decision_id=start.decision_id,
                job_id=start.job_id,
                outcome=pb.OUTCOME_REFUSED if refused else pb.OUTCOME_APPLIED,
                text="the controller did not start it" if refused else "",
            )
        self._starts = []

    def _report_resizes(self, snapshot: Snapshot, request: pb.CycleRequest) -> None:
        running = snapshot.running
        for job_id, change in self._resizes.items():
            rows = np.flatnonzero((running.id == job_id) & ~running.releasing)
            done = len(rows) == 0 or np.array_equal(
                running.nodes[running.indptr[rows[0]] : running.indptr[rows[0] + 1]], change.nodes
            )
            request.fates.add(
                decision_id=change.decision_id,
                job_id=job_id,
                outcome=pb.OUTCOME_APPLIED if done else pb.OUTCOME_REFUSED,
                text="" if done else "the controller did not resize it",
            )
        self._resizes = {}

    # ------------------------------------------------------------ in

    def _take(self, reply: pb.CycleReply) -> None:
        assert self._messages is not None  # _report made it
        nodes = self._messages.nodes
        for decision in reply.decisions:
            job_id = decision.job_id
            match decision.WhichOneof("action"):
                case "start":
                    start = decision.start
                    self._starts.append(
                        _Start(
                            decision.id,
                            job_id,
                            decision.job_version,
                            start.partition,
                            nodes.parse(start.nodes),
                            np.array(start.tasks, dtype=np.int32),
                        )
                    )
                case "planned_start":
                    planned = decision.planned_start
                    self._announced[job_id] = _Announced(
                        planned.start_s,
                        planned.partition,
                        nodes.parse(planned.nodes),
                        _reason(planned.reason),
                    )
                case "resize":
                    self._resizes[job_id] = _Resizing(
                        decision.id, decision.resize.by_s, nodes.parse(decision.resize.nodes),
                        decision.resize.reason,
                    )  # fmt: skip
                case "reserve" | "unreserve":
                    self._obey(decision, nodes)
                case "pending":
                    why = _reason(decision.pending)
                    start_s = UNPLANNED if why.can_ever_run else NEVER
                    self._announced[job_id] = _Announced(start_s, "", _NO_NODES, why)

    def _obey(self, decision: pb.Decision, nodes: NodeIndex) -> None:
        """Has a reservation made or removed."""
        why = "this controller said it cannot do that"
        if self._reserving is not None and decision.HasField("reserve"):
            asked = decision.reserve
            members = nodes.parse(asked.nodes)
            known = () if self._last is None else self._last.licences
            kept = dict(word.split(":") for word in asked.licences.split(",") if word)
            licences = np.array([int(kept.get(name, 0)) for name in known], dtype=np.int64)
            why = self._reserving.reserve(
                Reservation(asked.name, asked.start_s, asked.end_s, members, licences)
            )
        elif self._reserving is not None:
            why = self._reserving.unreserve(decision.unreserve.name)
        outcome = pb.OUTCOME_REFUSED if why else pb.OUTCOME_APPLIED
        self._orders.append(pb.Fate(decision_id=decision.id, outcome=outcome, text=why))

    def _plan(self, snapshot: Snapshot) -> Plan:
        """The decisions in force as a plan: starts first, then the waiting jobs as they stand."""
        now_s, jobs = snapshot.now_s, snapshot.jobs
        row_of = {job_id: row for row, job_id in enumerate(jobs.id.tolist())}
        partition_of = {partition.name: at for at, partition in enumerate(snapshot.partitions)}
        rows = _Rows(snapshot)
        for start in self._starts:
            row = row_of[start.job_id]
            tasks = start.tasks if len(start.tasks) else None
            rows.add(row, now_s, partition_of[start.partition], start.nodes, tasks=tasks)
        started = {start.job_id for start in self._starts}
        for job_id, row in row_of.items():
            said = self._announced.get(job_id)
            if said is None or (said.start_s <= now_s and said.start_s != UNPLANNED):
                if job_id not in started:
                    why = said.reason if said is not None else _UNKNOWN
                    rows.add(row, UNPLANNED, -1, _NO_NODES, reason=why)
            elif job_id not in started or (
                jobs.array_tasks[row] > 1 and said.start_s not in (NEVER, UNPLANNED)
            ):
                at = partition_of.get(said.partition, -1)
                rows.add(row, said.start_s, at, said.nodes, reason=said.reason)
        return replace(rows.plan(), resizes=self._resizing(snapshot))

    def _resizing(self, snapshot: Snapshot) -> Resizes:
        """The running jobs that the service has just decided to resize."""
        running = snapshot.running
        row_of = {
            job_id: row
            for row, job_id in enumerate(running.id.tolist())
            if not running.releasing[row]
        }
        return Resizes.of(
            [
                (row_of[job_id], change.by_s, change.nodes, change.reason)
                for job_id, change in self._resizes.items()
                if job_id in row_of
            ]
        )


_UNKNOWN = Reason(ReasonCode.OTHER, "the service has not said yet")


class _Rows:
    """Collects the rows of a plan."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._scalars: list[tuple[int, int, int, int]] = []  # job, start, end, partition
        self._nodes: list[NDArray[np.int32]] = []
        self._tasks: list[NDArray[np.int32]] = []
        self._reasons: list[Reason | None] = []

    def add(
        self,
        job: int,
        start_s: int,
        partition: int,
        nodes: NDArray[np.int32],
        *,
        tasks: NDArray[np.int32] | None = None,
        reason: Reason | None = None,
    ) -> None:
        """Adds a row; without `tasks` the job's tasks are spread evenly."""
        end_at_s = 0
        if start_s not in (NEVER, UNPLANNED):
            end_at_s = self._end_s(job, partition, start_s)
        if tasks is None or len(tasks) != len(nodes):
            tasks = _even(int(self._snapshot.jobs.tasks[job]), len(nodes))
        self._scalars.append((job, start_s, end_at_s, partition))
        self._nodes.append(nodes)
        self._tasks.append(tasks)
        self._reasons.append(reason)

    def _end_s(self, job: int, partition: int, start_s: int) -> int:
        part, jobs = self._snapshot.partitions[partition], self._snapshot.jobs
        stated = int(jobs.time_limit_s[job])
        limit_s = stated or part.default_time_s or part.max_time_s or UNLIMITED_S
        if not jobs.deadline_s[job]:
            return start_s + limit_s
        columns = (np.array([value], dtype=np.int64) for value in (job, start_s, limit_s))
        return int(end_s(jobs, *columns)[0])

    def plan(self) -> Plan:
        """The rows as a plan."""
        table = np.array(self._scalars, dtype=np.int64).reshape(-1, 4)
        widths = [len(nodes) for nodes in self._nodes]
        return Plan(
            now_s=self._snapshot.now_s,
            policy="the service's",
            job=table[:, 0].astype(np.int32),
            start_s=table[:, 1].copy(),
            end_s=table[:, 2].copy(),
            partition=table[:, 3].astype(np.int32),
            indptr=np.concatenate(([0], np.cumsum(widths))).astype(np.int64),
            nodes=np.concatenate([*self._nodes, _NO_NODES]),
            tasks=np.concatenate([*self._tasks, _NO_NODES]),
            reasons=tuple(self._reasons),
        )


def _even(tasks: int, nodes: int) -> NDArray[np.int32]:
    if tasks == 0:
        return np.zeros(nodes, dtype=np.int32)
    share = np.full(nodes, tasks // nodes if nodes else 0, dtype=np.int32)
    share[: tasks % nodes if nodes else 0] += 1
    return share


def _reason(message: pb.Pending) -> Reason:
    known = message.code in ReasonCode._value2member_map_
    return Reason(ReasonCode(message.code) if known else ReasonCode.OTHER, message.text)


_PRINTED = tuple(
    each for each in COLUMNS if each.is_number and each.source in (Source.MESSAGE, Source.REQUEST)
)


def _pending_prints(snapshot: Snapshot) -> NDArray[np.int64]:
    """For each waiting job a number that changes with what is reported of it."""
    jobs = snapshot.jobs
    mark = np.zeros(len(jobs), dtype=np.int64)
    for each in _PRINTED:
        column = getattr(jobs, each.name)
        same_size = column.dtype == np.uint64
        mark = (mark ^ (column.view(np.int64) if same_size else column)) * 1_000_003
    return mark


def _running_prints(snapshot: Snapshot) -> NDArray[np.int64]:
    """For each running job a number that changes with what is reported of it."""
    running = snapshot.running
    sums = np.concatenate(([0], np.cumsum(running.nodes.astype(np.int64) * running.nodes + 1)))
    held = sums[running.indptr[1:]] - sums[running.indptr[:-1]]
    mark: NDArray[np.int64] = (running.start_s * 1_000_003 ^ running.end_s) * 1_000_003 ^ held
    return mark * 2 + running.adapting


def _holders(snapshot: Snapshot) -> tuple[dict[str, int], dict[str, list[int]]]:
    """Running jobs in the order of the table with their prints, and the rows they are releasing."""
    running, prints = snapshot.running, _running_prints(snapshot).tolist()
    holding: dict[str, int] = {}
    released: dict[str, list[int]] = {}
    for row, (job_id, releasing) in enumerate(
        zip(running.id.tolist(), running.releasing.tolist(), strict=True)
    ):
        if releasing:
            holding[job_id] = holding[job_id] * 31 + prints[row]
            released.setdefault(job_id, []).append(row)
        else:
            holding[job_id] = prints[row]
    return holding, released


def _changed_nodes(last: Snapshot, snapshot: Snapshot) -> list[int]:
    """Rows of the nodes that are other than before; names and resources are the same."""
    before, now = last.nodes, snapshot.nodes
    differs = (before.capacity != now.capacity).any(axis=1)
    differs |= (before.usable != now.usable) | (before.weight != now.weight)
    words = (before.features, before.state) != (now.features, now.state)
    if words:
        differs |= np.fromiter(
            (
                before.features[row] != now.features[row] or before.state[row] != now.state[row]
                for row in range(len(now))
            ),
            dtype=bool,
            count=len(now),
        )
    rows: list[int] = np.flatnonzero(differs).tolist()
    return rows


_ORDER_S = 60.0
"""What the controller has to carry out takes until its next call, at least."""


class OperatorClient:
    """Asks a running service what operators ask."""

    def __init__(self, address: str, *, timeout_s: float = 10.0) -> None:
        self._address = address
        self._timeout_s = timeout_s
        self._channel = grpc.insecure_channel(address, options=_OPTIONS)
        self._stub = operator_pb2_grpc.OperatorStub(self._channel)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._channel.close()

    def _call(
        self, method: Callable[..., Any], request: Any, timeout_s: float | None = None
    ) -> Any:
        try:
            return method(request, timeout=timeout_s or self._timeout_s)
        except grpc.RpcError as error:
            found: BridgeError = error_of(error, self._address)
            raise found from None

    def status(self) -> operator_pb2.StatusReply:
        """How the service fares."""
        reply: operator_pb2.StatusReply = self._call(
            self._stub.Status, operator_pb2.StatusRequest()
        )
        return reply

    def plan(self, limit: int = 0) -> operator_pb2.PlanReply:
        """The plan of the last cycle; at most `limit` jobs, 0: all."""
        reply: operator_pb2.PlanReply = self._call(
            self._stub.Plan, operator_pb2.PlanRequest(limit=limit)
        )
        return reply

    def explain(self, job_id: str) -> operator_pb2.ExplainReply:
        """Why a job waits."""
        reply: operator_pb2.ExplainReply = self._call(
            self._stub.Explain, operator_pb2.ExplainRequest(job_id=job_id)
        )
        return reply

    def topology(self) -> operator_pb2.TopologyReply:
        """The switches, and who is on them."""
        reply: operator_pb2.TopologyReply = self._call(
            self._stub.Topology, operator_pb2.TopologyRequest()
        )
        return reply

    def policy(self, replacement: str = "") -> operator_pb2.PolicyReply:
        """The policy; with a replacement (preset or YAML) it is exchanged first."""
        reply: operator_pb2.PolicyReply = self._call(
            self._stub.Policy, operator_pb2.PolicyRequest(set=replacement)
        )
        return reply

    def reserve(self, request: operator_pb2.ReserveRequest) -> operator_pb2.ReserveReply:
        """Has a reservation made; waits for the controller."""
        reply: operator_pb2.ReserveReply = self._call(
            self._stub.Reserve, request, timeout_s=_ORDER_S
        )
        return reply

    def unreserve(self, name: str) -> None:
        """Has a reservation removed; waits for the controller."""
        self._call(
            self._stub.Unreserve, operator_pb2.UnreserveRequest(name=name), timeout_s=_ORDER_S
        )

    def record(self, min_queue: int = 0, wait_s: int = 10) -> operator_pb2.RecordReply:
        """Waits for a cycle and gives it whole; without one the reply is empty."""
        reply: operator_pb2.RecordReply = self._call(
            self._stub.Record,
            operator_pb2.RecordRequest(min_queue=min_queue, wait_s=wait_s),
            timeout_s=wait_s + self._timeout_s,
        )
        return reply

    def accuracy(self, partition: str = "") -> operator_pb2.AccuracyReply:
        """How announced starts came true; of one partition, or of each and all together."""
        reply: operator_pb2.AccuracyReply = self._call(
            self._stub.Accuracy, operator_pb2.AccuracyRequest(partition=partition)
        )
        return reply
