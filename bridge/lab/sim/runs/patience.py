# SPDX-License-Identifier: Apache-2.0
"""How often a simulation decides without a new event.

Rules
    1. At most `MAX_IDLE` decisions in a row change nothing.
    2. After the fourth of them the next is at least 2 s away, then 4, 8 and so on.
"""

from typing import Final

from bridge.units import NEVER

MAX_IDLE: Final = 1000
_PATIENCE: Final = 3
_LONGEST_DOUBLING: Final = 12


class Patience:
    """Limits the rate of decisions that change nothing."""

    def __init__(self) -> None:
        self._idle = 0

    def wake_s(self, now_s: int, wanted_s: int, changed: int) -> int:
        """When to request the next decision.

        Args:
            now_s: time of an event.
            wanted_s: when the next decision is wanted; NEVER: none is.
            changed: how much the event has changed.
        """
        self._idle = 0 if changed else self._idle + 1
        if self._idle > MAX_IDLE:
            return NEVER
        if self._idle > _PATIENCE and wanted_s != NEVER:
            doubled = min(self._idle - _PATIENCE, _LONGEST_DOUBLING)
            return max(wanted_s, now_s + (1 << doubled))
        return wanted_s
