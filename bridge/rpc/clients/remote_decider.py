# SPDX-License-Identifier: Apache-2.0
"""A controller that asks a running service to decide.

`RemoteDecider` behaves exactly like the plugin: it sends a hello, then deltas with the results of
earlier decisions, or a full report if requested; it keeps the announcements it was given.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import grpc
import numpy as np
from numpy.typing import NDArray

from bridge.errors import ControllerError
from bridge.model.coscheduling import requeues
from bridge.model.decisions.power_saving import NO_POWER_CHANGES
from bridge.model.decisions.quotas import USUAL_WEIGHT, Quotas
from bridge.model.decisions.resizes import Resizes
from bridge.model.job_columns import objects
from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.snapshot import Reservation, Snapshot
from bridge.rpc.clients.changes import changed_nodes, holders, pending_prints
from bridge.rpc.clients.options import OPTIONS
from bridge.rpc.clients.plan_rows import NO_NODES, PlanRows
from bridge.rpc.encode import Messages, ended_jobs
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.pb import scheduler_pb2_grpc
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.rpc.reported.session import WIRE_VERSION
from bridge.rpc.transport.status_codes import error_of
from bridge.units import NEVER, UNPLANNED


@dataclass(frozen=True, slots=True)
class _Announced:
    """The service's last announcement for a waiting job."""

    start_s: int
    partition: str
    nodes: NDArray[np.int32]
    reason: Reason


@dataclass(frozen=True, slots=True)
class _Resizing:
    """A resize that the service decided, whose result must be reported."""

    decision_id: int
    by_s: int
    nodes: NDArray[np.int32]
    reason: str


@dataclass(frozen=True, slots=True)
class _Start:
    """A start that the service decided, whose result must be reported."""

    decision_id: int
    job_id: str
    version: int
    partition: str
    nodes: NDArray[np.int32]
    tasks: NDArray[np.int32]
    host_id: str


class ReservationMaker(Protocol):
    """A controller that can make reservations."""

    def reserve(self, reservation: Reservation) -> str:
        """Makes one; returns an empty text, or why not."""

    def unreserve(self, name: str) -> str:
        """Removes one; returns an empty text, or why not."""


class RemoteDecider:
    """Decides for a simulated controller by asking the service; a `bridge.ports.Decide`."""

    def __init__(
        self,
        address: str,
        *,
        timeout_s: float = 60.0,
        controller: str = "simulated controller",
        reserving: ReservationMaker | None = None,
    ) -> None:
        """Connects with the first decision.

        Args:
            address: in gRPC's form: "unix:/run/schedbridge/bridge.sock".
            timeout_s: maximum time of an answer.
            controller: name of the caller, for the service's log.
            reserving: carries out the reservations of operators; None: they are refused.
        """
        self._address = address
        self._timeout_s = timeout_s
        self._controller = controller
        self._channel = grpc.insecure_channel(address, options=OPTIONS)
        self._stub = scheduler_pb2_grpc.SchedulerStub(self._channel)
        self._epoch = time.time_ns() // 1000
        self._service_epoch = 0
        self._generation = 0
        self._starts: list[_Start] = []
        self._resizes: dict[str, _Resizing] = {}
        self._power = NO_POWER_CHANGES
        self._quotas: dict[str, tuple[int, int]] = {}
        self._requeues: list[tuple[str, str]] = []
        self._reserving = reserving
        self._orders: list[pb.Fate] = []
        self._forget()

    def _forget(self) -> None:
        """Sends a full report next time."""
        self._acknowledged = 0
        self._messages: Messages | None = None
        self._last: Snapshot | None = None
        self._pending: dict[str, int] = {}
        self._running: dict[str, int] = {}
        self._announced: dict[str, _Announced] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connection."""
        self._channel.close()

    def decide(self, snapshot: Snapshot) -> Plan:
        """Requests a plan for a snapshot.

        Raises:
            Unreachable: the service does not answer.
            ControllerError: the service refuses, or does not understand.
            SnapshotError: a job cannot be represented on the wire.
        """
        try:
            reply = self._ask(snapshot)
        except BaseException:
            self._forget()  # unknown which of them arrived
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
                raise ControllerError(f"{self._address} keeps requesting full reports")
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
                    "start", "planned_start", "pending_reason", "resize", "power", "quota",
                    "share",
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
        """The changes since the last acknowledged report; everything if there is none."""
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
            rows = range(len(snapshot.nodes)) if last is None else changed_nodes(last, snapshot)
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
        pending = dict(zip(jobs.id.tolist(), pending_prints(snapshot).tolist(), strict=True))
        holding, released = holders(snapshot)
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
        assert self._messages is not None  # made by _report
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
                            start.host_job_id,
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
                case "power":
                    named = nodes.parse(decision.power.nodes)
                    if decision.power.up:
                        self._power = replace(self._power, up=named)
                    else:
                        self._power = replace(self._power, down=named)
                    self._carried_out(decision)
                case "quota":
                    quota = decision.quota
                    self._quotas[job_id] = quota.milli_cpus_per_node, quota.weight or USUAL_WEIGHT
                    self._carried_out(decision)
                case "requeue":
                    self._requeues.append((job_id, decision.requeue.reason))
                    self._carried_out(decision)
                case "reserve" | "unreserve":
                    self._obey(decision, nodes)
                case "pending":
                    why = _reason(decision.pending)
                    start_s = UNPLANNED if why.can_ever_run else NEVER
                    self._announced[job_id] = _Announced(start_s, "", NO_NODES, why)

    def _carried_out(self, decision: pb.Decision) -> None:
        self._orders.append(
            pb.Fate(decision_id=decision.id, job_id=decision.job_id, outcome=pb.OUTCOME_APPLIED)
        )

    def _obey(self, decision: pb.Decision, nodes: NodeIndex) -> None:
        """Makes or removes a reservation."""
        why = "this controller cannot do that"
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
        """The decisions in force as a plan: starts first, then the waiting jobs."""
        now_s, jobs = snapshot.now_s, snapshot.jobs
        row_of = {job_id: row for row, job_id in enumerate(jobs.id.tolist())}
        partition_of = {partition.name: at for at, partition in enumerate(snapshot.partitions)}
        rows = PlanRows(snapshot)
        for start in self._starts:
            row = row_of[start.job_id]
            tasks = start.tasks if len(start.tasks) else None
            rows.add(
                row, now_s, partition_of[start.partition], start.nodes, tasks=tasks,
                host_id=start.host_id,
            )  # fmt: skip
        started = {start.job_id for start in self._starts}
        for job_id, row in row_of.items():
            known = self._announced.get(job_id)
            if known is None or (known.start_s <= now_s and known.start_s != UNPLANNED):
                if job_id not in started:
                    why = known.reason if known is not None else _UNKNOWN
                    rows.add(row, UNPLANNED, -1, NO_NODES, reason=why)
            elif job_id not in started or (
                jobs.array_tasks[row] > 1 and known.start_s not in (NEVER, UNPLANNED)
            ):
                at = partition_of.get(known.partition, -1)
                rows.add(row, known.start_s, at, known.nodes, reason=known.reason)
        power, self._power = self._power, NO_POWER_CHANGES
        requeued, self._requeues = requeues(self._requeues), []
        return replace(
            rows.plan(), resizes=self._resizing(snapshot), power=power, requeues=requeued,
            quotas=self._quotas_in_force(snapshot),
        )  # fmt: skip

    def _quotas_in_force(self, snapshot: Snapshot) -> Quotas:
        """Of the running jobs; those of ended ones are forgotten."""
        there = set(snapshot.running.id.tolist())
        self._quotas = {
            job_id: quota
            for job_id, quota in self._quotas.items()
            if job_id in there and quota != (0, USUAL_WEIGHT)
        }
        quotas = np.array(list(self._quotas.values()), dtype=np.int64).reshape(-1, 2)
        return Quotas(objects(self._quotas), quotas[:, 0].copy(), quotas[:, 1].copy())

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


_UNKNOWN = Reason(ReasonCode.OTHER, "the service has not answered yet")


def _reason(message: pb.Pending) -> Reason:
    known = message.code in ReasonCode._value2member_map_
    return Reason(ReasonCode(message.code) if known else ReasonCode.OTHER, message.text)
