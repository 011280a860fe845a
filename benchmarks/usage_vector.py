#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the usage vector against a plain-Python one, in the same run, on the same changes.

    benchmarks/usage_vector.py [--slots N] [--seconds S]  > usage_vector.json

In a plan of ten weeks with about 400 slots (as OpenCCS reports for its sRS), random bookings are
made and revoked; then free slots are searched for wide, long jobs that fit late. Both must agree on
every slot. Prints JSON on standard output: operations per second of each, and their ratio.
"""

import argparse
import bisect
import json
import os
import platform
import random
import sys
import time
from collections.abc import Callable

from bridge.core import NEVER, UsageVector

WEEK_S = 7 * 86_400
CORES = 9_920


class PlainVector:
    """Breakpoints and used items in two lists: a simple implementation."""

    def __init__(self, available: int) -> None:
        self.available = available
        self.at, self.used = [0], [0]

    def _cut(self, time_s: int) -> int:
        index = bisect.bisect_left(self.at, time_s)
        if index == len(self.at) or self.at[index] != time_s:
            self.at.insert(index, time_s)
            self.used.insert(index, self.used[index - 1])
        return index

    def change(self, start: int, end: int, items: int) -> None:
        """Adds items (or takes them off, below zero) over [start, end)."""
        first, last = self._cut(start), self._cut(end)
        for index in range(first, last):
            self.used[index] += items
        for index in (last, first):
            if index and self.used[index] == self.used[index - 1]:
                del self.at[index], self.used[index]

    def free_slots(self, items: int, length: int) -> list[tuple[int, int, int]]:
        """Slots with enough free items for a duration: (start, end, free)."""
        found: list[tuple[int, int, int]] = []
        run: list[tuple[int, int, int]] = []

        def finish() -> None:
            if run and (run[-1][1] == NEVER or run[-1][1] - run[0][0] >= length):
                found.extend(run)
            run.clear()

        for index, start in enumerate(self.at):
            free = self.available - self.used[index]
            if free < items:
                finish()
                continue
            run.append((start, self.at[index + 1] if index + 1 < len(self.at) else NEVER, free))
        finish()
        return found

    def slots(self) -> list[tuple[int, int, int]]:
        """Where items are used: (start, end, items)."""
        ends = [*self.at[1:], NEVER]
        return [
            slot for slot in zip(self.at, ends, self.used, strict=True) if slot[2] > 0
        ]  # fmt: skip


def bookings(chance: random.Random, count: int) -> list[tuple[int, int, int]]:
    """Starts, ends and items of jobs over ten weeks; as many as the number of slots needs."""
    made = []
    for _ in range(count):
        start = chance.randrange(10 * WEEK_S)
        made.append((start, start + chance.randrange(600, 3 * 86_400), chance.randrange(1, 64)))
    return made


def rate(seconds: float, work: Callable[[], int]) -> float:
    """Operations a second: the best of three runs of that length."""
    best = 0.0
    for _ in range(3):
        done, begin = 0, time.perf_counter()
        while (spent := time.perf_counter() - begin) < seconds:
            done += work()
        best = max(best, done / spent)
    return best


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slots", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each of three runs")
    chosen = parser.parse_args()
    if chosen.slots < 2 or chosen.seconds <= 0:
        parser.error("--slots must be 2 or more and --seconds more than 0")
    chance = random.Random(1)
    vector, plain = UsageVector(CORES), PlainVector(CORES)
    for start, end, items in bookings(chance, chosen.slots // 2):
        vector.increment(start, end, items)
        plain.change(start, end, items)
    changes = bookings(chance, 1000)

    def book_fast() -> int:
        for change in changes:
            vector.increment(*change)
            vector.decrement(*change)
        return 2 * len(changes)

    def book_plain() -> int:
        for start, end, items in changes[:100]:
            plain.change(start, end, items)
            plain.change(start, end, -items)
        return 200

    free = vector.as_free()
    width, length = CORES - 200, 4 * 86_400

    def search_fast() -> int:
        for _ in range(100):
            free.free_slots(width, length)
        return 100

    def search_plain() -> int:
        plain.free_slots(width, length)
        return 1

    def earliest_fast() -> int:
        for _ in range(100):
            free.earliest(CORES, length)
        return 100

    figures = {
        "change": (rate(chosen.seconds, book_fast), rate(chosen.seconds, book_plain)),
        "free_slots": (rate(chosen.seconds, search_fast), rate(chosen.seconds, search_plain)),
        "earliest": (rate(chosen.seconds, earliest_fast), None),
    }
    same = list(zip(*(column.tolist() for column in vector.slots()), strict=True)) == plain.slots()
    found = vector.free_slots(width, length)
    expected = plain.free_slots(width, length)
    same = same and all(found.free_at(start) == items for start, _, items in expected)
    result = {
        "slots": len(vector),
        "slots_found": len(expected),
        "same_result": same,
        "per_second": {
            name: {"bridge": round(ours), "plain_python": None if theirs is None else round(theirs)}
            for name, (ours, theirs) in figures.items()
        },
        "times_as_fast": {
            name: round(ours / theirs, 1) for name, (ours, theirs) in figures.items() if theirs
        },
        "machine": {
            "processor": platform.processor() or platform.machine(),
            "cpus": os.cpu_count(),
            "load_1min": os.getloadavg()[0],
        },
    }
    print(json.dumps(result, indent=1))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
