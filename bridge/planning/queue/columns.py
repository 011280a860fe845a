# SPDX-License-Identifier: Apache-2.0
"""Groups equal rows of columns, and takes parts of ragged columns, without a loop over rows."""

import numpy as np
from numpy.typing import NDArray

_MOST = 1 << 62
_DENSE = 32
"""Keys within so many times their number are looked up in a table: faster than a sort."""


def by_appearance(key: NDArray[np.integer]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first position of each distinct key, ascending, and (n,) the group of each key."""
    n = len(key)
    low, high = (int(key.min()), int(key.max())) if n else (0, _MOST)
    if high - low < _DENSE * n:
        key = key.astype(np.intp) - low
        at = np.full(high - low + 1, -1, dtype=np.intp)
        at[key[::-1]] = np.arange(n - 1, -1, -1)  # the last one written is the first of its key
        first = np.sort(at[at >= 0])
        at[key[first]] = np.arange(len(first))
        return first, at[key]
    _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return first[order], place[inverse.reshape(-1)]


def packed(*columns: NDArray[np.integer] | NDArray[np.bool_]) -> NDArray[np.int64]:
    """(n,) one number per row of columns of numbers >= 0; equal rows have equal numbers."""
    key = np.zeros(len(columns[0]), dtype=np.int64)
    most = 1
    for column in columns:
        span = int(column.max(initial=0)) + 1
        if most > _MOST // span:
            _, inverse = np.unique(key, return_inverse=True)
            key, most = inverse.reshape(-1).astype(np.int64), len(key)
        key = key * span + column
        most *= span
    return key


def gather(
    indptr: NDArray[np.int64], rows: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Offsets and positions of some rows of a CSR."""
    counts = indptr[rows + 1] - indptr[rows]
    offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
    take = np.repeat(indptr[rows] - offsets[:-1], counts) + np.arange(offsets[-1])
    return offsets, take
