# SPDX-License-Identifier: Apache-2.0
"""Indices of an array's tasks as PBS writes them: `1-9:2,12,15-20`."""

from collections.abc import Iterable


def read(ranges: str) -> list[int]:
    """Returns the indices, ascending; invalid ranges are left out: `-` means none."""
    found: set[int] = set()
    for part in ranges.split(","):
        span, _, step = part.strip().partition(":")
        first, _, last = span.partition("-")
        if first.isdecimal() and (last or first).isdecimal() and (step or "1").isdecimal():
            found.update(range(int(first), int(last or first) + 1, max(int(step or 1), 1)))
    return sorted(found)


def write(indices: Iterable[int]) -> str:
    """Writes ascending indices, with ranges where they are consecutive."""
    parts: list[list[int]] = []
    for index in indices:
        if parts and index == parts[-1][1] + 1:
            parts[-1][1] = index
        else:
            parts.append([index, index])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in parts) or "-"


def without(ranges: str, taken: Iterable[int]) -> str:
    """Returns the ranges without some indices."""
    gone = set(taken)
    return write(index for index in read(ranges) if index not in gone)
