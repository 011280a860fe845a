# SPDX-License-Identifier: Apache-2.0
"""The open calls of operators and users: who calls, how many calls at once, how long they wait.

Rules
    1. A call fails when it has waited for `MAX_WAIT_S` or until its own deadline.
    2. A call without a request after `QUESTION_S` is ended. Each user has at most `ANSWERING`
       answers in progress and `MAX_CALLS` open calls.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from bridge.rpc.operators.queries import refuse
from bridge.rpc.operators.requester import Requester
from bridge.rpc.transport.users import user_name

QUESTION_S = 10.0
MAX_WAIT_S = 60.0
ANSWERING = 8
MAX_CALLS = 512


@dataclass
class _User:
    """The calls of one user in progress."""

    calls: int = 0
    answering: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(ANSWERING))


@dataclass
class Call:
    """One call, from its arrival until gRPC has finished it.

    Attributes:
        uid: who calls.
        admin: whether this user may make changes.
        user: the calls of this user.
        holds: whether it holds one of the user's answers in progress.
    """

    uid: int
    admin: bool
    user: _User
    holds: bool = False

    def requester(self) -> Requester:
        return Requester(self.uid, user_name(self.uid), self.admin)


CallMethod = Callable[[bytes, Call], Awaitable[bytes]]
"""Answers a request of a call; both encoded."""


class OpenCalls:
    def __init__(self, admins: frozenset[int]) -> None:
        """Starts without calls; `admins` may make changes."""
        self._admins, self._users = admins, dict[int, _User]()

    def enter(self, uid: int, context: Any) -> Call:
        """Counts a call until gRPC has finished it."""
        user = self._users.setdefault(uid, _User())
        call = Call(uid, uid in self._admins, user)
        user.calls += 1

        def leave(_context: object) -> None:
            user.calls -= 1
            if call.holds:
                user.answering.release()
            if not user.calls:
                self._users.pop(uid, None)

        context.add_done_callback(leave)
        return call

    async def answer(
        self, call: Call, method: CallMethod, questions: AsyncIterator[bytes], context: Any
    ) -> bytes:
        """Waits for the request, and for the user's turn, and answers.

        Args:
            questions: a stream of one request.

        Raises:
            Refused: by a rule, or the request cannot be decoded.
        """
        if call.user.calls > MAX_CALLS:
            refuse(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                "you have too many open calls: wait for their answers",
            )
        question = await _question(questions)
        left_s = context.time_remaining()
        wait_s = MAX_WAIT_S if left_s is None else min(left_s, 2 * MAX_WAIT_S)
        try:
            async with asyncio.timeout(wait_s):
                # Held until gRPC is done with the call: an answer that is not read counts.
                await call.user.answering.acquire()
                call.holds = True
                return await method(question, call)
        except TimeoutError:
            refuse(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                "the service is busy: try again in a moment",
            )
        except DecodeError:
            refuse(grpc.StatusCode.INVALID_ARGUMENT, "the request cannot be decoded")


async def _question(questions: AsyncIterator[bytes]) -> bytes:
    """The only message of a call; it must come within `QUESTION_S` (rule 2)."""
    try:
        async with asyncio.timeout(QUESTION_S):
            return await anext(aiter(questions))
    except TimeoutError:
        refuse(grpc.StatusCode.DEADLINE_EXCEEDED, f"no request came within {QUESTION_S:g} s")
    except StopAsyncIteration:
        refuse(grpc.StatusCode.INVALID_ARGUMENT, "the request is missing")
