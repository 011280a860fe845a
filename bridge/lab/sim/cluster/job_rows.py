# SPDX-License-Identifier: Apache-2.0
"""Rows of the columns of a simulation's jobs, gathered fast.

Rules
    1. A column with equal values is sliced instead of gathered, and slices are kept by length.
    2. All 64-bit numbers are gathered at once; columns that are one array are gathered once.
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_MAX_LENGTHS: Final = 512


class ColumnRows:
    """Columns, one row for each job; their values do not change, unless they are `live`."""

    def __init__(
        self, columns: Mapping[str, NDArray[Any]], live: frozenset[str] = frozenset()
    ) -> None:
        """Prepares the columns.

        Args:
            live: those whose values may change later.
        """
        self._same = {
            name: column
            for name, column in columns.items()
            if name not in live and len(column) and is_constant(column)
        }
        varied = {name: column for name, column in columns.items() if name not in self._same}
        numbers: dict[int, tuple[NDArray[np.int64], list[str]]] = {}
        for name, column in varied.items():
            if name not in live and column.dtype == np.int64 and column.ndim == 1:
                numbers.setdefault(id(column), (column, []))[1].append(name)
        self._numbers = np.array([column for column, _ in numbers.values()], dtype=np.int64)
        self._names = [names for _, names in numbers.values()]
        together = {name for names in self._names for name in names}
        self._others = [(name, c) for name, c in varied.items() if name not in together]
        self._sliced: dict[int, dict[str, NDArray[Any]]] = {}

    def take(self, rows: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Returns these rows of all columns; a new dictionary of arrays that are not changed."""
        found = self._slices(len(rows)).copy()
        if self._names:
            for names, column in zip(self._names, self._numbers.take(rows, axis=1), strict=True):
                for name in names:
                    found[name] = column
        for name, column in self._others:
            found[name] = column.take(rows, axis=0)
        return found

    def _slices(self, count: int) -> dict[str, NDArray[Any]]:
        found = self._sliced.get(count)
        if found is None:
            if len(self._sliced) >= _MAX_LENGTHS:
                self._sliced.clear()
            found = {name: column[:count] for name, column in self._same.items()}
            self._sliced[count] = found
        return found


def is_constant(column: NDArray[np.generic]) -> bool:
    """Whether all values of a column, of one row or more, are equal."""
    if column.dtype == object:
        return all(value == column[0] for value in column)
    return bool((column == column[0]).all())
