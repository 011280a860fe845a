# SPDX-License-Identifier: Apache-2.0
"""Rows of the job table of a simulation, gathered fast."""

from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import JobTable


class JobRows:
    """Rows of a job table; a column with equal values is sliced instead of gathered, for speed."""

    def __init__(self, table: JobTable) -> None:
        columns = {field.name: getattr(table, field.name) for field in fields(table)}
        self._same = {
            name: column
            for name, column in columns.items()
            if name != "version" and len(column) and is_constant(column)
        }
        self._varied = {name: c for name, c in columns.items() if name not in self._same}

    def take(self, rows: NDArray[np.int64]) -> JobTable:
        """Returns the table of these rows."""
        count = len(rows)
        columns = {name: column[:count] for name, column in self._same.items()}
        for name, column in self._varied.items():
            columns[name] = column.take(rows, axis=0)
        return JobTable.of_columns(columns)


def is_constant(column: NDArray[np.generic]) -> bool:
    """Whether all values of a column, of one row or more, are equal."""
    if column.dtype == object:
        return all(value == column[0] for value in column)
    return bool((column == column[0]).all())
