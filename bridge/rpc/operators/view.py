# SPDX-License-Identifier: Apache-2.0
"""Frozen views for operators, and their transfer from the service's process.

Rules
    1. A view consists of immutable objects; making one takes no lock of the cycle.
    2. Packing holds the interpreter lock for a few milliseconds at a time: a column of numbers is
       sent as its memory, a column of texts as one text, reasons as columns. Between two columns a
       running cycle takes precedence.
"""

import io
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.snapshot import Snapshot
from bridge.ports import Conditions
from bridge.rpc.controller.cycles import Published
from bridge.rpc.reported.hostlist import NodeIndex

_AT_ONCE = 1 << 13
"""Texts joined before other threads may run."""


@dataclass(frozen=True)
class LiveState:
    """Small state that changes all the time.

    Attributes:
        status: an encoded `StatusReply` without the parts from the last cycle.
        features: features of the controller's plugin.
        problems: by the name of an extension.
    """

    status: bytes
    features: tuple[str, ...]
    problems: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class InForce:
    """State that changes only by orders of administrators.

    Attributes:
        parts: by the name of an extension.
    """

    policy_yaml: str
    conditions: Conditions
    parts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class View:
    """The data from which operators are answered.

    Attributes:
        in_force: policy and rules.
        published: the last cycle; None before the first.
    """

    live: LiveState
    in_force: InForce
    published: Published | None


Parts = list[bytes | memoryview]
"""A pickle and the columns it refers to."""


def pack(value: object, yield_to: Callable[[], None] = lambda: None) -> Parts:
    """Serialises a value into parts.

    Args:
        value: a view, or a part of one.
        yield_to: called between columns, to let other threads run.
    """
    buffers: list[pickle.PickleBuffer] = []
    file = io.BytesIO()
    _Packer(file, buffers, yield_to).dump(value)
    return [file.getbuffer(), *(buffer.raw() for buffer in buffers)]


def unpack(parts: Sequence[bytes | bytearray | memoryview]) -> Any:
    """Deserialises a value; its columns are views of the parts."""
    return pickle.loads(parts[0], buffers=parts[1:])


class _Packer(pickle.Pickler):
    def __init__(
        self,
        file: io.BytesIO,
        buffers: list[pickle.PickleBuffer],
        yield_to: Callable[[], None],
    ) -> None:
        super().__init__(file, protocol=5, buffer_callback=buffers.append)
        self._yield = yield_to

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            self._yield()
            if value.dtype == object and value.ndim == 1:
                return _pack_objects(value, self._yield)
        elif isinstance(value, Plan):
            self._yield()
            columns = {field.name: getattr(value, field.name) for field in fields(value)}
            reasons = _pack_reasons(value.reasons, self._yield)
            return _unpack_plan, (columns | {"reasons": reasons},)
        elif isinstance(value, Published):
            # The node index is built again there: its tables are larger than the names.
            return _unpack_published, (value.snapshot, value.plan)
        return NotImplemented


def _pack_objects(column: NDArray[np.object_], yield_to: Callable[[], None]) -> Any:
    values = column.tolist()
    texts = _joined(values, yield_to)
    return (_unpack_objects, (values,)) if texts is None else (_unpack_texts, (texts,))


def _joined(values: Sequence[object], yield_to: Callable[[], None]) -> list[tuple[int, str]] | None:
    """Texts, many as one each time; None: they are not texts, or cannot be told apart then."""
    found = []
    for first in range(0, len(values), _AT_ONCE):
        some = values[first : first + _AT_ONCE]
        try:
            text = "\0".join(some)  # type: ignore[arg-type]
        except TypeError:
            return None
        if text.count("\0") != len(some) - 1:
            return None
        found.append((len(some), text))
        yield_to()
    return found


def _split(texts: Sequence[tuple[int, str]]) -> list[str]:
    return [value for _, text in texts for value in text.split("\0")]


def _unpack_texts(texts: Sequence[tuple[int, str]]) -> NDArray[np.object_]:
    return _unpack_objects(_split(texts))


def _unpack_objects(values: Sequence[object]) -> NDArray[np.object_]:
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


def _pack_reasons(
    reasons: Sequence[Reason | None], yield_to: Callable[[], None]
) -> tuple[NDArray[np.int32], list[tuple[int, str]] | None, list[str]]:
    """Codes (-1: none) and texts."""
    codes = np.fromiter(
        (-1 if reason is None else reason.code for reason in reasons), np.int32, len(reasons)
    )
    yield_to()
    texts = ["" if reason is None else reason.text for reason in reasons]
    joined = _joined(texts, yield_to)
    return codes, joined, texts if joined is None else []


def _unpack_plan(columns: dict[str, Any]) -> Plan:
    codes, joined, texts = columns["reasons"]
    if joined is not None:
        texts = _split(joined)
    reasons = tuple(
        None if code < 0 else Reason(ReasonCode(code), words)
        for code, words in zip(codes.tolist(), texts, strict=True)
    )
    return Plan(**columns | {"reasons": reasons})


_last_index: NodeIndex | None = None


def _unpack_published(snapshot: Snapshot, plan: Plan) -> Published:
    global _last_index  # noqa: PLW0603  the nodes are the same in almost every cycle
    if _last_index is None or _last_index.names != snapshot.nodes.names:
        _last_index = NodeIndex(snapshot.nodes.names)
    return Published(snapshot, plan, _last_index)
