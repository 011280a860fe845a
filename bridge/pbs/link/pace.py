# SPDX-License-Identifier: Apache-2.0
"""How often the service is asked under load.

The first calls after a pause are immediate. Beyond that one goes out every `PACE_S`, so that
thousands of short jobs share cycles; where calls take long, they take a fiftieth of the time, at
most `LONGEST_S` apart. The plugin for Slurm has the same figures.
"""

from dataclasses import dataclass

PACE_S = 0.2
LONGEST_S = 0.5
_BURST, _FACTOR = 5, 50


@dataclass
class Pace:
    """Tells when the next call may go out, by a monotonic clock."""

    _usual_s: float = 0.0
    _paid_s: float = 0.0

    @property
    def step_s(self) -> float:
        """The distance of calls under load."""
        return min(max(_FACTOR * self._usual_s, PACE_S), LONGEST_S)

    def rests_s(self, now: float) -> float:
        """How long to wait before the next call."""
        return max(self._paid_s - _BURST * self.step_s - now, 0.0)

    def pay(self, now: float) -> None:
        """Counts a call that goes out now."""
        self._paid_s = max(self._paid_s, now) + self.step_s

    def took(self, round_trip_s: float) -> None:
        """Takes the duration of a call."""
        bounded = min(round_trip_s, LONGEST_S / _FACTOR)
        self._usual_s += (bounded - self._usual_s) / 4
