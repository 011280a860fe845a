# SPDX-License-Identifier: Apache-2.0
"""The methods of `schedbridge.v1.Operator` that extensions answer.

An extension only describes them. Who may call them, the log of changes and the view after a change
are seen to by `read_methods.py` and `change_methods.py`, as for the other methods.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from google.protobuf.message import Message

from bridge.extension_packages import installed
from bridge.extensions.operators_port import OperatorMethods
from bridge.rpc.controller.cycles import Published
from bridge.rpc.operators.requester import Requester
from bridge.rpc.operators.view import View

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Looking:
    """What an extension may use for an answer to a call that changes nothing.

    Attributes:
        who: calls.
        view: the newest view; refused if the service does not answer.
        ask: asks one of the extension's `ServicePart.reads`, by its name.
        compute: runs a function when it is the caller's turn; returns what it returns.
    """

    who: Requester
    view: Callable[[], Awaitable[View]]
    ask: Callable[[str, bytes], Awaitable[Sequence[bytearray]]]
    compute: Callable[[Callable[[], bytes]], Awaitable[bytes]]


@dataclass(frozen=True)
class Look:
    """A method that changes nothing, but needs more than a view; its answers are not cached.

    Attributes:
        request: its message.
        answer: the encoded answer.
    """

    request: type[Message]
    answer: Callable[[Looking, Any], Awaitable[bytes]]


@dataclass(frozen=True)
class ServedChange:
    """A method by which administrators change something; the service's process carries it out.

    Attributes:
        request: its message.
        purpose: what it does, for the refusal of other users.
        looks: whether a request only looks. Every other one is logged.
        look: the encoded answer to a request that only looks.
        before: what is in force that a request would change, as text.
        for_users: whether everybody may make a request that only looks.
    """

    request: type[Message]
    purpose: str
    looks: Callable[[Any], bool]
    look: Callable[[Looking, Any], Awaitable[bytes]]
    before: Callable[[Looking], Awaitable[str]]
    for_users: Callable[[Any], bool] = lambda _: False


PageChange = Callable[[str, str, bytes, Callable[[View], str], str], Awaitable[bytes]]
"""For a page of an extension: the name of the program that calls, a method, an encoded request, and
for the log of changes what is in force that it would change, from the newest view, and its text; to
the answer of the service's process."""


@cache
def methods() -> dict[str, OperatorMethods]:
    """Those of each extension that has some, by its name; one that fails stops no other."""
    found = {}
    for name, extension in installed().by_name.items():
        if extension.methods is None:
            continue
        try:
            found[name] = extension.methods.made()
        except Exception:  # a stranger's code
            _log.exception("operators are not answered by the extension %s", name)
    return found


def lines(published: Published, row: int) -> Iterator[str]:
    """What extensions know of a running job, for its explanation."""
    for name, extension in methods().items():
        try:
            yield from extension.lines(published, row)
        except Exception:  # a stranger's code; the rest is explained
            _log.exception("the extension %s does not explain a job", name)
