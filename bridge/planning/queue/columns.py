# SPDX-License-Identifier: Apache-2.0
"""Groups equal rows of columns, and takes parts of ragged columns, without a loop over rows."""

import numpy as np
from numpy.typing import NDArray

from bridge.core import group_numbers

_MAX = 1 << 62


def by_appearance(key: NDArray[np.integer]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first position of each distinct key, ascending, and (n,) the group of each key."""
    return group_numbers(np.ascontiguousarray(key, dtype=np.int64))


def packed(*columns: NDArray[np.integer] | NDArray[np.bool_]) -> NDArray[np.int64]:
    """(n,) one number per row of columns of numbers >= 0; equal rows have equal numbers."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    maximum = 1
    for column in columns:
        span = int(column.max(initial=0)) + 1
        if maximum > _MAX // span:
            _, inverse = np.unique(key, return_inverse=True)
            key, maximum = inverse.reshape(-1).astype(np.int64), len(key)
        key = key * span + column
        maximum *= span
    return key


def gather(
    indptr: NDArray[np.int64], rows: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets and positions of some rows of a CSR."""
    counts = indptr[rows + 1] - indptr[rows]
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    take = np.repeat(indptr[rows] - offsets[:-1], counts) + np.arange(offsets[-1])
    return offsets, take
