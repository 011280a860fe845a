# SPDX-License-Identifier: Apache-2.0
"""Searches for a slot for one row among several candidates and layouts.

Rules
    1. Of several candidates and layouts the one with the earliest start is taken; ties go to the
       first.
    2. A row that starts now takes the widest of its layouts that fits now within all rules.
    3. A late row is booked at its latest start, with `SPARE_S` left free before its deadline.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.typing import NDArray

from bridge.core import Blocked, Book
from bridge.planning.queue.time_windows import SPARE_S
from bridge.planning.scheduler.candidates import Candidates
from bridge.planning.scheduler.layout_choices import LayoutChoice
from bridge.planning.site_rules.freepools import Closure, JobClosures
from bridge.units import NEVER

_IMPOSSIBLE = (Blocked.NEVER_NODES, Blocked.NEVER_SIZE, Blocked.NEVER_COUNTER)
_Shut = tuple[int, tuple[JobClosures, ...], int]  # layouts, their closures, and for how long
_Mapping = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]


@dataclass(frozen=True, slots=True)
class RowFit:
    """A choice, the start at which it fits, and its nodes, groups and chunks there."""

    choice: LayoutChoice
    start_s: int
    mapping: _Mapping


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a row does not start now, for one of its candidates."""

    candidate: int
    blocked: int
    constraint: int


class StartSearch:
    """Searches the book for single rows; books nothing."""

    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates
        self._now_s = candidates.rows.snapshot.now_s
        self._kept_out: dict[_Shut, tuple[Closure, ...] | None] = {}

    @property
    def _book(self) -> Book:
        return self._candidates.cluster.book

    def _find(
        self, choice: LayoutChoice, begin_s: int, until_s: int, *, last: bool = False
    ) -> RowFit | None:
        """The first, or last, start in [begin_s, until_s] at which a choice fits."""
        all_ = self._candidates
        request, terms = all_.request_of(choice), all_.terms_of(choice)
        length = int(all_.length_s[choice.candidate])
        found = self._book.find(request, length, terms, begin_s, until_s, last=last)
        return None if found is None else RowFit(choice, found[0], found[1:])

    def earliest(self, requested: int, begin_s: int, until_s: int, *, bound: bool) -> RowFit | None:
        """The earliest slot of a row (rule 1).

        Args:
            begin_s: the earliest start allowed.
            until_s: the latest start allowed.
            bound: whether its deadline or fixed start binds it.
        """
        all_ = self._candidates
        best: RowFit | None = None
        for candidate in all_.runnable(requested):
            for choice in all_.choices.to_plan(candidate):
                until = min(until_s, (NEVER if best is None else best.start_s) - 1)
                if bound:
                    until = min(until, int(all_.latest_s[candidate]))
                if until < begin_s:
                    break
                best = self._find(choice, begin_s, until) or best
        return best

    def latest(self, requested: int, begin_s: int, until_s: int) -> RowFit | None:
        """The latest slot of a row that ends by its deadline (rule 3)."""
        all_ = self._candidates
        best: RowFit | None = None
        for candidate in all_.runnable(requested):
            length = int(all_.length_s[candidate])
            until = min(all_.deadline_s(requested) - length - SPARE_S, until_s)
            for choice in all_.choices.to_plan(candidate):
                after = begin_s if best is None else max(begin_s, best.start_s + 1)
                if until < after:
                    break
                best = self._find(choice, after, until, last=True) or best
        return best

    def widest_now(self, candidate: int) -> RowFit | None:
        """The widest layout that fits now (rule 2); None: no wider one than for any start."""
        for choice in self._candidates.choices.to_start(candidate):
            found = self._find(choice, self._now_s, self._now_s)
            if found is not None:
                return found
        return None

    def why(
        self, requested: int, begin_s: int, latest_s: int, candidates: Iterable[int] | None = None
    ) -> Obstacle:
        """Why a row does not start now, for its first candidate that could ever run."""
        all_ = self._candidates
        results: list[Obstacle] = []
        for candidate in all_.runnable(requested) if candidates is None else candidates:
            choice = all_.choices.first(candidate)
            result = self._book.why(
                all_.request_of(choice),
                int(all_.length_s[candidate]),
                all_.terms_of(choice),
                begin_s,
                latest_s,
            )
            results.append(Obstacle(candidate, *result))
            if result[0] not in _IMPOSSIBLE:
                break
        return results[0] if results[-1].blocked in _IMPOSSIBLE else results[-1]

    def kept_out(self, requested: int) -> tuple[Closure, ...]:
        """The FreePools of nodes without which an unplaceable row could be placed.

        Usually none. A row that can be placed, if only beyond the horizon, is not kept out;
        constraints are ignored. A row that is kept out never starts, whatever the horizon.
        """
        found: tuple[Closure, ...] = ()
        for candidate in self._candidates.runnable(requested):
            closures = self._candidate_kept_out(candidate)
            if closures is None:
                return ()
            found = found or closures
        return found

    def _candidate_kept_out(self, candidate: int) -> tuple[Closure, ...] | None:
        """The same for one candidate; None: no pool keeps it out. Equal ones share the result."""
        all_ = self._candidates
        cluster, choices = all_.cluster, list(all_.choices.to_plan(candidate))
        job_closures = [all_.choices.job_closures[choice.number] for choice in choices]
        length = int(all_.length_s[candidate])
        if not all(job_closures):
            return None
        key = int(all_.choices.which[candidate]), tuple(job_closures), length
        if key not in self._kept_out:

            def fits(shut: Iterable[JobClosures]) -> bool:
                layouts = [choice.layout for choice in choices]
                requests = map(cluster.request, layouts, shut)
                finds = (self._book.find(r, length, None, self._now_s, NEVER - 1) for r in requests)
                return any(found is not None for found in finds)

            closures = tuple(cluster.closures[each.closure] for each in job_closures[0])
            open_ = repeat((), len(choices))
            self._kept_out[key] = None if fits(job_closures) else closures if fits(open_) else ()
        return self._kept_out[key]
