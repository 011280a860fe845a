# SPDX-License-Identifier: Apache-2.0
"""Readable reasons of rows that wait for power.

Rules
    1. The reason states the job's draw beyond the idle power of its nodes, and the free power below
       the upper bound: now, or at the first instant of a run from now on at which it does not
       suffice, because the bound falls then or other jobs are planned.
    2. Free power is rounded down to two digits, so that small changes do not change the reason.
"""

import numpy as np
from numpy.typing import NDArray

from bridge.model.reasons import Reason, ReasonCode
from bridge.model.rules.power import NO_UPPER_W
from bridge.planning.scheduler.planned_rows import PlannedRows
from bridge.planning.site_rules.lowered_rules import LoweredRules
from bridge.planning.site_rules.power import LoweredPower
from bridge.units import NEVER, format_clock


class PowerReasons:
    """What is drawn over time by running and booked rows; for `explain`, after all passes."""

    def __init__(self, planned: PlannedRows, lowered: LoweredRules, power: LoweredPower) -> None:
        self._power = power
        self._now_s = lowered.snapshot.now_s
        running, terms = lowered.snapshot.running, lowered.running
        owner = np.repeat(np.arange(len(terms)), np.diff(terms.indptr))
        mine = terms.constraint == power.constraint
        asked, start_s, end_s, watts = planned.counted_on(power.constraint)
        self._of = {
            row: span
            for row, *span in zip(
                asked.tolist(), start_s.tolist(), end_s.tolist(), watts.tolist(), strict=True
            )
        }
        starts = np.concatenate((np.full(int(mine.sum()), self._now_s), start_s))
        ends = np.concatenate((np.maximum(running.end_s[owner[mine]], self._now_s + 1), end_s))
        amounts = np.concatenate((terms.amount[mine], watts))
        bound_s = np.array(power.corridor.starts_s, dtype=np.int64)
        self._at_s = np.unique(np.concatenate((starts, ends, bound_s, [self._now_s])))
        change = np.zeros(len(self._at_s), dtype=np.int64)
        np.add.at(change, np.searchsorted(self._at_s, starts), amounts)
        np.add.at(change, np.searchsorted(self._at_s, ends), -amounts)
        self._used_w: NDArray[np.int64] = np.cumsum(change)
        step = np.searchsorted(bound_s, self._at_s, side="right") - 1
        self._upper_w = np.array(power.corridor.upper_w, dtype=np.int64)[np.maximum(step, 0)]

    def reason(self, asked: int, needs_w: int, length_s: int) -> Reason:
        """The reason of a row that waits for power.

        Args:
            asked: position in `Rows.plannable`.
            needs_w: what it draws beyond idle.
            length_s: for how long.
        """
        text = f"waits for power: needs {needs_w:,} W"
        first = int(np.searchsorted(self._at_s, self._now_s))
        last = int(np.searchsorted(self._at_s, min(self._now_s + length_s, NEVER)))
        at_s, upper_w = self._at_s[first:last], self._upper_w[first:last]
        used_w = self._used_w[first:last].copy()
        if asked in self._of:
            start_s, end_s, own_w = self._of[asked]
            used_w[(at_s >= start_s) & (at_s < end_s)] -= own_w
        free_w = np.where(upper_w == NO_UPPER_W, NO_UPPER_W, upper_w - self._power.rest_w - used_w)
        short = np.flatnonzero(free_w < needs_w)
        if len(short):
            at = int(short[0])
            free, upper = _rounded(int(free_w[at])), int(upper_w[at])
            when_s = int(at_s[at])
            since = f" from {format_clock(when_s, self._now_s)} on" if when_s > self._now_s else ""
            text += f", {free:,} W are free of {upper:,} W{since}"
        return Reason(ReasonCode.POWER, text)


def _rounded(watts: int) -> int:
    """Watts rounded down to two digits, at least 0 (rule 2)."""
    if watts <= 0:
        return 0
    step = int("1" + "0" * max(len(str(watts)) - 2, 0))
    return watts // step * step
