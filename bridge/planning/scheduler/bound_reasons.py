# SPDX-License-Identifier: Apache-2.0
"""Readable reasons of rows that wait because of a bound with weights of nodes, as for power.

Rules
    1. The reason states what the job adds, and what is free below the bound: now, or at the first
       instant of a run from now on at which it does not suffice, because the bound falls then or
       other jobs are planned.
    2. What is free is rounded down to two digits, so that small changes do not change the reason.
"""

import numpy as np
from numpy.typing import NDArray

from bridge.model.reasons import Reason
from bridge.planning.scheduler.planned_rows import PlannedRows
from bridge.planning.site_rules.lowered_rules import LoweredRules
from bridge.planning.site_rules.weighted_bounds import LoweredBound
from bridge.units import NEVER, format_clock


class BoundReasons:
    """What running and booked rows use of one bound over time; after all passes."""

    def __init__(self, planned: PlannedRows, lowered: LoweredRules, bound: LoweredBound) -> None:
        self._given = given = bound.given
        self._now_s = lowered.snapshot.now_s
        running, terms = lowered.snapshot.running, lowered.running
        owner = np.repeat(np.arange(len(terms)), np.diff(terms.indptr))
        mine = terms.constraint == bound.constraint
        requested, start_s, end_s, counted = planned.counted_on(bound.constraint)
        self._of = {
            row: span
            for row, *span in zip(
                requested.tolist(), start_s.tolist(), end_s.tolist(), counted.tolist(), strict=True
            )
        }
        starts = np.concatenate((np.full(int(mine.sum()), self._now_s), start_s))
        ends = np.concatenate((np.maximum(running.end_s[owner[mine]], self._now_s + 1), end_s))
        amounts = np.concatenate((terms.amount[mine], counted))
        self._at_s = np.unique(np.concatenate((starts, ends, given.starts_s, [self._now_s])))
        change = np.zeros(len(self._at_s), dtype=np.int64)
        np.add.at(change, np.searchsorted(self._at_s, starts), amounts)
        np.add.at(change, np.searchsorted(self._at_s, ends), -amounts)
        self._used: NDArray[np.int64] = np.cumsum(change)
        step = np.searchsorted(given.starts_s, self._at_s, side="right") - 1
        self._upper = given.upper[np.maximum(step, 0)]

    def reason(self, requested: int, needs: int, length_s: int) -> Reason:
        """The reason of a row that waits because of the bound.

        Args:
            requested: position in `Rows.plannable`.
        """
        given, unit = self._given, self._given.unit
        text = f"waits for {given.subject}: needs {needs:,} {unit}"
        first = int(np.searchsorted(self._at_s, self._now_s))
        last = int(np.searchsorted(self._at_s, min(self._now_s + length_s, NEVER)))
        at_s, upper = self._at_s[first:last], self._upper[first:last]
        used = self._used[first:last].copy()
        if requested in self._of:
            start_s, end_s, own = self._of[requested]
            used[(at_s >= start_s) & (at_s < end_s)] -= own
        free = np.where(upper == NEVER, NEVER, upper - given.rest - used)
        short = np.flatnonzero(free < needs)
        if len(short):
            at = int(short[0])
            when_s = int(at_s[at])
            since = f" from {format_clock(when_s, self._now_s)} on" if when_s > self._now_s else ""
            left, whole = _rounded(int(free[at])), int(upper[at])
            text += f", {left:,} {unit} are free of {whole:,} {unit}{since}"
        return Reason(given.code, text)


def _rounded(amount: int) -> int:
    """An amount rounded down to two digits, at least 0 (rule 2)."""
    if amount <= 0:
        return 0
    step = int("1" + "0" * max(len(str(amount)) - 2, 0))
    return amount // step * step
