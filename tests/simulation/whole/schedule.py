# SPDX-License-Identifier: Apache-2.0
"""Virtual time: events by instant, and where these are equal in the order they were made."""

import heapq
from collections.abc import Callable

FIRST_S = 1_790_000_000
"""Where every run begins, Unix seconds."""


class Schedule:
    """What happens when.

    Attributes:
        now_ms: time since the run began; no clock of the system shows it, each has an offset.
    """

    def __init__(self) -> None:
        self.now_ms = 0
        self._heap: list[tuple[int, int, Callable[[], None]]] = []
        self._made = 0

    def at(self, when_ms: int, what: Callable[[], None]) -> None:
        """Has something happen at an instant, or now if that has passed."""
        self._made += 1
        heapq.heappush(self._heap, (max(when_ms, self.now_ms), self._made, what))

    def after(self, delay_ms: int, what: Callable[[], None]) -> None:
        """Has something happen in a while."""
        self.at(self.now_ms + delay_ms, what)

    def step(self) -> bool:
        """Lets the next thing happen; False if there is none."""
        if not self._heap:
            return False
        self.now_ms, _, what = heapq.heappop(self._heap)
        what()
        return True


class Clock:
    """The clock of one machine: virtual time and an offset that steps.

    Stands in for the module `time` in the service's modules.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self.offset_ms = 0

    @property
    def now_s(self) -> int:
        """Unix seconds."""
        return FIRST_S + (self._schedule.now_ms + self.offset_ms) // 1000

    def time(self) -> float:
        return FIRST_S + (self._schedule.now_ms + self.offset_ms) / 1000

    def time_ns(self) -> int:
        return FIRST_S * 10**9 + (self._schedule.now_ms + self.offset_ms) * 10**6

    def monotonic(self) -> float:
        return self._schedule.now_ms / 1000

    def monotonic_ns(self) -> int:
        return self._schedule.now_ms * 10**6

    perf_counter = monotonic
    thread_time = monotonic
    process_time = monotonic

    def sleep(self, seconds: float) -> None:
        raise AssertionError(f"something sleeps for {seconds} s")
