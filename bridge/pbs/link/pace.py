# SPDX-License-Identifier: Apache-2.0
"""Spaces the calls to the service under load.

Calls are immediate until they take more than a share of the time, or there are more than 1 in
`PACE_S`. Beyond that they are spaced by a multiple of their usual duration, so that thousands of
short jobs share cycles, and never by more than `LONGEST_S`.
"""

from dataclasses import dataclass

PACE_S = 0.05
LONGEST_S = 0.5
_BURST, _FACTOR = 5, 3


@dataclass
class Pace:
    """Tells when the next call may go out, by a monotonic clock."""

    _usual_s: float = 0.0
    _paid_s: float = 0.0

    @property
    def step_s(self) -> float:
        """The interval between calls under load."""
        return min(max(_FACTOR * self._usual_s, PACE_S), LONGEST_S)

    def rests_s(self, now: float) -> float:
        """How long to wait before the next call."""
        return max(self._paid_s - _BURST * self.step_s - now, 0.0)

    def pay(self, now: float) -> None:
        """Counts a call that goes out now."""
        self._paid_s = max(self._paid_s, now) + self.step_s

    def took(self, call_s: float) -> None:
        """Records the duration of a call, with the report before it."""
        bounded = min(call_s, LONGEST_S / _FACTOR)
        self._usual_s += (bounded - self._usual_s) / 4
