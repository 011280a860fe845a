# SPDX-License-Identifier: Apache-2.0
"""The methods that change something, passed on to the service's process.

Rules
    1. Changes are for administrators only, except that users change the widths of their own jobs.
    2. After a change, its caller and all later calls get a view that includes it.
    3. Every change is logged (`changes.py`).
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import grpc
from google.protobuf.message import Message

from bridge.errors import ControllerError
from bridge.rpc.operators import extension_methods, queries
from bridge.rpc.operators.changes import ChangeLogging, ChangeMethod
from bridge.rpc.operators.extension_methods import ServedChange
from bridge.rpc.operators.newest_view import SERVICE_S, Views
from bridge.rpc.operators.open_calls import Call, CallMethod
from bridge.rpc.operators.queries import READS, need_admin, refuse
from bridge.rpc.operators.read_methods import ReadMethods
from bridge.rpc.operators.requester import change_parts
from bridge.rpc.operators.reservations import Controlling, reserve, unreserve
from bridge.rpc.operators.view import View
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.pb import scheduler_pb2
from bridge.rpc.transport.private_channel import Asker, MessageKind
from bridge.rpc.transport.users import user_name


def _always(_: Message) -> bool:
    return True


class ChangeMethods:
    def __init__(self, asker: Asker, views: Views, reads: ReadMethods) -> None:
        """Starts without changes.

        Args:
            views: views of the service; expire with each change.
            reads: answers queries.
        """
        self._asker, self._views, self._reads = asker, views, reads
        self.log = ChangeLogging(asker)
        self._changing = ThreadPoolExecutor(4, thread_name_prefix="change")

    def methods(self) -> dict[str, CallMethod]:
        methods = {
            "Policy": ChangeMethod(
                pb.PolicyRequest, self._policy, lambda asking: bool(asking.set), self._policy_now
            ),
            "Reserve": ChangeMethod(pb.ReserveRequest, self._reserve, _always, self._reservation),
            "Unreserve": ChangeMethod(
                pb.UnreserveRequest, self._unreserve, _always, self._reservation
            ),
            "ChangeWidth": ChangeMethod(
                pb.ChangeWidthRequest, self._change_width, _always, self._width, for_users=True
            ),
        }  # fmt: skip
        return {name: self.log.logged(name, method) for name, method in methods.items()}

    def of_extensions(self) -> dict[str, CallMethod]:
        """The methods by which administrators change something of extensions."""
        return {
            name: self.log.logged(name, self._served(extension, name, served))
            for extension, theirs in extension_methods.methods().items()
            for name, served in theirs.changes.items()
        }

    async def _policy_now(self, _: pb.PolicyRequest, __: Call) -> str:
        return (await self._reads.view()).view.in_force.policy_yaml

    async def _reservation(self, request: pb.ReserveRequest | pb.UnreserveRequest, _: Call) -> str:
        published = queries.published_of((await self._reads.view()).view)
        for each in published.snapshot.reservations:
            if each.name == request.name:
                nodes = published.snapshot.nodes.names
                named = ",".join(nodes[node] for node in each.nodes)
                return f"{each.name} from {each.start_s} to {each.end_s} on {named}"
        return ""

    async def _width(self, request: pb.ChangeWidthRequest, _: Call) -> str:
        parts = await self._asker.answer(MessageKind.ELASTIC)
        for job in pb.ElasticReply.FromString(bytes(parts[0])).jobs:
            if job.job_id == request.job_id:
                return f"{job.node_count} nodes"
        return ""

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

    def _served(self, extension: str, name: str, served: ServedChange) -> ChangeMethod:
        async def carry_out(question: bytes, call: Call) -> bytes:
            request = served.request.FromString(question)
            looks = served.looks(request)
            if not (looks and served.for_users(request)):
                need_admin(call.admin, served.purpose)
            if looks:
                return await served.look(self._reads.looking(extension, call), request)
            parts = change_parts(extension, name, question, call.requester())
            answer = await self._asker.answer(MessageKind.EXTENSION, parts)
            self._views.expire()
            return bytes(answer[0])

        async def before(_: Message, call: Call) -> str:
            return await served.before(self._reads.looking(extension, call))

        return ChangeMethod(
            served.request, carry_out, lambda request: not served.looks(request), before
        )

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
