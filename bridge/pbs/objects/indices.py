# SPDX-License-Identifier: Apache-2.0
"""Indices of an array's tasks as PBS writes them, `1-9:2,12`, without expanding the ranges."""

from collections.abc import Iterator

MAX_PARTS = 100_000


def ranges(written: str) -> Iterator[range]:
    """Returns the ranges; a part that is none is left out (`-` means no index)."""
    for part in written.split(",")[:MAX_PARTS]:
        span, _, step = part.strip().partition(":")
        first, _, last = span.partition("-")
        numbers = (first, last or first, step or "1")
        if all(word.isascii() and word.isdigit() and len(word) < 10 for word in numbers):
            yield range(int(first), int(last or first) + 1, max(int(step or 1), 1))


def count(written: str) -> int:
    """Returns the number of indices."""
    return sum(len(each) for each in ranges(written))


def first_without(written: str, taken: set[int]) -> int:
    """Returns the first index that is not taken; -1: there is none."""
    for each in ranges(written):
        for index in each:
            if index not in taken:
                return index
    return -1
