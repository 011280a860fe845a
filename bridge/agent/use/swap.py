# SPDX-License-Identifier: Apache-2.0
"""Notices that memory is being swapped out: that of a job, by its cgroup, or of the machine.

Rules
    1. Swapping counts for `WINDOW_S` after the swapped memory has grown by `MIN_BYTES` within
       `WINDOW_S`. Smaller amounts are pages that nobody uses, which the kernel moves out when idle.
    2. Of a job, the swap that it holds is read (v2 `memory.swap.current`; v1: the difference of
       `memory.memsw.usage_in_bytes` and `memory.usage_in_bytes`). Of the machine, the pages swapped
       out since it started (`pswpout` in /proc/vmstat).
    3. Where swap is not accounted for, nothing is noticed.
"""

import os
from collections import deque
from collections.abc import Collection
from pathlib import Path
from typing import Final

from bridge.agent.use.numbers import whole_number

WINDOW_S: Final = 10.0
MIN_BYTES: Final = 16 << 20


class Swapping:
    """Whether amounts of swapped memory grow, each named by a key."""

    def __init__(self) -> None:
        """Starts without readings."""
        self._read: dict[str, deque[tuple[float, int]]] = {}
        self._grown_s: dict[str, float] = {}

    def grows(self, key: str, swapped_bytes: int | None, now_s: float) -> bool:
        """Takes in a reading; returns whether memory is being swapped out (rule 1).

        Args:
            swapped_bytes: swapped memory; None: not accounted for.
            now_s: time of a monotonic clock.
        """
        if swapped_bytes is None:
            return False
        read = self._read.setdefault(key, deque())
        read.append((now_s, swapped_bytes))
        while now_s - read[0][0] > WINDOW_S:
            read.popleft()
        if swapped_bytes - min(each for _, each in read) >= MIN_BYTES:
            self._grown_s[key] = now_s
        return now_s - self._grown_s.get(key, now_s - 2 * WINDOW_S) <= WINDOW_S

    def forget(self, keys: Collection[str]) -> None:
        """Drops the readings of all others."""
        for key in [key for key in self._read if key not in keys]:
            del self._read[key]
            self._grown_s.pop(key, None)


def swapped_v1(folder: Path) -> int | None:
    """Swap of a cgroup of version 1, bytes; None: not accounted for."""
    both = whole_number(folder / "memory.memsw.usage_in_bytes")
    memory = whole_number(folder / "memory.usage_in_bytes")
    return None if both is None or memory is None else max(both - memory, 0)


def swapped_v2(folder: Path) -> int | None:
    """Swap of a cgroup of version 2, bytes; None: not accounted for."""
    return whole_number(folder / "memory.swap.current")


def swapped_out(vmstat: Path) -> int | None:
    """Memory that the machine has swapped out since it started, bytes; None: unknown."""
    try:
        lines = vmstat.read_text(encoding="ascii").splitlines()
        pages = next(line.split()[1] for line in lines if line.startswith("pswpout "))
        return int(pages) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, StopIteration):
        return None
