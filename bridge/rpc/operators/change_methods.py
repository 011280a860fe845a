# SPDX-License-Identifier: Apache-2.0
"""The methods that change something, passed on to the service's process.

Rules
    1. Changes are for administrators only, except that users change the widths of their own jobs.
    2. After a change, its caller and all later calls get a view that includes it.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import grpc
from google.protobuf.message import Message

from bridge.errors import ControllerError
from bridge.power.entry_log import Author
from bridge.rpc.operators import queries
from bridge.rpc.operators.newest_view import SERVICE_S, Views
from bridge.rpc.operators.open_calls import Call, CallMethod
from bridge.rpc.operators.power_trial import trial
from bridge.rpc.operators.queries import READS, need_admin, refuse
from bridge.rpc.operators.read_methods import ReadMethods
from bridge.rpc.operators.reservations import Controlling, reserve, unreserve
from bridge.rpc.operators.view import View
from bridge.rpc.pb import coscheduling_pb2, scheduler_pb2
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.transport.private_channel import Asker, MessageKind
from bridge.rpc.transport.users import user_name


class ChangeMethods:
    """Carries out changes."""

    def __init__(self, asker: Asker, views: Views, reads: ReadMethods) -> None:
        """Starts without changes.

        Args:
            asker: passes them on.
            views: of the service; expire with each change.
            reads: answers queries.
        """
        self._asker, self._views, self._reads = asker, views, reads
        self._changing = ThreadPoolExecutor(4, thread_name_prefix="change")

    def methods(self) -> dict[str, CallMethod]:
        """By name."""
        return {
            "Policy": self._policy,
            "Reserve": self._reserve,
            "Unreserve": self._unreserve,
            "ChangeWidth": self._change_width,
            "Corridor": self._corridor,
            "Coscheduling": self._coscheduling,
        }

    async def _policy(self, question: bytes, call: Call) -> bytes:
        request = pb.PolicyRequest.FromString(question)
        if request.set:
            need_admin(call.admin, "change the policy")
            await self._asker.answer(MessageKind.POLICY, [request.set.encode()])
            self._views.expire()
        return await self._reads.read("Policy", READS["Policy"], b"", call)

    async def _reserve(self, question: bytes, call: Call) -> bytes:
        need_admin(call.admin, "make reservations")
        request = pb.ReserveRequest.FromString(question)
        seen = await self._reads.view()
        published = queries.published_of(seen.view)
        return await self._change(lambda: reserve(self._controlling(seen.view), published, request))

    async def _unreserve(self, question: bytes, call: Call) -> bytes:
        need_admin(call.admin, "remove reservations")
        request = pb.UnreserveRequest.FromString(question)
        seen = await self._reads.view()

        def remove() -> pb.UnreserveReply:
            unreserve(self._controlling(seen.view), request)
            return pb.UnreserveReply()

        return await self._change(remove)

    async def _change_width(self, question: bytes, call: Call) -> bytes:
        who = ("", "") if call.admin else (user_name(call.uid), str(call.uid))
        parts = [question, *(word.encode() for word in who)]
        await self._asker.answer(MessageKind.WIDTH, parts)
        return pb.ChangeWidthReply().SerializeToString()

    async def _corridor(self, question: bytes, call: Call) -> bytes:
        need_admin(call.admin, "change the corridor of power")
        request = pb.CorridorRequest.FromString(question)
        author = Author(f"{user_name(call.uid)} (uid {call.uid})", "operators' socket")
        if request.dry_run:
            seen = await self._reads.view()
            published = queries.published_of(seen.view)
            reply: pb.CorridorReply = await self._reads.compute(
                call.uid, lambda: trial(seen.view, published, request, author)
            )
            return reply.SerializeToString()
        parts = [question, author.name.encode(), author.origin.encode()]
        answer = await self._asker.answer(MessageKind.CORRIDOR, parts)
        self._views.expire()
        return bytes(answer[0])

    async def _coscheduling(self, question: bytes, call: Call) -> bytes:
        request = coscheduling_pb2.CoschedulingRequest.FromString(question)
        if request.order != coscheduling_pb2.CoschedulingRequest.SHOW:
            need_admin(call.admin, "switch co-scheduling, or export or import what was learnt")
        parts = [question, b"" if call.admin else user_name(call.uid).encode()]
        answer = await self._asker.answer(MessageKind.COSCHEDULING, parts)
        return bytes(answer[0])

    async def _change(self, work: Callable[[], Message]) -> bytes:
        loop = asyncio.get_running_loop()
        try:
            reply = await loop.run_in_executor(self._changing, work)
        except ControllerError as error:
            refuse(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        self._views.expire()
        return reply.SerializeToString()

    def _controlling(self, view: View) -> Controlling:
        return Controlling(view.live.features, self._carry_out)

    def _carry_out(self, decision: scheduler_pb2.Decision, wait_s: float) -> scheduler_pb2.Fate:
        parts = [decision.SerializeToString(), repr(wait_s).encode()]
        answer = self._asker.ask(MessageKind.ORDER, parts).result(wait_s + SERVICE_S)
        return scheduler_pb2.Fate.FromString(bytes(answer[0]))
