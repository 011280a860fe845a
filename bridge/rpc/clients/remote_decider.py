# SPDX-License-Identifier: Apache-2.0
"""A controller that asks a running service to decide.

`RemoteDecider` behaves exactly like the plugin: it sends a hello, then deltas with the results of
earlier decisions, or a full report if requested; it keeps the announcements it was given.
"""

import time
from collections.abc import Callable
from typing import Any, Self

import grpc

from bridge.errors import ControllerError
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.rpc.clients.changes import changed_nodes, holders, pending_fingerprints
from bridge.rpc.clients.decisions_in_force import DecisionsInForce, ReservationMaker
from bridge.rpc.clients.options import OPTIONS
from bridge.rpc.encode import Messages, ended_jobs
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.pb import scheduler_pb2_grpc
from bridge.rpc.reported.session import WIRE_VERSION
from bridge.rpc.transport.status_codes import error_of

_MAX_WAIT_S = 60.0


class RemoteDecider:
    """Decides for a simulated controller by asking the service; a `bridge.ports.Decide`."""

    def __init__(
        self,
        address: str,
        *,
        reserving: ReservationMaker | None = None,
    ) -> None:
        """Connects with the first decision.

        Args:
            address: in gRPC's form: "unix:/run/schedbridge/bridge.sock".
            reserving: carries out the reservations of operators; None: they are refused.
        """
        self._address = address
        self._channel = grpc.insecure_channel(address, options=OPTIONS)
        self._stub = scheduler_pb2_grpc.SchedulerStub(self._channel)
        self._epoch = time.time_ns() // 1000
        self._service_epoch = 0
        self._generation = 0
        self._decisions = DecisionsInForce(reserving)
        self._forget()

    def _forget(self) -> None:
        """Sends a full report next time."""
        self._acknowledged = 0
        self._messages: Messages | None = None
        self._last: Snapshot | None = None
        self._pending: dict[str, int] = {}
        self._running: dict[str, int] = {}
        self._decisions.forget()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
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
        assert self._messages is not None  # made by _report
        self._decisions.take(reply.decisions, self._messages.nodes, snapshot.licences)
        return self._decisions.plan(snapshot)

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
                controller="simulated controller",
                epoch=self._epoch,
                cluster="simulated",
                features=self._decisions.features,
                memory_consumable=True,
                memory_optional=True,
            ),
        )
        self._service_epoch = reply.service_epoch
        self._forget()

    def _call(self, method: Callable[..., Any], request: Any) -> Any:
        try:
            return method(request, timeout=_MAX_WAIT_S)
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
        pending = dict(zip(jobs.id.tolist(), pending_fingerprints(snapshot).tolist(), strict=True))
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
        self._decisions.keep_announced(pending)
        request.fates.extend(self._decisions.results(snapshot))
        self._pending, self._running = pending, holding
