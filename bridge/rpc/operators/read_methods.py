# SPDX-License-Identifier: Apache-2.0
"""The methods that change nothing, with caches of answers.

Rules
    1. Reads are answered from a view (`newest_view.py`). Without queries, the service's process
       does no work for operators.
    2. Equal queries on one view are computed once, and the encoded answer is reused.
    3. A few threads compute answers and serve the users in turn.
"""

import asyncio
import functools
import time
from collections.abc import Sequence
from typing import Any

import grpc
from google.protobuf.message import Message

from bridge.extensions.elastic.operators.widths import width_lines
from bridge.rpc.operators.accuracy import accuracy_reply
from bridge.rpc.operators.answer_cache import AnswerCache
from bridge.rpc.operators.extension_methods import Look, Looking, methods
from bridge.rpc.operators.newest_view import TimedView, Views
from bridge.rpc.operators.open_calls import Call, CallMethod
from bridge.rpc.operators.queries import READS, Asking, Read, need_admin, refuse
from bridge.rpc.operators.requester import read_parts
from bridge.rpc.operators.view import View, unpack
from bridge.rpc.operators.what_if_service import what_if_under
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.transport.fair_queue import FairQueue
from bridge.rpc.transport.private_channel import Asker, MessageKind
from bridge.state.announced_starts import StartRecords

ACCURACY_S = 5.0
"""How long records of starts are cached."""
MAX_WAIT_RECORD_S, USUAL_WAIT_RECORD_S = 60, 10
_WORKERS = 2
"""Threads that make answers."""
_CLOSED = "the service does not answer"


class ReadMethods:
    """Answers queries."""

    def __init__(self, asker: Asker, views: Views) -> None:
        """Starts without answers.

        Args:
            asker: queries the service's process.
        """
        self._asker, self._views = asker, views
        self._queue = FairQueue(_WORKERS, "answer")
        self._answers = AnswerCache()
        self._records: tuple[float, asyncio.Future[StartRecords]] | None = None

    def methods(self) -> dict[str, CallMethod]:
        reads = {name: functools.partial(self.read, name, read) for name, read in READS.items()}
        return reads | {
            "Explain": self._explain,
            "Accuracy": self._accuracy,
            "Record": self._record,
            "Elastic": self._elastic,
            "Changes": self._changes,
        }

    def of_extensions(self) -> dict[str, CallMethod]:
        """The methods of extensions that change nothing."""
        found: dict[str, CallMethod] = {}
        for extension, theirs in methods().items():
            for name, read in theirs.reads.items():
                found[name] = functools.partial(self.read, name, read)
            for name, look in theirs.looks.items():
                found[name] = functools.partial(self._look, extension, look)
        return found

    def looking(self, extension: str, call: Call) -> Looking:
        """What an extension may use for an answer to a call that changes nothing."""

        async def view() -> View:
            return (await self.view()).view

        async def ask(name: str, question: bytes) -> Sequence[bytearray]:
            parts = read_parts(extension, name, question)
            return await self._asker.answer(MessageKind.EXTENSION, parts)

        compute = functools.partial(self._queue.put, call.uid)
        return Looking(call.requester(), view, ask, compute)

    async def view(self) -> TimedView:
        """The newest view; refused if the service does not answer."""
        try:
            return await self._views.current()
        except TimeoutError:
            refuse(grpc.StatusCode.DEADLINE_EXCEEDED, _CLOSED)

    async def read(self, name: str, read: Read, question: bytes, call: Call) -> bytes:
        """Answers one of `READS` (rules 1 and 2)."""
        request = read.request.FromString(question)
        seen = await self.view()
        version = seen.cycle if read.of_cycle else seen.count
        key = (name, version, call.admin, request.SerializeToString(deterministic=True))
        answer = self._answers.get(key)
        if answer is None:
            answer = self._queue.put(
                call.uid, functools.partial(_made, read, seen.view, request, call.admin)
            )
            self._answers.put(key, answer)
        return await asyncio.shield(answer)

    async def _look(self, extension: str, look: Look, question: bytes, call: Call) -> bytes:
        request = look.request.FromString(question)
        return await look.answer(self.looking(extension, call), request)

    async def _explain(self, question: bytes, call: Call) -> bytes:
        """From the last cycle; of a malleable running job also why it has the width it has."""
        answer = await self.read("Explain", READS["Explain"], question, call)
        reply = pb.ExplainReply.FromString(answer)
        if not reply.job.running:
            return answer
        parts = await self._asker.answer(MessageKind.ELASTIC)
        malleable = pb.ElasticReply.FromString(bytes(parts[0]))
        for job in malleable.jobs:
            if job.job_id == reply.job.job_id:
                reply.lines.extend(width_lines(job, malleable.now_s))
                reply.width.CopyFrom(job.width)
        return reply.SerializeToString()

    async def _elastic(self, question: bytes, call: Call) -> bytes:
        del call
        request = pb.ElasticRequest.FromString(question)
        parts = await self._asker.answer(MessageKind.ELASTIC)
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

    async def _accuracy(self, question: bytes, call: Call) -> bytes:
        request = pb.AccuracyRequest.FromString(question)
        now = time.monotonic()
        known = self._records
        if known is None or now - known[0] > ACCURACY_S or _failed(known[1]):
            requested = asyncio.ensure_future(self._read_records())
            known = self._records = (now, requested)
        kept = await asyncio.shield(known[1])
        answer: bytes = await self._queue.put(
            call.uid,
            lambda: accuracy_reply(kept, request.partition).SerializeToString(),
        )
        return answer

    async def _read_records(self) -> StartRecords:
        parts = await self._asker.answer(MessageKind.ACCURACY)
        kept: StartRecords = unpack(parts)
        return kept

    async def _changes(self, question: bytes, call: Call) -> bytes:
        need_admin(call.admin, "list changes: they name their authors")
        pb.ChangesRequest.FromString(question)
        answer = await self._asker.answer(MessageKind.CHANGES, [question])
        return bytes(answer[0])

    async def _record(self, question: bytes, call: Call) -> bytes:
        need_admin(call.admin, "record: a recording holds the jobs of all users")
        request = pb.RecordRequest.FromString(question)
        wait_s = min(request.wait_s or USUAL_WAIT_RECORD_S, MAX_WAIT_RECORD_S)
        words = [str(request.min_queue).encode(), str(wait_s).encode()]
        parts = await self._asker.answer(MessageKind.RECORD, words)
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
