# SPDX-License-Identifier: Apache-2.0
"""The unit and the source of the columns of job tables.

`bridge.model.job` declares each column once, with a `Column`. Derived from that are the columns of
the session, the plain fields of the wire in both directions, the checks of recordings, the rows of
what-if and the values of columns that are left out.
"""

import dataclasses
import typing
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bridge.model.resources import LoweredChunks
from bridge.units import UNLIMITED_S

MAX_COUNT: Final = 1 << 30
"""Largest number of tasks, CPUs, nodes, devices or licences that is accepted from the wire."""

MAX_POWER_W: Final = 1 << 30
"""Largest draw of a node, W, that is accepted."""

MAX_RATIO: Final = 1e12
"""Largest ratio, and CPU time in s, that counts as known."""

LATEST_S: Final = 1 << 40
"""Latest instant: some 35,000 years."""


class Source(Enum):
    """Where the values of a column come from."""

    MESSAGE = auto()
    """A field of `Job` on the wire, brought within the bounds of its unit."""
    REQUEST = auto()
    """A field of `Request` on the wire, likewise."""
    LOWERED = auto()
    """Computed from the request: a field of `bridge.rpc.reported.decode_request.Lowered`."""
    ALLOCATION = auto()
    """From the allocation: a field of `bridge.rpc.reported.decode_allocation.Allocated`."""
    SERVICE = auto()
    """Set by the service in its own copy of a snapshot; no controller reports it."""


class Unit(Enum):
    """The unit or kind of the values of a column."""

    NUMBER = auto()
    """Any number; unsigned on the wire."""
    COUNT = auto()
    SECONDS = auto()
    WATTS = auto()
    INSTANT = auto()
    """Unix seconds."""
    DEADLINE = auto()
    """Likewise; 0: none. One before all instants is the first instant."""
    RATIO = auto()
    """A number from 0 to `MAX_RATIO`; -1: unknown, as is whatever else a table is made with."""
    FLAG = auto()
    CODE = auto()
    """A member of an enumeration."""
    VERSION = auto()
    """64 bits that are compared for equality only."""
    PARTITION = auto()
    """Index into `Snapshot.partitions`; -1: none."""
    RESERVATION = auto()
    """Index into `Snapshot.reservations`; -1: none."""
    NODE = auto()
    """Index into `Snapshot.nodes`; -1: none."""
    TEXT = auto()
    PARTITIONS = auto()
    """Tuple of indexes into `Snapshot.partitions`."""
    NODES = auto()
    """Tuple of indexes into `Snapshot.nodes`."""
    CHUNKS = auto()
    """`LoweredChunks` or None."""
    RESOURCES = auto()
    """An amount of each resource: the column has shape (n, R)."""
    LICENCES = auto()
    """An amount of each licence: the column has shape (n, L)."""


VECTORS: Final = frozenset({Unit.RESOURCES, Unit.LICENCES})
AMOUNTS: Final = frozenset({Unit.COUNT, Unit.SECONDS, Unit.WATTS, *VECTORS})
"""Units whose values are never negative, and small enough to be summed."""

ELEMENT: Final = MappingProxyType(
    {
        Unit.TEXT: str,
        Unit.PARTITIONS: tuple[int, ...],
        Unit.NODES: tuple[int, ...],
        Unit.CHUNKS: LoweredChunks | None,
    }
)
"""Unit of a column of objects to the type of its elements."""

_NEUTRAL: Final = {
    Unit.VERSION: 1, Unit.PARTITION: -1, Unit.RESERVATION: -1, Unit.NODE: -1, Unit.TEXT: "",
    Unit.PARTITIONS: (), Unit.NODES: (), Unit.CHUNKS: None, Unit.RATIO: -1.0,
}  # fmt: skip
_MAX: Final = {
    Unit.NUMBER: (1 << 63) - 1, Unit.COUNT: MAX_COUNT, Unit.SECONDS: UNLIMITED_S,
    Unit.WATTS: MAX_POWER_W, Unit.INSTANT: LATEST_S - 1, Unit.DEADLINE: LATEST_S - 1, Unit.FLAG: 1,
    Unit.VERSION: (1 << 64) - 1,
}  # fmt: skip
_OBJECT: Final[np.dtype[Any]] = np.dtype(object)
_BELOW: Final = {Unit.CODE: -1, Unit.DEADLINE: 1}


@dataclass(frozen=True)
class Column:
    """One column with a row for each job.

    Attributes:
        field: the field of the message or request on the wire; empty: named as the column.
        maximum: the largest number accepted from the wire, if the unit allows larger ones.
        name, dtype: name and dtype of the column, filled in by `columns`.
    """

    source: Source
    unit: Unit
    field: str = ""
    maximum: int = (1 << 64) - 1
    name: str = ""
    dtype: np.dtype[Any] = _OBJECT

    @property
    def is_number(self) -> bool:
        """Whether a row is one number."""
        return self.dtype != object and self.unit not in VECTORS

    @property
    def max_accepted(self) -> int:
        """The number to which larger ones on the wire are clipped."""
        return min(self.maximum, _MAX.get(self.unit, (1 << 63) - 1))

    @property
    def for_negative(self) -> int:
        """The replacement of a negative number on the wire."""
        return _BELOW.get(self.unit, 0)

    def left_out(self, n_rows: int, width: int = 0) -> NDArray[Any]:
        """The column where it is left out: of one value, read-only, shared by all tables.

        Args:
            width: number of amounts in a row, if the column is one of amounts.
        """
        if self.unit in VECTORS:
            return np.broadcast_to(np.zeros(1, self.dtype), (n_rows, width))
        value = _NEUTRAL.get(self.unit, 0)
        key = (value, self.dtype.char)
        found = _SHARED.get(key)
        if found is None or len(found) < n_rows:
            found = np.empty(max(2 * n_rows, 64), self.dtype)
            found.fill(value)
            found.setflags(write=False)
            _SHARED[key] = found
        return found[:n_rows]


_SHARED: dict[tuple[object, str], NDArray[Any]] = {}


class _LeftOut:
    def __repr__(self) -> str:
        return "LEFT_OUT"


LEFT_OUT: Final[Any] = _LeftOut()
"""Default of a column: neutral throughout (0, False, no text, no nodes, no reservation), and
read-only."""


def columns(table: type) -> tuple[Column, ...]:
    """The columns of a table with a row for each job, in order of declaration."""
    hints = typing.get_type_hints(table, include_extras=True)
    found = []
    for each in dataclasses.fields(table):
        for declared in getattr(hints[each.name], "__metadata__", ()):
            dtype = dtype_of(typing.get_args(hints[each.name])[0])
            if isinstance(declared, Column) and dtype is not None:
                field = declared.field or each.name
                found.append(
                    dataclasses.replace(declared, name=each.name, field=field, dtype=dtype)
                )
    return tuple(found)


def dtype_of(hint: Any) -> np.dtype[Any] | None:
    """The kind of values of a column by its annotation; None: it is not a column."""
    origin: Any = typing.get_origin(hint)
    if origin is np.ndarray:
        kind = typing.get_args(typing.get_args(hint)[1])[0]
    elif origin is NDArray:  # NumPy 2.5 and later: an alias of its own
        kind = typing.get_args(hint)[0]
    else:
        return None
    found: np.dtype[Any] = np.dtype(kind)
    return found


def fill_left_out(table: object, declared: Iterable[Column], n_rows: int, width: int = 0) -> None:
    """Fills the columns of a new table that were left out, with their neutral value.

    Ratios come from measurements on nodes and from applications, which are not trusted: what is no
    number, or out of bounds, is unknown.

    Args:
        table: with `LEFT_OUT` for each column that was left out.
        width: number of amounts in a row of a column of amounts.
    """
    for column in declared:
        given = getattr(table, column.name)
        if given is LEFT_OUT:
            object.__setattr__(table, column.name, column.left_out(n_rows, width))
        elif column.unit is Unit.RATIO and not _is_sound(given):
            sound = (given >= 0) & (given <= MAX_RATIO)
            object.__setattr__(table, column.name, np.where(sound, given, -1.0))


def _is_sound(ratios: NDArray[np.float64]) -> bool:
    # With a NaN in the column, both the least and the greatest are NaN, and compare as false.
    return not len(ratios) or bool(ratios.min() >= -1 and ratios.max() <= MAX_RATIO)


def objects(values: Iterable[object]) -> NDArray[np.object_]:
    """A column of objects; tuples stay whole."""
    members = list(values)
    return np.fromiter(members, dtype=object, count=len(members))
