# SPDX-License-Identifier: Apache-2.0
"""Columns with a row for each job of a controller, which deltas change in place.

Rules
    1. A job keeps its row until it leaves; new jobs are appended. So rows are always in the order
       in which the controller reported them.
    2. Rows of jobs that left are holes; when half the rows are holes the columns are packed.
    3. A returned table is a copy, which later deltas do not change.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.model.job_columns import VECTORS, Column

_SPARE = 1024


class RowStore:
    """The columns of a table (`bridge.model.job_columns`), and some of its own, by job id.

    Numbers lie in one int64 matrix, columns by row; objects in a column each; amounts of resources
    or licences in a matrix each.
    """

    def __init__(
        self,
        columns: Iterable[Column],
        widths: Mapping[Any, int],
        *,
        own_numbers: Sequence[str] = (),
        own_objects: Sequence[str] = (),
    ) -> None:
        """A store without rows.

        Args:
            columns: columns of the tables that are handed out.
            widths: unit of amounts to the number of amounts in a row.
            own_numbers: names of further columns, which are not handed out.
        """
        self._columns = tuple(columns)
        self._types = [(each.name, each.dtype) for each in self._columns if each.is_number]
        self._texts = [each.name for each in self._columns if each.dtype == object]
        names = (*(name for name, _ in self._types), *own_numbers)
        self._number = {name: at for at, name in enumerate(names)}
        self._row: dict[str, int] = {}
        self._end = 0
        self._alive = np.zeros(_SPARE, dtype=bool)
        self._numbers = np.zeros((len(self._number), _SPARE), dtype=np.int64)
        self._objects = {
            name: np.empty(_SPARE, dtype=object) for name in (*self._texts, *own_objects)
        }
        self._vectors: dict[str, NDArray[np.int64]] = {}
        self._set_widths(widths)

    def __len__(self) -> int:
        return len(self._row)

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._row

    def _set_widths(self, widths: Mapping[Any, int]) -> None:
        """Creates the columns of amounts, all 0."""
        self._vectors = {
            each.name: np.zeros((len(self._alive), widths[each.unit]), dtype=np.int64)
            for each in self._columns
            if each.unit in VECTORS
        }

    def remove(self, job_id: str) -> bool:
        """Removes a job; False if it was not there."""
        row = self._row.pop(job_id, None)
        if row is None:
            return False
        self._alive[row] = False
        for column in self._objects.values():
            column[row] = None
        return True

    def _put_vectors(self, rows: NDArray[np.intp], owners: Sequence[object]) -> None:
        """Writes the columns of amounts, from attributes of their names."""
        for name, matrix in self._vectors.items():
            if matrix.shape[1]:
                matrix[rows] = np.array([getattr(owner, name) for owner in owners], np.int64)

    def _take(self) -> NDArray[np.intp] | slice:
        """The live rows; a slice where there are no holes."""
        if len(self._row) == self._end:
            return slice(0, self._end)
        return np.flatnonzero(self._alive[: self._end])

    def _reserve(self, extra: int) -> None:
        """Packs the columns if half of them are holes, and grows them."""
        if self._end - len(self._row) > len(self._row) + _SPARE:
            self._pack(np.flatnonzero(self._alive[: self._end]))
        capacity = len(self._alive)
        if self._end + extra > capacity:
            more = max(capacity, self._end + extra - capacity + _SPARE)
            self._alive = grown(self._alive, more)
            self._numbers = grown(self._numbers, more, axis=1)
            self._objects = {name: grown(each, more) for name, each in self._objects.items()}
            self._vectors = {name: grown(each, more) for name, each in self._vectors.items()}

    def _pack(self, take: NDArray[np.intp]) -> None:
        """Moves the live rows to the front."""
        n = len(take)
        self._numbers[:, :n] = self._numbers[:, take]
        for column in self._objects.values():
            column[:n] = column[take]
            column[n : self._end] = None
        for matrix in self._vectors.values():
            matrix[:n] = matrix[take]
        self._alive[:n], self._alive[n : self._end] = True, False
        self._end = n
        self._row = {job_id: row for row, job_id in enumerate(self._objects["id"][:n])}

    def _handed_out(self) -> tuple[dict[str, Any], dict[str, NDArray[np.int64]]]:
        """Copies of the columns of the table, and all numbers as they are stored."""
        take = self._take()
        stored = dict(zip(self._number, _copied(self._numbers, take, axis=1), strict=True))
        found: dict[str, NDArray[Any]] = {}
        for name, dtype in self._types:
            number = stored[name]
            # A version has 64 bits of its own; everything else fits its type.
            found[name] = number.view(dtype) if dtype.itemsize == 8 else number.astype(dtype)
        for name in self._texts:
            found[name] = _copied(self._objects[name], take)
        for name, matrix in self._vectors.items():
            found[name] = _copied(matrix, take)
        return found, stored


def _copied(column: NDArray[Any], take: NDArray[np.intp] | slice, axis: int = 0) -> NDArray[Any]:
    if isinstance(take, slice):
        return (column[:, take] if axis else column[take]).copy()
    return column.take(take, axis=axis)


def grown(column: NDArray[Any], more: int, axis: int = 0) -> NDArray[Any]:
    """A column with more rows, filled with 0 or None."""
    shape = list(column.shape)
    shape[axis] = more
    make = np.empty if column.dtype == object else np.zeros
    return np.concatenate((column, make(shape, column.dtype)), axis=axis)
