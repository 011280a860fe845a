# SPDX-License-Identifier: Apache-2.0
"""Sums over time that are compared with bounds, and the rows to blame if one is exceeded.

A sweep over all sums finds those that are exceeded; then the rows to blame are determined in each
of these. If several rows together exceed a sum, the last ones in the plan are blamed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.check.amounts import CheckedAmounts, Ints
from bridge.units import NEVER

Found = Iterator[tuple[int, str]]

OPEN = 1 << 56  # more than all amounts together

_LAST_S = 1 << 40  # latest time that is distinguished, from the snapshot's clock on


@dataclass(frozen=True)
class Sum:
    """Amounts to be summed over time against one bound.

    Attributes:
        rows: (k,) positions among the checked rows; the last ones are blamed first.
        amounts: (k,) of these rows.
        running: (m,) running jobs that count, and their amounts.
        bounds: (w, 3) windows [start, end), and the maximum use in them.
        text: the violation of a row that exceeds the bound.
    """

    rows: NDArray[np.intp]
    amounts: Ints
    running: NDArray[np.intp]
    held: Ints
    bounds: Ints
    text: str


def overrun(world: CheckedAmounts, sums: Sequence[Sum]) -> Found:
    """The rows that exceed these sums: one sweep over all, and a closer look at those exceeded."""
    if not sums:
        return
    key, begin, end, amount, judged = [], [], [], [], []
    for at, one in enumerate(sums):
        sizes = len(one.rows), len(one.running), len(one.bounds)
        key.append(np.full(sum(sizes), at))
        begin += [world.start_s[one.rows], np.full(sizes[1], world.now_s), one.bounds[:, 0]]
        end += [world.end_s[one.rows], world.running_end_s[one.running], one.bounds[:, 1]]
        # A bound is represented by a holder of the rest of an unbounded sum.
        amount += [one.amounts, one.held, np.maximum(OPEN - one.bounds[:, 2], 0)]
        judged.append(np.arange(sum(sizes)) < sizes[0])
    exceeded = _exceeded(
        np.concatenate(key),
        _span(world, np.concatenate(begin)),
        _span(world, np.concatenate(end)),
        np.concatenate(amount),
        np.concatenate(judged),
    )
    for at in exceeded.tolist():
        for row in _latecomers(world, sums[at]):
            world.blamed[row] = True
            yield int(world.rows[row]), sums[at].text


def _span(world: CheckedAmounts, instant: Ints) -> Ints:
    return np.clip(instant - world.now_s, 0, _LAST_S)


def _exceeded(key: Ints, begin: Ints, end: Ints, amount: Ints, judged: NDArray[np.bool_]) -> Ints:
    """The keys for which, at some second, too much is in use and a checked row is present."""
    keys = np.concatenate((key, key))
    when = np.concatenate((begin, end))
    order = np.argsort((keys << 41) | when)
    keys, when = keys[order], when[order]
    used: Ints = np.cumsum(np.concatenate((amount, -amount))[order])
    there: Ints = np.cumsum(np.concatenate((judged, -judged.astype(np.int64)))[order])
    # The sum from an instant on is known after all begins and ends at it.
    last = np.append((keys[1:] != keys[:-1]) | (when[1:] != when[:-1]), True)
    found: Ints = keys[last & (used > OPEN) & (there > 0)]
    return np.unique(found)


def _latecomers(world: CheckedAmounts, one: Sum) -> list[int]:
    """The rows that do not fit together with the rows before them (rule 8)."""
    fresh = ~world.blamed[one.rows]
    rows, amounts = one.rows[fresh], one.amounts[fresh]
    spans = [
        (_span(world, begin), _span(world, end), amount)
        for begin, end, amount in (
            (world.start_s[rows], world.end_s[rows], amounts),
            (np.full(len(one.running), world.now_s), world.running_end_s[one.running], one.held),
            (one.bounds[:, 0], one.bounds[:, 1], np.maximum(OPEN - one.bounds[:, 2], 0)),
        )
    ]
    instants = np.unique(np.concatenate([edge for begin, end, _ in spans for edge in (begin, end)]))
    change = np.zeros(len(instants), dtype=np.int64)
    for begin, end, amount in spans:
        np.add.at(change, np.searchsorted(instants, begin), amount)
        np.add.at(change, np.searchsorted(instants, end), -amount)
    used = np.cumsum(change)  # from each instant to the next, by all of them
    over = np.concatenate(([0], np.cumsum(used > OPEN)))
    first, last = (np.searchsorted(instants, edge) for edge in spans[0][:2])
    suspects = np.flatnonzero(over[last] > over[first])
    for at in suspects.tolist():
        used[first[at] : last[at]] -= amounts[at]
    late = []
    for at in suspects.tolist():
        own = slice(first[at], last[at])
        if (used[own] + amounts[at] > OPEN).any():
            late.append(int(rows[at]))
        else:
            used[own] += amounts[at]
    return late


def meets(world: CheckedAmounts, rows: NDArray[np.intp], times: Ints) -> NDArray[np.bool_]:
    """Which rows overlap some windows; those are ascending and disjoint."""
    if not len(times):
        return np.zeros(len(rows), dtype=bool)
    following = np.searchsorted(times[:, 1], world.start_s[rows], side="right")
    begins = np.append(times[:, 0], NEVER)[following]
    found: NDArray[np.bool_] = begins < world.end_s[rows]
    return found
