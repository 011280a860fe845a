# SPDX-License-Identifier: Apache-2.0
"""The lines of JSON between a job's launcher and the agent of its first node.

One message is one JSON object on one line, at most 64 KiB. `from_launcher` and `from_agent` read a
line, `encode` writes one, `Lines` cuts a stream of bytes into lines. Unknown keys are ignored, so
that either side may be newer. docs/design/0009-elastic-jobs.md describes the messages.

    launcher -> agent   Attach, Progress, Result, Bounds
    agent -> launcher   Attached, Error, Grow, Shrink, Withdraw
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Final, TypeVar

from bridge.errors import LineError, UnknownOp

VERSION: Final = 1
MAX_LINE: Final = 64 * 1024
"""Maximum number of bytes of a line, including its end."""
MAX_NODES: Final = 4000
MAX_WITHIN_S: Final = 7 * 86_400.0
ENGINES: Final = ("join", "relaunch", "program")
STAGES: Final = ("starting", "window", "leaving")
RESULTS: Final = ("done", "refused", "failed")

Nodes = tuple[str, ...]
"""Names of nodes in the launcher's order; the first is the batch host."""
Check = Callable[[str, object], Any]
"""From a key and its JSON value to the value of the field.

Raises:
    ValueError: the value is invalid; the text says why.
"""


@dataclass(frozen=True)
class Message:
    """One line. A subclass names its `op`, and its fields are the keys."""

    op: ClassVar[str]

    def check(self) -> None:
        """Compares the keys with each other.

        Raises:
            ValueError: they contradict each other.
        """


@dataclass(frozen=True)
class Grow(Message):
    """The job holds further nodes: start processes there within this time, s."""

    op: ClassVar[str] = "grow"
    id: str
    nodes: Nodes
    add: Nodes
    within_s: float

    def check(self) -> None:
        """The added nodes are some of all nodes, and not the first.

        Raises:
            ValueError: they are not.
        """
        if not self.add or not set(self.add) < set(self.nodes) or self.nodes[0] in self.add:
            raise ValueError("add must be some of the nodes, and not the first")


@dataclass(frozen=True)
class Shrink(Message):
    """End the processes on some nodes within this time, s; the job holds them until then."""

    op: ClassVar[str] = "shrink"
    id: str
    nodes: Nodes
    remove: Nodes
    within_s: float

    def check(self) -> None:
        """The removed nodes are none of those that stay.

        Raises:
            ValueError: one is, or there are none.
        """
        if not self.remove or set(self.remove) & set(self.nodes):
            raise ValueError("remove must name nodes that are not among those that stay")


Change = Grow | Shrink


@dataclass(frozen=True)
class Attach(Message):
    """The first line of a connection: the launcher's job, its nodes, its change."""

    op: ClassVar[str] = "attach"
    version: int
    job: str
    nodes: Nodes
    engine: str
    pending: Change | None = None


@dataclass(frozen=True)
class Progress(Message):
    """The progress of a change, for display."""

    op: ClassVar[str] = "progress"
    id: str
    stage: str


@dataclass(frozen=True)
class Result(Message):
    """The result of a change, and where the job's processes are now."""

    op: ClassVar[str] = "result"
    id: str
    outcome: str
    reason: str
    nodes: Nodes


@dataclass(frozen=True)
class Bounds(Message):
    """The application's need has changed: minimum and maximum number of nodes that it can use."""

    op: ClassVar[str] = "bounds"
    min: int
    max: int

    def check(self) -> None:
        """The least is not above the most.

        Raises:
            ValueError: it is.
        """
        if self.min > self.max:
            raise ValueError(f"min {self.min} is above max {self.max}")


@dataclass(frozen=True)
class Attached(Message):
    """The service knows the job, and that it is malleable."""

    op: ClassVar[str] = "attached"


@dataclass(frozen=True)
class Error(Message):
    """A line was refused."""

    op: ClassVar[str] = "error"
    reason: str


@dataclass(frozen=True)
class Withdraw(Message):
    """A change is no longer wanted; its result says whether it was still carried out."""

    op: ClassVar[str] = "withdraw"
    id: str


FromLauncher = Attach | Progress | Result | Bounds
FromAgent = Attached | Error | Grow | Shrink | Withdraw


# ------------------------------------------------------------------ reading and writing


def encode(message: Message) -> bytes:
    """The line of a message, with its end.

    Raises:
        LineError: it cannot be sent, as the peer would refuse it.
    """
    content = _as_json(message)
    _parse({message.op: type(message)}, content)
    line = json.dumps(content, separators=(",", ":"), ensure_ascii=True).encode() + b"\n"
    if len(line) > MAX_LINE:
        raise LineError(message.op, f"{len(line)} bytes, at most {MAX_LINE} are allowed")
    return line


def from_launcher(line: bytes) -> FromLauncher:
    """Reads a line that a launcher sent.

    Raises:
        LineError: it is malformed.
        UnknownOp: its op is unknown.
    """
    read: FromLauncher = parse(_FROM_LAUNCHER, line)
    return read


def from_agent(line: bytes) -> FromAgent:
    """Reads a line that an agent sent.

    Raises:
        LineError: it is malformed.
        UnknownOp: its op is unknown.
    """
    read: FromAgent = parse(_FROM_AGENT, line)
    return read


def parse(kinds: Mapping[str, type[Message]], line: bytes) -> Any:
    """Reads a line as one of these messages.

    Raises:
        LineError: it is malformed.
        UnknownOp: its op is none of these.
    """
    if len(line) > MAX_LINE:
        raise LineError("", f"a line of more than {MAX_LINE} bytes")
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        raise LineError("", "not a line of JSON") from None
    return _parse(kinds, content)


def as_json(change: Change | None) -> dict[str, Any] | None:
    """A change as `pending` and state files hold it."""
    return None if change is None else _as_json(change)


def change_of(content: object) -> Change | None:
    """The change that `as_json` made this of.

    Raises:
        LineError: it is malformed.
    """
    if content is None:
        return None
    change: Change = _parse(_CHANGES, content)
    return change


class Lines:
    """Cuts what arrives on a stream into lines."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The lines that end in this data, without their ends.

        Raises:
            LineError: a line is too long; nothing after it can be read.
        """
        *whole, self._rest = (self._rest + data).split(b"\n")
        yield from whole
        if len(self._rest) >= MAX_LINE:
            raise LineError("", f"a line of more than {MAX_LINE} bytes")


def _as_json(message: Message) -> dict[str, Any]:
    content: dict[str, Any] = {"op": message.op}
    for field in fields(message):
        value = getattr(message, field.name)
        content[field.name] = _as_json(value) if isinstance(value, Message) else value
    return content


def _parse(kinds: Mapping[str, type[Message]], content: object) -> Any:
    if not isinstance(content, dict):
        raise LineError("", "not a JSON object")
    op = content.get("op")
    if not isinstance(op, str):
        raise LineError("", "op is missing")
    if op not in kinds:
        raise UnknownOp(op[:64] if op.isprintable() else "", "unknown op")
    kind = kinds[op]
    values = {}
    for field in fields(kind):
        if field.name not in content:
            if field.default is not MISSING:
                continue
            raise LineError(op, f"{field.name} is missing")
        try:
            values[field.name] = CHECKS[field.name](field.name, content[field.name])
        except ValueError as error:
            raise LineError(op, str(error)) from None
    message = kind(**values)
    try:
        message.check()
    except ValueError as error:
        raise LineError(op, str(error)) from None
    return message


# ------------------------------------------------------------------ keys

T = TypeVar("T")


def text(maximum: int, minimum: int = 1) -> Check:
    """A text without control characters, of `minimum` to `maximum` characters."""

    def check(key: str, value: object) -> str:
        if not isinstance(value, str) or not minimum <= len(value) <= maximum:
            raise ValueError(f"{key} must be a text of {minimum} to {maximum} characters")
        if not value.isprintable():
            raise ValueError(f"{key} has characters that cannot be shown")
        return value

    return check


def whole(low: int, high: int) -> Check:
    """A whole number from `low` to `high`."""

    def check(key: str, value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"{key} must be a whole number from {low} to {high}")
        return value

    return check


def one_of(words: tuple[str, ...]) -> Check:
    def check(key: str, value: object) -> str:
        if not isinstance(value, str) or value not in words:
            raise ValueError(f"{key} must be one of {', '.join(words)}")
        return value

    return check


def truth(key: str, value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ValueError(f"{key} must be true or false")
    return value


def _nodes(key: str, value: object) -> Nodes:
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= MAX_NODES:
        raise ValueError(f"{key} must be a list of 1 to {MAX_NODES} names of nodes")
    for name in value:
        # Letters, digits and -._ : neither a host list nor a word that a shell would read.
        plain = isinstance(name, str) and name.isascii() and 1 <= len(name) <= 253
        if not plain or not name.translate(_SIGNS).isalnum() or name[0] in "-.":
            raise ValueError(f"{key} has an invalid node name")
    if len(set(value)) != len(value):
        raise ValueError(f"{key} names a node twice")
    return tuple(value)


_SIGNS: Final = str.maketrans("-._", "xxx")


def _seconds(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{key} must be a number of seconds")
    if not 0 < value <= MAX_WITHIN_S:  # which is false of what is not a number
        raise ValueError(f"{key} must be above 0 and at most {MAX_WITHIN_S:.0f}")
    return float(value)


def _pending(_: str, value: object) -> Change | None:
    try:
        return change_of(value)
    except LineError as error:
        raise ValueError(f"pending: {error}") from None


CHECKS: Final[Mapping[str, Check]] = {
    "id": text(128),
    "job": text(64),
    "reason": text(500, minimum=0),
    "engine": one_of(ENGINES),
    "stage": one_of(STAGES),
    "outcome": one_of(RESULTS),
    "nodes": _nodes,
    "add": _nodes,
    "remove": _nodes,
    "version": whole(1, 1000),
    "min": whole(1, 1_000_000),
    "max": whole(1, 1_000_000),
    "within_s": _seconds,
    "pending": _pending,
    # between launcher and application
    "size": whole(0, 100_000_000),
    "left": whole(0, 100_000_000),
    "port": text(4096, minimum=0),
    "token": text(256, minimum=0),
    "step": text(64, minimum=0),
    "again": truth,
    "joined": truth,
}
"""Each key has one meaning in all messages."""

_CHANGES: Final[Mapping[str, type[Message]]] = {kind.op: kind for kind in (Grow, Shrink)}
_FROM_LAUNCHER: Final[Mapping[str, type[Message]]] = {
    kind.op: kind for kind in (Attach, Progress, Result, Bounds)
}
_FROM_AGENT: Final[Mapping[str, type[Message]]] = {
    kind.op: kind for kind in (Attached, Error, Grow, Shrink, Withdraw)
}
