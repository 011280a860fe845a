# SPDX-License-Identifier: Apache-2.0
"""Checks the clock of one controller from report to report.

Rules
    1. Time may run back by `SKEW_S`; beyond that, only a full report is accepted.
    2. A leap by `LEAP_S` is accepted only if full reports confirm it for `STAYS_S`: then the clock
       was wrong before.
"""

import logging

from bridge.errors import SnapshotError
from bridge.units import UNLIMITED_S

_log = logging.getLogger(__name__)

SKEW_S = 60
"""Ordinary corrections of clocks are at most this large, s."""

LATEST_NOW_S = 32_503_680_000
"""Latest valid clock of a controller: the year 3000."""

LEAP_S = 100 * UNLIMITED_S
STAYS_S = 60
_GAP_S = 3600
"""Longest gap between reports that confirm a leap of the clock, s."""


class ControllerClock:
    """The clock of the last report that was applied."""

    def __init__(self) -> None:
        self._now_s: int | None = None
        self._leapt_s = (0, 0)  # first and last report of a leap

    def take(self, now_s: int) -> None:
        """Records the time of a report that was applied."""
        self._now_s = now_s

    def check(self, now_s: int, full: bool) -> bool:
        """Checks the time of a report before it is applied.

        Returns:
            True if the clock was set back: no recorded time is by this clock.

        Raises:
            SnapshotError: it is not a time, or a full report must confirm it.
        """
        before_s = self._now_s
        if not 0 <= now_s < LATEST_NOW_S:
            raise SnapshotError("now_s", f"{now_s} is not a time")
        if before_s is None:
            return False
        if abs(now_s - before_s) >= LEAP_S:
            first_s, last_s = self._leapt_s
            if not 0 <= now_s - last_s <= _GAP_S:
                first_s = now_s
            self._leapt_s = first_s, now_s
            if not full or now_s - first_s < STAYS_S:
                raise SnapshotError("now_s", f"jumps from {before_s} to {now_s}")
            _log.warning("the controller's clock stays at %d: at %d it was wrong", now_s, before_s)
            return True
        self._leapt_s = (0, 0)
        if now_s >= before_s - SKEW_S:
            return False
        if not full:
            raise SnapshotError("now_s", f"runs back from {before_s} to {now_s}")
        return True
