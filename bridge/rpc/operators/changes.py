# SPDX-License-Identifier: Apache-2.0
"""Every change passes here: it is logged with its author, what it replaces, and its result.

Rules
    1. A method that may change something is a `ChangeMethod`; there is no other way to be one.
    2. A request that only looks (a policy that is read, a dry run) is no change.
    3. A refused change is logged like one that was carried out, and so is one whose caller left.
       For a caller who may not make it, nothing is read: refusing costs as little as it can.
    4. The service's process has the entry before the caller is answered, or the change stands
       without. Nobody waits for the disk.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message

from bridge.errors import BridgeError
from bridge.rpc.operators.open_calls import Call, CallMethod
from bridge.rpc.operators.queries import Refused
from bridge.rpc.operators.requester import Requester
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.transport.private_channel import Asker, MessageKind, RemoteRefusal
from bridge.state.change_files import MAX_TEXT
from bridge.state.change_log import MAX_HELD, ChangeLog

_log = logging.getLogger(__name__)

DONE: Final = "done"
TAKEN_S: Final = 10.0
"""A caller waits so long for the service's process."""
_USUAL: Final = 20


@dataclass(frozen=True)
class ChangeMethod:
    """A method that may change something.

    Attributes:
        carry_out: answers an encoded request.
        is_change: whether a request changes something.
        before: what is in force that it would change, as text.
        for_users: everybody may call it, not only administrators.
    """

    request: type[Message]
    carry_out: CallMethod
    is_change: Callable[[Any], bool]
    before: Callable[[Any, Call], Awaitable[str]]
    for_users: bool = False


@dataclass(frozen=True)
class ChangeLogging:
    """Carries out changes and has them logged by the service's process."""

    asker: Asker

    def logged(self, name: str, method: ChangeMethod) -> CallMethod:
        async def answer(question: bytes, call: Call) -> bytes:
            request = method.request.FromString(question)
            if not method.is_change(request):
                return await method.carry_out(question, call)
            author = call.requester()
            permitted = call.admin or method.for_users
            before = ""
            if permitted:
                before = await self.known(partial(method.before, request, call))
            work = method.carry_out(question, call)
            reply: bytes = await self.log(name, author, before, _text(request), work)
            return reply

        return answer

    async def log(
        self, name: str, author: Requester, before: str, after: str, work: Awaitable[Any]
    ) -> Any:
        """Waits for a change, and has it logged with its result."""
        result = "the caller left: its result is not known"
        try:
            answer = await work
            result = DONE
            return answer
        except (Refused, RemoteRefusal) as error:
            result = f"refused: {error.text}"
            raise
        except BridgeError as error:
            result = f"refused: {error}"
            raise
        except Exception as error:
            result = f"failed: {type(error).__name__}"
            raise
        finally:
            change = pb.OperatorChange(
                at_s=int(time.time()), uid=author.uid, user=_sendable(author.name), method=name,
                before=_sendable(before), after=_sendable(after), result=_sendable(result),
                done=result == DONE,
            )  # fmt: skip
            parts = [change.SerializeToString(), b"admin" if author.admin else b""]
            await _taken(self.asker.ask(MessageKind.CHANGED, parts))

    @staticmethod
    async def known(before: Callable[[], Awaitable[str]]) -> str:
        """What is in force, as text for `log`; why that is not known, otherwise."""
        try:
            return await before()
        except Exception as error:  # what was before keeps no change from being made and logged
            return f"not known: {error or type(error).__name__}"


async def _taken(requested: "Future[list[bytearray]]") -> None:
    """Rule 4; the request is on its way also if this call is being cancelled."""
    try:
        await asyncio.wait_for(asyncio.wrap_future(requested), TAKEN_S)
    except (RemoteRefusal, BridgeError, TimeoutError) as error:
        _log.error("a change is not logged: %s", error)


def _text(request: Message) -> str:
    return MessageToJson(request, preserving_proto_field_name=True, indent=None)


def _sendable(text: str) -> str:
    """Short, and without halves of characters, which no message can hold."""
    return text[:MAX_TEXT].encode("utf-8", "replace").decode()


def changes_reply(log: ChangeLog, question: bytes) -> bytes:
    """The answer to `Operator.Changes`."""
    request = pb.ChangesRequest.FromString(question)
    changes = log.last(min(request.limit or _USUAL, MAX_HELD), request.since_s)
    return pb.ChangesReply(changes=changes).SerializeToString()
