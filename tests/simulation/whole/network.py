# SPDX-License-Identifier: Apache-2.0
"""Calls between controller and service: bytes that arrive late, never, twice, or out of order.

A reply belongs to its call: one that comes after the caller gave up reaches nobody.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.simulation.whole.history import History
from tests.simulation.whole.schedule import Schedule

Heard = Callable[["bytes | Failed"], None]


class Failed(Exception):
    """A call that came to nothing."""

    def __init__(self, code: str, text: str) -> None:
        self.code, self.text = code, text
        super().__init__(f"{code}: {text}")


@dataclass(frozen=True)
class Weather:
    """How calls fare.

    Attributes:
        lost, lost_reply, doubled, late: shares of the calls.
        most_late_ms: the longest delay of a late one.
    """

    lost: float = 0.0
    lost_reply: float = 0.0
    doubled: float = 0.0
    late: float = 0.0
    most_late_ms: int = 0


FAIR = Weather()


class Network:
    """Delivers calls; what befalls the n-th call depends on the seed and n alone.

    Attributes:
        weather: may be exchanged at any time.
        serve: the service's side: method, bytes, call, and whether the caller still waits.
        base_ms: how long every message takes.
        under_way: is shown every answer before it arrives.
    """

    def __init__(self, seed: int, schedule: Schedule, history: History, base_ms: int) -> None:
        self.weather = FAIR
        self.base_ms = base_ms
        self.serve: Callable[[str, bytes, int, Callable[[], bool]], bytes] | None = None
        self.under_way: Callable[[str, bytes], None] = lambda method, answer: None
        self._seed, self._schedule, self._history = seed, schedule, history

    def call(
        self, method: str, data: bytes, number: int, heard: Heard, waits: Callable[[], bool]
    ) -> None:
        """Sends a call; `heard` is called with what comes back, if anything does."""
        weather, dice = self.weather, random.Random(f"call {self._seed} {number}")
        chances = [dice.random() for _ in range(4)]
        delays = [dice.randint(0, max(weather.most_late_ms, 1)) for _ in range(2)]
        fallen = [
            name
            for name, chance, share in zip(
                ("lost", "lost_reply", "doubled", "late"), chances,
                (weather.lost, weather.lost_reply, weather.doubled, weather.late), strict=True,
            )
            if chance < share
        ]  # fmt: skip
        if fallen:
            self._history.add(self._schedule.now_ms, "network", call=number, fallen=fallen)
        if "lost" in fallen:
            return
        way_ms = self.base_ms + (delays[0] if "late" in fallen else 0)
        # A caller that gave up says so, but a message that is late may outrun that.
        asks = (lambda: True) if "late" in fallen else waits
        silent: Heard = lambda answer: None  # noqa: E731
        first = silent if "lost_reply" in fallen else heard
        self._schedule.after(way_ms, lambda: self._deliver(method, data, number, first, asks))
        if "doubled" in fallen:
            self._schedule.after(
                way_ms + 1 + delays[1],
                lambda: self._deliver(method, data, number, silent, lambda: True),
            )

    def _deliver(
        self, method: str, data: bytes, number: int, heard: Heard, waits: Callable[[], bool]
    ) -> None:
        assert self.serve is not None
        try:
            answer: bytes | Failed = self.serve(method, data, number, waits)
        except Failed as error:
            answer = error
        else:
            self.under_way(method, answer)
        self._schedule.after(self.base_ms, lambda: heard(answer))
