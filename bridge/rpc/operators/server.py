# SPDX-License-Identifier: Apache-2.0
"""The operators' gRPC service, in a separate process: many callers, few threads, equal shares.

Rules
    1. Reads are answered from a view (`newest_view.py`). Without queries, the service's process
       does no work for operators.
    2. Equal queries on one view are computed once, and the encoded answer is reused.
    3. A few threads compute answers and serve the users in turn. A call fails when it has waited
       for `MOST_WAIT_S` or until its own deadline.
    4. A call without a request after `QUESTION_S` is ended. Each user has at most `ANSWERING`
       answers in progress and `MOST_CALLS` open calls.
    5. Calls that change something are for administrators only; they are passed on to the service's
       process.
    6. After a change, its caller and all later calls get a view that includes it.
"""

import asyncio
import functools
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.message import DecodeError, Message
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from bridge.errors import BridgeError, ControllerError
from bridge.planning.power.calibration import Curve
from bridge.power.entry_log import Author
from bridge.rpc.controller.server import OPERATOR
from bridge.rpc.operators import queries
from bridge.rpc.operators.accuracy import accuracy_reply
from bridge.rpc.operators.answer_cache import AnswerCache
from bridge.rpc.operators.calibration import calibrate_reply
from bridge.rpc.operators.newest_view import SERVICE_S, Seen, Views
from bridge.rpc.operators.power_trial import trial
from bridge.rpc.operators.queries import READS, Asking, Read, Refused, need_admin, refuse
from bridge.rpc.operators.reservations import Controlling, reserve, unreserve
from bridge.rpc.operators.view import View, unpack
from bridge.rpc.operators.what_if_service import what_if_under
from bridge.rpc.operators.widths import width_lines
from bridge.rpc.pb import coscheduling_pb2, scheduler_pb2
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.transport.fair_queue import FairQueue
from bridge.rpc.transport.private_channel import Asker, MessageKind, Refusal
from bridge.rpc.transport.status_codes import code_of
from bridge.rpc.transport.users import user_name
from bridge.state.announced_starts import StartRecords

_log = logging.getLogger(__name__)

QUESTION_S = 10.0
MOST_WAIT_S = 60.0
ANSWERING = 8
MOST_CALLS = 512

ACCURACY_S = 5.0
"""How long records of starts are cached."""

MOST_WAIT_RECORD_S, USUAL_WAIT_RECORD_S = 60, 10
_CLOSED = "the service does not answer"


@dataclass
class _User:
    """The calls of one user in progress."""

    calls: int = 0
    answering: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(ANSWERING))


@dataclass
class _Visit:
    """One call, from its arrival until gRPC has finished it."""

    user: _User
    admin: bool
    uid: int
    holds: bool = False


class OperatorService(grpc.GenericRpcHandler):  # type: ignore[misc]
    """All methods of `schedbridge.v1.Operator`.

    Every method is registered as a stream of one request, so that this class, not gRPC, waits for
    the request.
    """

    def __init__(
        self,
        asker: Asker,
        *,
        who: Callable[[str], int | None],
        admins: frozenset[int],
        workers: int = 2,
    ) -> None:
        """Prepares the service; to be called in the event loop.

        Args:
            asker: queries the service's process.
            who: the user of a peer by gRPC's name.
            admins: users that may make changes.
            workers: number of threads that make answers.
        """
        self._asker = asker
        self._who = who
        self._admins = admins
        self.views = Views(asker)
        self._queue = FairQueue(workers, "answer")
        self._changing = ThreadPoolExecutor(4, thread_name_prefix="change")
        self._users: dict[int, _User] = {}
        self._answers = AnswerCache()
        self._records: tuple[float, asyncio.Future[StartRecords]] | None = None
        self._methods: dict[str, Callable[[bytes, _Visit], Awaitable[bytes]]] = {
            name: functools.partial(self._read, name, read) for name, read in READS.items()
        } | {
            "Explain": self._explain,
            "Policy": self._policy,
            "Accuracy": self._accuracy,
            "Reserve": self._reserve,
            "Unreserve": self._unreserve,
            "Record": self._record,
            "Elastic": self._elastic,
            "ChangeWidth": self._change_width,
            "Corridor": self._corridor,
            "Calibrate": self._calibrate,
            "Coscheduling": self._coscheduling,
        }

    def service(self, handler_call_details: Any) -> Any:
        """The handler of a method."""
        head, _, name = handler_call_details.method.rpartition("/")
        method = self._methods.get(name)
        if head != f"/{OPERATOR}" or method is None:
            return None
        return grpc.stream_unary_rpc_method_handler(functools.partial(self._call, name, method))

    async def _call(
        self,
        name: str,
        method: Callable[[bytes, _Visit], Awaitable[bytes]],
        questions: AsyncIterator[bytes],
        context: Any,
    ) -> bytes:
        uid = self._who(context.peer())
        if uid is None:
            await context.abort(
                grpc.StatusCode.PERMISSION_DENIED, "connect through the service's sockets"
            )
            raise AssertionError("abort raises")
        visit = self._enter(uid, context)
        code, text = grpc.StatusCode.INTERNAL, ""
        try:
            if visit.user.calls > MOST_CALLS:
                refuse(
                    grpc.StatusCode.RESOURCE_EXHAUSTED,
                    "you have too many open calls: wait for their answers",
                )
            return await self._answer(method, visit, questions, context)
        except (Refused, Refusal) as error:
            code, text = _code(error), error.text
        except BridgeError as error:
            code, text = code_of(error), str(error)
            _log.warning("%s is refused: %s", name, error)
        except Exception as error:
            _log.exception("%s failed", name)
            text = f"{type(error).__name__}: see the service's log"
        await context.abort(code, text)
        raise AssertionError("abort raises")

    def _enter(self, uid: int, context: Any) -> _Visit:
        user = self._users.setdefault(uid, _User())
        visit = _Visit(user, uid in self._admins, uid)
        user.calls += 1

        def leave(_context: object) -> None:
            user.calls -= 1
            if visit.holds:
                user.answering.release()
            if not user.calls:
                self._users.pop(uid, None)

        context.add_done_callback(leave)
        return visit

    async def _answer(
        self,
        method: Callable[[bytes, _Visit], Awaitable[bytes]],
        visit: _Visit,
        questions: AsyncIterator[bytes],
        context: Any,
    ) -> bytes:
        try:
            async with asyncio.timeout(QUESTION_S):
                question = await anext(aiter(questions))
        except TimeoutError:
            refuse(grpc.StatusCode.DEADLINE_EXCEEDED, f"no request came within {QUESTION_S:g} s")
        except StopAsyncIteration:
            refuse(grpc.StatusCode.INVALID_ARGUMENT, "the request is missing")
        left_s = context.time_remaining()
        wait_s = MOST_WAIT_S if left_s is None else min(left_s, 2 * MOST_WAIT_S)
        try:
            async with asyncio.timeout(wait_s):
                # Held until gRPC is done with the call: an answer that is not read counts.
                await visit.user.answering.acquire()
                visit.holds = True
                return await method(question, visit)
        except TimeoutError:
            refuse(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                "the service is busy: try again in a moment",
            )
        except DecodeError:
            refuse(grpc.StatusCode.INVALID_ARGUMENT, "the request cannot be decoded")

    # ------------------------------------------------------------------ queries

    async def _read(self, name: str, read: Read, question: bytes, visit: _Visit) -> bytes:
        request = read.request.FromString(question)
        seen = await self._view()
        version = seen.cycle if read.of_cycle else seen.count
        key = (name, version, visit.admin, request.SerializeToString(deterministic=True))
        answer = self._answers.get(key)
        if answer is None:
            answer = self._queue.put(
                visit.uid, functools.partial(_made, read, seen.view, request, visit.admin)
            )
            self._answers.put(key, answer)
        return await asyncio.shield(answer)

    async def _view(self) -> Seen:
        try:
            return await self.views.current()
        except TimeoutError:
            refuse(grpc.StatusCode.DEADLINE_EXCEEDED, _CLOSED)

    async def _accuracy(self, question: bytes, visit: _Visit) -> bytes:
        request = pb.AccuracyRequest.FromString(question)
        now = time.monotonic()
        known = self._records
        if known is None or now - known[0] > ACCURACY_S or _failed(known[1]):
            asked = asyncio.ensure_future(self._read_records())
            known = self._records = (now, asked)
        kept = await asyncio.shield(known[1])
        answer: bytes = await self._queue.put(
            visit.uid,
            lambda: accuracy_reply(kept, request.partition).SerializeToString(),
        )
        return answer

    async def _calibrate(self, question: bytes, visit: _Visit) -> bytes:
        pb.CalibrateRequest.FromString(question)
        view = (await self._view()).view
        published = queries.published_of(view)
        rules = view.in_force.conditions.site.rules.power
        parts = await asyncio.wrap_future(self._asker.ask(MessageKind.CURVES))
        curves: dict[str, Curve] = unpack(parts)
        reply: pb.CalibrateReply = await self._queue.put(
            visit.uid, lambda: calibrate_reply(rules, published, curves)
        )
        return reply.SerializeToString()

    async def _read_records(self) -> StartRecords:
        parts = await asyncio.wrap_future(self._asker.ask(MessageKind.ACCURACY))
        kept: StartRecords = unpack(parts)
        return kept

    # ------------------------------------------------------------------ changes

    async def _policy(self, question: bytes, visit: _Visit) -> bytes:
        request = pb.PolicyRequest.FromString(question)
        if request.set:
            need_admin(visit.admin, "change the policy")
            await asyncio.wrap_future(self._asker.ask(MessageKind.POLICY, [request.set.encode()]))
            self.views.expire()
        return await self._read("Policy", READS["Policy"], b"", visit)

    async def _reserve(self, question: bytes, visit: _Visit) -> bytes:
        need_admin(visit.admin, "make reservations")
        request = pb.ReserveRequest.FromString(question)
        seen = await self._view()
        published = queries.published_of(seen.view)
        return await self._change(lambda: reserve(self._controlling(seen.view), published, request))

    async def _unreserve(self, question: bytes, visit: _Visit) -> bytes:
        need_admin(visit.admin, "remove reservations")
        request = pb.UnreserveRequest.FromString(question)
        seen = await self._view()

        def remove() -> pb.UnreserveReply:
            unreserve(self._controlling(seen.view), request)
            return pb.UnreserveReply()

        return await self._change(remove)

    async def _change(self, work: Callable[[], Message]) -> bytes:
        loop = asyncio.get_running_loop()
        try:
            reply = await loop.run_in_executor(self._changing, work)
        except ControllerError as error:
            refuse(grpc.StatusCode.FAILED_PRECONDITION, str(error))
        self.views.expire()
        return reply.SerializeToString()

    def _controlling(self, view: View) -> Controlling:
        return Controlling(view.live.features, self._carry_out)

    def _carry_out(self, decision: scheduler_pb2.Decision, wait_s: float) -> scheduler_pb2.Fate:
        parts = [decision.SerializeToString(), repr(wait_s).encode()]
        answer = self._asker.ask(MessageKind.ORDER, parts).result(wait_s + SERVICE_S)
        return scheduler_pb2.Fate.FromString(bytes(answer[0]))

    async def _explain(self, question: bytes, visit: _Visit) -> bytes:
        """From the last cycle; of a malleable running job also why it has the width it has."""
        answer = await self._read("Explain", READS["Explain"], question, visit)
        reply = pb.ExplainReply.FromString(answer)
        if not reply.job.running:
            return answer
        parts = await asyncio.wrap_future(self._asker.ask(MessageKind.ELASTIC))
        malleable = pb.ElasticReply.FromString(bytes(parts[0]))
        for job in malleable.jobs:
            if job.job_id == reply.job.job_id:
                reply.lines.extend(width_lines(job, malleable.now_s))
                reply.width.CopyFrom(job.width)
        return reply.SerializeToString()

    async def _elastic(self, question: bytes, visit: _Visit) -> bytes:
        del visit
        request = pb.ElasticRequest.FromString(question)
        parts = await asyncio.wrap_future(self._asker.ask(MessageKind.ELASTIC))
        if not request.job_id:
            return bytes(parts[0])
        reply = pb.ElasticReply.FromString(bytes(parts[0]))
        jobs = [job for job in reply.jobs if job.job_id == request.job_id]
        if not jobs:
            text = f"job {request.job_id[:80]} is not a malleable running job"
            refuse(grpc.StatusCode.NOT_FOUND, text)
        del reply.jobs[:]
        reply.jobs.extend(jobs)
        return reply.SerializeToString()

    async def _change_width(self, question: bytes, visit: _Visit) -> bytes:
        who = ("", "") if visit.admin else (user_name(visit.uid), str(visit.uid))
        parts = [question, *(word.encode() for word in who)]
        await asyncio.wrap_future(self._asker.ask(MessageKind.WIDTH, parts))
        return pb.ChangeWidthReply().SerializeToString()

    async def _corridor(self, question: bytes, visit: _Visit) -> bytes:
        need_admin(visit.admin, "change the corridor of power")
        request = pb.CorridorRequest.FromString(question)
        author = Author(f"{user_name(visit.uid)} (uid {visit.uid})", "operators' socket")
        if request.dry_run:
            seen = await self._view()
            published = queries.published_of(seen.view)
            reply: pb.CorridorReply = await self._queue.put(
                visit.uid, lambda: trial(seen.view, published, request, author)
            )
            return reply.SerializeToString()
        parts = [question, author.name.encode(), author.origin.encode()]
        answer = await asyncio.wrap_future(self._asker.ask(MessageKind.CORRIDOR, parts))
        self.views.expire()
        return bytes(answer[0])

    async def _coscheduling(self, question: bytes, visit: _Visit) -> bytes:
        request = coscheduling_pb2.CoschedulingRequest.FromString(question)
        if request.order != coscheduling_pb2.CoschedulingRequest.SHOW:
            need_admin(visit.admin, "switch co-scheduling, or export or import what was learnt")
        parts = [question, b"" if visit.admin else user_name(visit.uid).encode()]
        answer = await asyncio.wrap_future(self._asker.ask(MessageKind.COSCHEDULING, parts))
        return bytes(answer[0])

    async def _record(self, question: bytes, visit: _Visit) -> bytes:
        need_admin(visit.admin, "record: a recording holds the jobs of all users")
        request = pb.RecordRequest.FromString(question)
        wait_s = min(request.wait_s or USUAL_WAIT_RECORD_S, MOST_WAIT_RECORD_S)
        asked = self._asker.ask(
            MessageKind.RECORD, [str(request.min_queue).encode(), str(wait_s).encode()]
        )
        parts = await asyncio.wrap_future(asked)
        if not parts:
            return b""
        return pb.RecordReply(
            recording=bytes(parts[0]), generation=int(parts[1])
        ).SerializeToString()


def _made(read: Read, view: View, request: Message, admin: bool) -> bytes:
    asking = Asking(admin, what_if_under(view.in_force.conditions))
    return read.answer(view, request, asking).SerializeToString()


def _failed(answer: "asyncio.Future[Any]") -> bool:
    return answer.done() and (answer.cancelled() or answer.exception() is not None)


def _code(error: Refused | Refusal) -> grpc.StatusCode:
    return error.code if isinstance(error, Refused) else grpc.StatusCode[error.code]


_OPTIONS = [
    ("grpc.so_reuseport", 0),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_concurrent_streams", 16),
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.max_connection_idle_ms", 120_000),
    ("grpc.max_connection_age_ms", 300_000),
    ("grpc.max_connection_age_grace_ms", 120_000),
    ("grpc.max_metadata_size", 8 << 10),
    ("grpc.http2.bdp_probe", 0),  # bounds the data that a caller may send ahead to 64 KiB
]


async def serve(service: OperatorService, sockets: dict[str, int]) -> list[Any]:
    """Starts to serve at private sockets.

    Args:
        service: answers the calls.
        sockets: path to the largest request accepted there, bytes.

    Returns:
        The servers.
    """
    servers = []
    for path, size in sockets.items():
        server = grpc.aio.server(options=[*_OPTIONS, ("grpc.max_receive_message_length", size)])
        server.add_generic_rpc_handlers((service,))
        healthy = health.aio.HealthServicer()
        health_pb2_grpc.add_HealthServicer_to_server(healthy, server)
        reflection.enable_server_reflection(
            (OPERATOR, health.SERVICE_NAME, reflection.SERVICE_NAME), server
        )
        server.add_insecure_port(f"unix:{path}")
        await server.start()
        for known in ("", OPERATOR):
            await healthy.set(known, health_pb2.HealthCheckResponse.SERVING)
        servers.append(server)
    return servers
