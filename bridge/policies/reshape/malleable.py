# SPDX-License-Identifier: Apache-2.0
"""Widths by what they gain: a change is made only if all jobs together finish earlier by it.

Words
    cost        seconds from now until each job ends, added up: over running jobs, and over waiting
                jobs that the plan has a start for.
    promise     the start that the plan without changes has for a waiting job.

Rules
    1. While any job is adapting, nothing is decided.
    2. Growth: idle nodes go to the running job that saves most seconds for each node added, the
       change itself counted, again and again while anything is saved.
    3. Shrinking: the jobs that lose least for each node give nodes to the first waiting job, until
       it has enough. Each gives as few as its widths allow.
    4. Both are planned around. The one with the lower cost is used if it gains more than
       `least_gain_s`. Growth is not used if it makes a promise later.
    5. Speeds at other widths follow from what a job communicates now
       (`bridge.planning.malleable.speed`).

It needs a plan stage that gives every waiting job a start, such as `conservative`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.model.resizes import Resizes
from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.expand_shrink import (
    Malleables,
    Resize,
    first_waiting,
    growable,
    idle_nodes,
    usable_by,
)
from bridge.planning.malleable.reshaper import Reshaper
from bridge.planning.malleable.speed import left_s
from bridge.planning.malleable.widths import allowed_widths
from bridge.ports import Planned, Replan
from bridge.units import NEVER, UNPLANNED


@dataclass(frozen=True)
class GainingWidths(Reshaper):
    """Grows and shrinks jobs where it pays.

    Attributes:
        least_gain_s: what a change must gain over all jobs, s.
    """

    least_gain_s: int = 60

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.least_gain_s < 0:
            raise ConfigError("least_gain_s", f"must be 0 or more, not {self.least_gain_s}")

    def reshaped(self, snapshot: Snapshot, planned: Planned, replan: Replan) -> Planned:
        """Resizes running jobs."""
        malleables = Malleables.of(snapshot, self.adaptation_s)
        if not len(malleables.rows):
            return planned
        best, cost = planned, _cost(snapshot, planned)
        for shrinks in (True, False):
            widths = _Widths(malleables, planned, self.adaptation_s)
            rows = widths.shrunk() if shrinks else widths.grown()
            if not rows:
                continue
            tried = replan(Resizes.of(rows, self._ends(malleables, rows)))
            gained = cost - _cost(snapshot, tried)
            if gained > self.least_gain_s and (shrinks or not _later(planned, tried)):
                best, cost = tried, cost - gained
        return best

    def _ends(self, malleables: Malleables, rows: Sequence[Resize]) -> dict[int, int]:
        """When the jobs end at their new widths."""
        found = {}
        for job, by_s, nodes, _ in rows:
            lasts_s = left_s(malleables.snapshot, job, len(malleables.nodes(job)), len(nodes))
            found[job] = by_s + int(np.ceil(lasts_s))
        return found


class _Widths:
    """The widths of the malleable jobs while they are looked for."""

    def __init__(self, malleables: Malleables, planned: Planned, adaptation_s: int) -> None:
        self._snapshot = snapshot = malleables.snapshot
        self._planned, self._adaptation_s = planned, adaptation_s
        self._idle = idle_nodes(snapshot, planned)
        self._after = {job: malleables.nodes(job) for job in malleables.rows.tolist()}
        self._before = {job: len(nodes) for job, nodes in self._after.items()}
        self._allowed = {job: allowed_widths(snapshot, job) for job in self._after}

    def _resizes(self, reason: str) -> list[Resize]:
        by_s = self._snapshot.now_s + self._adaptation_s
        return [
            (job, by_s, nodes, reason)
            for job, nodes in self._after.items()
            if len(nodes) != self._before[job]
        ]

    def _lasts_s(self, job: int, width: int) -> float:
        return left_s(self._snapshot, job, self._before[job], width)

    # ------------------------------------------------------------ growth

    def grown(self) -> list[Resize]:
        """Rule 2."""
        if not self._idle.any():
            return []
        may = {job: growable(self._snapshot, job) for job in self._after}
        while self._idle.any():
            found = [
                step
                for job in self._after
                if (step := self._next_growth(job, int((self._idle & may[job]).sum())))
            ]
            if not found:
                break
            _, job, width = max(found)
            after = self._after[job]
            added = np.flatnonzero(self._idle & may[job])[: width - len(after)].astype(np.int32)
            self._idle[added] = False
            self._after[job] = np.union1d(after, added).astype(np.int32)
        return self._resizes("nodes are idle")

    def _next_growth(self, job: int, idle: int) -> tuple[float, int, int] | None:
        """Seconds saved for each node by the job's next larger width, the job, and that width."""
        now = len(self._after[job])
        width = next((w for w in self._allowed[job] if now < w <= now + idle), None)
        if width is None:
            return None
        saved_s = self._lasts_s(job, now) - self._lasts_s(job, width)
        if now == self._before[job]:
            saved_s -= self._adaptation_s
        return (saved_s / (width - now), job, width) if saved_s > 0 else None

    # ------------------------------------------------------------ shrinking

    def shrunk(self) -> list[Resize]:
        """Rule 3; empty if too little can be freed."""
        snapshot, waiting = self._snapshot, first_waiting(self._planned)
        if waiting is None:
            return []
        usable = usable_by(snapshot, waiting)
        needed = int(snapshot.jobs.min_nodes[waiting]) - int((self._idle & usable).sum())
        if needed <= 0:
            return []
        while needed > 0:
            found = [
                step for job in self._after if (step := self._next_shrink(job, usable, needed))
            ]
            if not found:
                return []
            _, job, width = min(found)
            after = self._after[job]
            free = after[usable[after] & (after != snapshot.running.head_of(job))]
            released = free[len(free) - (len(after) - width) :]
            self._after[job] = np.setdiff1d(after, released)
            needed -= len(released)
        return self._resizes(f"job {snapshot.jobs.id[waiting]} waits for its nodes")

    def _next_shrink(
        self, job: int, usable: NDArray[np.bool_], needed: int
    ) -> tuple[float, int, int] | None:
        """Seconds lost for each needed node by the next smaller width, the job, and that width."""
        after = self._after[job]
        others = after[after != self._snapshot.running.head_of(job)]
        now, free = len(after), int(usable[others].sum())
        width = next((w for w in reversed(self._allowed[job]) if now - free <= w < now), None)
        if width is None:
            return None
        lost_s = self._lasts_s(job, width) - self._lasts_s(job, now)
        return lost_s / min(now - width, needed), job, width


def _cost(snapshot: Snapshot, planned: Planned) -> float:
    """Seconds from now until each job ends, added up; see Words."""
    plan, running = planned.plan, snapshot.running
    end_s = running.end_s.astype(np.float64)
    resizes = plan.resizes
    changed = resizes.end_s > 0
    end_s[resizes.job[changed]] = resizes.end_s[changed]
    end_s = end_s[~running.releasing]
    starts = (plan.start_s != NEVER) & (plan.start_s != UNPLANNED)
    return float(np.maximum(end_s - plan.now_s, 0).sum() + (plan.end_s[starts] - plan.now_s).sum())


def _later(planned: Planned, tried: Planned) -> bool:
    """Whether a waiting job starts later than without the changes, or lost its planned start."""
    before, after = _starts(planned), _starts(tried)
    return any(after.get(job, NEVER) > start_s for job, start_s in before.items())


def _starts(planned: Planned) -> dict[int, int]:
    plan = planned.plan
    rows = np.flatnonzero((plan.start_s != NEVER) & (plan.start_s != UNPLANNED))
    found: dict[int, int] = {}
    for job, start_s in zip(plan.job[rows].tolist(), plan.start_s[rows].tolist(), strict=True):
        found[job] = min(found.get(job, NEVER), start_s)
    return found
