# SPDX-License-Identifier: Apache-2.0
"""Whether a column read from a file has the form that kernels need: a field and the problem."""

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ColumnFault = tuple[str, str]
"""Field and problem."""

MAX: Final = 1 << 53
"""Largest amount and latest instant that is accepted; exact in every kernel."""


def length(field: str, column: Any, count: int) -> Iterator[ColumnFault]:
    if len(column) != count:
        yield field, f"has {len(column)} rows where {count} belong"


def width(field: str, column: NDArray[np.int64], width: int) -> Iterator[ColumnFault]:
    if column.ndim != 2 or column.shape[1] != width:
        yield field, f"has shape {column.shape} where rows of {width} belong"


def amounts(field: str, column: NDArray[np.int64], *, past: bool = False) -> Iterator[ColumnFault]:
    """Amounts must not be negative; with `past`, times before 1970 are allowed."""
    if column.size and (int(column.max()) >= MAX or int(column.min()) < (-MAX if past else 0)):
        yield field, "has an impossible amount"


def indexes(
    field: str, column: NDArray[Any], maximum: int, *, none: bool = False
) -> Iterator[ColumnFault]:
    if column.size and not (-1 if none else 0) <= int(column.min()) <= int(column.max()) < maximum:
        yield field, f"points outside of {maximum} rows"


def offsets(field: str, column: NDArray[np.int64], maximum: int) -> Iterator[ColumnFault]:
    if column[0] != 0 or column[-1] != maximum or (np.diff(column) < 0).any():
        yield field, f"must rise from 0 to {maximum}"
