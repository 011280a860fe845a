# SPDX-License-Identifier: Apache-2.0
"""The link's end of the wire: a hello, then full reports and deltas, as the plugin sends them.

Rules
    1. A report is a delta against the last one that the service acknowledged; after any failure,
       and after a restart of the service, a full one.
    2. Results are repeated until a reply acknowledges the report that they were in.
    3. A decision whose number was used before is ignored.
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Protocol

import grpc

from bridge.errors import ControllerError, Unreachable, UnsupportedVersion
from bridge.rpc.clients.options import OPTIONS
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.pb import scheduler_pb2_grpc
from bridge.rpc.transport.status_codes import error_of

_log = logging.getLogger(__name__)

WIRE_VERSION = 1


class News(IntEnum):
    """What a report contains beside what the service knows."""

    NONE = 0
    RUNS = 1
    """Jobs run, and starts were carried out: nothing else is decided because of it."""
    CHANGES = 2


class Reported(Protocol):
    """A complete report (`bridge.pbs.report`), which never changes.

    Unchanged messages are the same objects.
    """

    @property
    def nodes(self) -> Mapping[str, pb.Node]: ...

    @property
    def jobs(self) -> Mapping[str, pb.Job]: ...

    @property
    def partitions(self) -> pb.Partitions: ...

    @property
    def reservations(self) -> pb.Reservations: ...

    @property
    def licences(self) -> pb.Licences: ...


@dataclass
class _Sent:
    """What the service holds."""

    nodes: Mapping[str, pb.Node] = field(default_factory=dict)
    jobs: Mapping[str, pb.Job] = field(default_factory=dict)
    partitions: pb.Partitions | None = None
    reservations: pb.Reservations | None = None
    licences: pb.Licences | None = None


def _news(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Any]:
    """Messages that are new or differ."""
    if new is old:
        return []
    return [
        message
        for name, message in new.items()
        if (known := old.get(name)) is not message and known != message
    ]


class Stream:
    """One controller of the service at an address."""

    def __init__(
        self,
        address: str,
        hello: pb.HelloRequest,
        *,
        stub: Any = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Prepares it; nothing is sent yet.

        Args:
            address: in gRPC's form: "unix:/run/schedbridge/bridge.sock".
            hello: what to say first; the epoch is set here.
            stub: in place of gRPC's, for tests.
            clock: Unix time, s: a later life of the link has a larger epoch.
        """
        self._address = address
        self._channel = None if stub is not None else grpc.insecure_channel(address, OPTIONS)
        self._stub = stub or scheduler_pb2_grpc.SchedulerStub(self._channel)
        self._hello = pb.HelloRequest()
        self._hello.CopyFrom(hello)
        self._hello.wire_version, self._hello.epoch = WIRE_VERSION, int(clock() * 1e6)
        self._service_epoch = 0
        self._generation = 0
        self._decided = 0
        self._sent: _Sent | None = None
        self._results: list[pb.Fate] = []
        self._logged_epoch = 0
        self.greeted = pb.HelloReply()

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()

    def name_cluster(self, name: str) -> None:
        """States the server's name in hellos to come."""
        self._hello.cluster = name

    def forget(self) -> None:
        """Sends a full report next time."""
        self._sent = None

    @property
    def is_full(self) -> bool:
        """Whether the next report is a full one."""
        return self._sent is None

    def note(self, results: Sequence[pb.Fate]) -> None:
        """Sends results of decisions with the next report."""
        self._results.extend(results)

    def news(self, report: Reported) -> News:
        """Tells what a report would contain."""
        sent = self._sent
        if sent is None or self._has_changes(sent, report):
            return News.CHANGES
        jobs = _news(sent.jobs, report.jobs)
        if any(job.state != pb.JOB_STATE_RUNNING for job in jobs):
            return News.CHANGES
        return News.RUNS if jobs or self._results else News.NONE

    def _has_changes(self, sent: _Sent, report: Reported) -> bool:
        return bool(
            any(result.outcome != pb.OUTCOME_APPLIED for result in self._results)
            or _news(sent.nodes, report.nodes)
            or sent.jobs.keys() - report.jobs.keys()
            or sent.nodes.keys() - report.nodes.keys()
            or sent.partitions != report.partitions
            or sent.reservations != report.reservations
            or sent.licences != report.licences
        )

    def ask(
        self,
        report: Reported,
        now_s: int,
        *,
        timeout_s: float,
        ended: Sequence[pb.EndedJob] = (),
        status: pb.ControllerStatus | None = None,
        meanwhile: Callable[[], None] = lambda: None,
    ) -> pb.CycleReply:
        """Sends a report and returns the reply, with decisions that are new.

        Args:
            now_s: the clock, Unix seconds.
            meanwhile: is called while the service decides; it must raise nothing.

        Raises:
            Unreachable: no answer in time.
            StaleSnapshot: another controller is accepted.
            ControllerError: the service refuses, or does not understand.
        """
        until = time.monotonic() + timeout_s
        try:
            for _ in range(3):
                if not self._service_epoch:
                    self._greet(until)
                full = self._sent is None
                reply: pb.CycleReply = self._call(
                    self._stub.Cycle, self._next(report, now_s, ended, status), until, meanwhile
                )
                if reply.service_epoch != self._service_epoch:
                    self._service_epoch, self._sent = 0, None
                elif reply.need_full or reply.generation != self._generation:
                    self._sent = None
                    if full:
                        break
                else:
                    return self._accept(report, reply)
            raise ControllerError(f"{self._address} does not accept a full report")
        except BaseException:
            self._sent = None  # unknown what arrived
            raise

    def _greet(self, until: float) -> None:
        reply: pb.HelloReply = self._call(self._stub.Hello, self._hello, until)
        if reply.wire_version != WIRE_VERSION or not reply.service_epoch:
            raise UnsupportedVersion("the service speaks another wire version")
        if self._service_epoch != reply.service_epoch:
            self._results.clear()  # of decisions that no service remembers
        if reply.service_epoch != self._logged_epoch:
            self._logged_epoch = reply.service_epoch
            left_out = [each for each in reply.features if each not in self._hello.features]
            _log.info(
                "the service leaves out actions that this link does not carry out: %s",
                ", ".join(left_out) or "none",
            )
        self._service_epoch, self._decided, self.greeted = reply.service_epoch, 0, reply
        self._sent = None

    def _next(
        self,
        report: Reported,
        now_s: int,
        ended: Sequence[pb.EndedJob],
        status: pb.ControllerStatus | None,
    ) -> pb.CycleRequest:
        """The next report on the wire."""
        sent = self._sent or _Sent()
        base = 0 if self._sent is None else self._generation
        self._generation += 1
        request = pb.CycleRequest(
            epoch=self._hello.epoch,
            generation=self._generation,
            base_generation=base,
            now_s=now_s,
            jobs=_news(sent.jobs, report.jobs),
            removed_jobs=sorted(sent.jobs.keys() - report.jobs.keys()),
            nodes=_news(sent.nodes, report.nodes),
            removed_nodes=sorted(sent.nodes.keys() - report.nodes.keys()),
            fates=self._results,
            ended=ended,
        )
        if sent.partitions != report.partitions:
            request.partitions.CopyFrom(report.partitions)
        if sent.reservations != report.reservations:
            request.reservations.CopyFrom(report.reservations)
        if sent.licences != report.licences:
            request.licences.CopyFrom(report.licences)
        if status is not None:
            request.status.CopyFrom(status)
        return request

    def _accept(self, report: Reported, reply: pb.CycleReply) -> pb.CycleReply:
        self._sent = _Sent(
            report.nodes, report.jobs, report.partitions, report.reservations, report.licences
        )
        self._results = []
        before = self._decided
        self._decided = max([before, *(decision.id for decision in reply.decisions)])
        used = [decision for decision in reply.decisions if decision.id <= before]
        if used:
            kept = [decision for decision in reply.decisions if decision.id > before]
            del reply.decisions[:]
            reply.decisions.extend(kept)
        return reply

    def _call(
        self,
        method: Any,
        request: Any,
        until: float,
        meanwhile: Callable[[], None] | None = None,
    ) -> Any:
        left_s = until - time.monotonic()
        if left_s <= 0:
            raise Unreachable(f"no answer from {self._address} in time")
        try:
            if meanwhile is None:
                return method(request, timeout=left_s)
            if not hasattr(method, "future"):
                reply = method(request, timeout=left_s)
                meanwhile()
                return reply
            future = method.future(request, timeout=left_s)
            meanwhile()
            return future.result()
        except grpc.RpcError as error:
            raise error_of(error, self._address) from None
