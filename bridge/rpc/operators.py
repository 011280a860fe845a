# SPDX-License-Identifier: Apache-2.0
"""What operators and users may ask: status, plan, explain, topology, policy, accuracy; and orders.

Reads never wait for a cycle.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

import grpc

from bridge.errors import ControllerError
from bridge.registry import SIMULATION_ONLY, choices
from bridge.rpc.accuracy import accuracy_reply
from bridge.rpc.cycles import Cycles, Published
from bridge.rpc.explain import explain, planned_jobs
from bridge.rpc.nearest import NearestChanges
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.pb import operator_pb2_grpc
from bridge.rpc.places import topology_reply
from bridge.rpc.policy_switch import PolicySwitch
from bridge.rpc.reservations import reserve, unreserve
from bridge.rpc.server import answering
from bridge.starts import Kept
from bridge.store import Slow
from bridge.units import NEVER, UNPLANNED

MOST_READ = 10_000
"""Most jobs of the plan that an ordinary user gets at once; writing them takes a tenth of a second
in which cycles are slower."""

USERS_SHARE = 0.2
"""Share of one core that ordinary users' questions of what if may take."""


Record = Callable[[int, float], tuple[bytes, int] | None]
"""Least queue and seconds to wait, to the next such cycle as a file and its generation.

Raises ControllerError if somebody else waits."""

MOST_WAIT_S, USUAL_WAIT_S = 60, 10


class Operator(operator_pb2_grpc.OperatorServicer):  # type: ignore[misc]
    """The operators' service; one object for administrators and one for everybody."""

    def __init__(
        self,
        cycles: Cycles,
        switch: PolicySwitch,
        *,
        service: str,
        failures: Callable[[], int],
        admin: bool,
        accuracy: Callable[[], Kept] = Kept,
        record: Record | None = None,
    ) -> None:
        self._cycles = cycles
        self._switch = switch
        self._service = service
        self._failures = failures
        self._admin = admin
        self._accuracy = accuracy
        self._record = record
        self._nearest = NearestChanges(switch.conditions, share=1.0 if admin else USERS_SHARE)
        self._began = time.monotonic()

    @answering
    def Status(self, request: pb.StatusRequest, context: grpc.ServicerContext) -> pb.StatusReply:  # noqa: N802, D102
        del request, context
        cycles, now = self._cycles, time.monotonic()
        counts, hello, published = cycles.counts, cycles.session.hello, cycles.published
        reply = pb.StatusReply(
            service=self._service,
            policy=self._switch.name(),
            uptime_s=now - self._began,
            since_last_cycle_s=-1 if counts.last_call is None else now - counts.last_call,
            controller=hello.controller,
            cluster=hello.cluster,
            cycles=counts.cycles,
            cycle_ms_last=counts.wall_ms[-1] if counts.wall_ms else 0,
            cycle_ms_p99=counts.wall_ms_p99(),
            decisions=dict(counts.decisions),
            refusals=dict(counts.refusals),
            controller_status=counts.status,
            policy_failures=self._failures(),
        )
        if published is not None:
            snapshot, plan = published.snapshot, published.plan
            planned = (plan.start_s != NEVER) & (plan.start_s != UNPLANNED)
            reply.generation = snapshot.generation
            reply.jobs_pending = len(snapshot.jobs)
            reply.jobs_running = len(snapshot.running)
            reply.jobs_planned = len(set(plan.job[planned].tolist()))
            reply.nodes = len(snapshot.nodes)
            reply.nodes_usable = int(snapshot.nodes.usable.sum())
            reply.unknown_resources.extend(self._switch.unknown(snapshot))
        return reply

    @answering
    def Plan(self, request: pb.PlanRequest, context: grpc.ServicerContext) -> pb.PlanReply:  # noqa: N802, D102
        published = self._published(context)
        limit = request.limit
        if not self._admin:
            limit = min(limit or MOST_READ, MOST_READ)
        return pb.PlanReply(
            now_s=published.snapshot.now_s,
            policy=published.plan.policy,
            jobs=planned_jobs(published, limit),
        )

    @answering
    def Explain(  # noqa: N802, D102
        self, request: pb.ExplainRequest, context: grpc.ServicerContext
    ) -> pb.ExplainReply:
        reply = explain(self._published(context), request.job_id, self._nearest.of)
        if reply is None:
            shown = request.job_id[:64]
            _refuse(
                context,
                grpc.StatusCode.NOT_FOUND,
                f"no job '{shown}' is waiting or running (ended, or not yet reported)",
            )
        return reply

    @answering
    def Topology(  # noqa: N802, D102
        self, request: pb.TopologyRequest, context: grpc.ServicerContext
    ) -> pb.TopologyReply:
        del request
        return topology_reply(self._published(context), 0 if self._admin else MOST_READ)

    @answering
    def Policy(self, request: pb.PolicyRequest, context: grpc.ServicerContext) -> pb.PolicyReply:  # noqa: N802, D102
        if request.set:
            self._need_admin(context, "change the policy")
            self._switch.replace(request.set, self._cycles)
        published = self._cycles.published
        return pb.PolicyReply(
            yaml=self._switch.yaml(),
            choices=_told(choices()),
            unknown_resources=() if published is None else self._switch.unknown(published.snapshot),
        )

    @answering
    def Accuracy(  # noqa: N802, D102
        self, request: pb.AccuracyRequest, context: grpc.ServicerContext
    ) -> pb.AccuracyReply:
        try:
            return accuracy_reply(self._accuracy(), request.partition)
        except Slow as error:
            _refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))

    @answering
    def Reserve(self, request: pb.ReserveRequest, context: grpc.ServicerContext) -> pb.ReserveReply:  # noqa: N802, D102
        self._need_admin(context, "make reservations")
        try:
            return reserve(self._cycles, self._published(context), request)
        except ControllerError as error:
            _refuse(context, grpc.StatusCode.FAILED_PRECONDITION, str(error))

    @answering
    def Unreserve(  # noqa: N802, D102
        self, request: pb.UnreserveRequest, context: grpc.ServicerContext
    ) -> pb.UnreserveReply:
        self._need_admin(context, "remove reservations")
        try:
            unreserve(self._cycles, request)
        except ControllerError as error:
            _refuse(context, grpc.StatusCode.FAILED_PRECONDITION, str(error))
        return pb.UnreserveReply()

    @answering
    def Record(self, request: pb.RecordRequest, context: grpc.ServicerContext) -> pb.RecordReply:  # noqa: N802, D102
        self._need_admin(context, "record: a recording holds the jobs of all users")
        wait_s = min(request.wait_s or USUAL_WAIT_S, MOST_WAIT_S)
        if self._record is None:
            _refuse(context, grpc.StatusCode.UNIMPLEMENTED, "this service gives no recordings")
        try:
            found = self._record(request.min_queue, wait_s)
        except ControllerError as error:
            _refuse(context, grpc.StatusCode.RESOURCE_EXHAUSTED, str(error))
        if found is None:
            return pb.RecordReply()
        return pb.RecordReply(recording=found[0], generation=found[1])

    def _need_admin(self, context: grpc.ServicerContext, what: str) -> None:
        if not self._admin:
            _refuse(
                context,
                grpc.StatusCode.PERMISSION_DENIED,
                f"only administrators may {what} (operator.admins)",
            )

    def _published(self, context: grpc.ServicerContext) -> Published:
        published = self._cycles.published
        if published is None:
            _refuse(
                context,
                grpc.StatusCode.NOT_FOUND,
                "the controller has not called yet: nothing is known",
            )
        return published


def _refuse(context: grpc.ServicerContext, code: grpc.StatusCode, why: str) -> NoReturn:
    context.abort(code, why)
    raise AssertionError("abort raises")


def _told(choices: Mapping[str, Sequence[str]]) -> list[str]:
    """A line for each stage; what no service can have is marked."""
    lines = []
    for stage, known in choices.items():
        only = SIMULATION_ONLY if stage == "predict" else frozenset[str]()
        names = [f"{name} (simulation only)" if name in only else name for name in known]
        lines.append(f"{stage}: {', '.join(names)}")
    return lines
