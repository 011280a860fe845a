# SPDX-License-Identifier: Apache-2.0
"""The last minute of a power: a low and a high quantile of its measured values.

Rules
    1. Instants are by the service's clock: the arrival, less the age stated by the agent.
    2. Values closer than `APART_S` replace each other, so that the memory is bounded, and a burst
       of late values counts as its last one.
    3. Quantiles are measured values, the low one rounded down in rank, the high one up.
    4. There is no result until values span `MIN_S`, nor when the newest value is older than the
       caller allows. Values of the first `SETTLE_S` do not count: a starting job draws little, and
       its node's meter may still show the former load.
"""

import math
from collections import deque
from typing import Final

WINDOW_S: Final = 60.0
MIN_S: Final = 10.0
SETTLE_S: Final = 5.0
APART_S: Final = 0.4
LOW, HIGH = 0.05, 0.95


class Recent:
    """Values of the last `WINDOW_S`."""

    __slots__ = ("_began", "_values")

    def __init__(self) -> None:
        self._values: deque[tuple[float, float]] = deque()
        self._began = 0.0

    def add(self, at_s: float, value: float) -> None:
        """Records a value.

        Args:
            at_s: when it was measured; a value before the newest one is ignored.
            value: finite.
        """
        values = self._values
        if not values:
            self._began = at_s
        elif at_s < values[-1][0]:
            return
        elif at_s - values[-1][0] < APART_S:
            values[-1] = (values[-1][0], value)
            return
        values.append((at_s, value))
        while values[0][0] < at_s - WINDOW_S:
            values.popleft()

    @property
    def last_s(self) -> float:
        """When the newest value was measured; 0: there is none."""
        return self._values[-1][0] if self._values else 0.0

    def highest(self, now_s: float) -> float:
        """The highest value of the last `WINDOW_S`, however few there are; 0: there is none.

        If all are older, the newest.
        """
        found = [value for at_s, value in self._values if at_s >= now_s - WINDOW_S]
        newest = self._values[-1][1] if self._values else 0.0
        return max(found, default=newest)

    def bounds(self, now_s: float, stale_s: float) -> tuple[float, float] | None:
        """The low and the high quantile; None: unknown (rule 4)."""
        values = self._values
        if not values or now_s - values[-1][0] > stale_s or values[-1][0] - self._began < MIN_S:
            return None
        since_s = max(now_s - WINDOW_S, self._began + SETTLE_S)
        found = sorted(value for at_s, value in values if at_s >= since_s)
        if not found:
            return None
        last = len(found) - 1
        return found[math.floor(LOW * last)], found[math.ceil(HIGH * last)]
