# SPDX-License-Identifier: Apache-2.0
"""Finds the rows that make cycles fail, by bisection within a budget.

Terms
    fail        the cycle raises an exception, or its plan is illegal.
    suspect     a row of a snapshot (`bridge.safe_cycle.exclusion`).
    culprit     a suspect with which a cycle fails although no other suspect of its kind is there.
    open        suspects of a group that fails, whose culprits were not found in time.

Rules
    1. A group that passes has no culprit. One that fails is halved until its culprits are known.
       All test cycles for one culprit among n take about as long as one full cycle.
    2. The kind of the culprits is determined first. If the cycle fails without any waiting job, or
       with each of a few unrelated ones alone, ended jobs are left out, and then running jobs,
       reservations or nodes are closed. (This is repeated when several waiting jobs were found.)
       If it still fails without waiting jobs, the policy itself is at fault
       (`CulpritSearch.general`).
    3. Waiting jobs that the check named are tested first, then those left open by the last search,
       then the others, sorted by user, so that all jobs of one user can be excluded together.
    4. If a group fails but none of its parts does, no job is a culprit by itself. Then the first
       job with which those before it fail is taken as one, at most `max_together` times. If that
       is not enough, the policy is at fault.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bridge.model.snapshot import Snapshot
from bridge.safe_cycle.exclusion import RowKind, count, without

MAX_CYCLES = 300
"""Test cycles of one search at most."""

PlanCycle = Callable[[Snapshot], Any]
"""Plans a snapshot; raises if that fails."""


class BudgetSpent(Exception):
    """No more subsets may be tried."""


@dataclass
class CulpritSearch:
    """One search.

    Attributes:
        run: plans a snapshot.
        over: tells whether the time is up.
        max_together: limit on the culprits of rule 4.
        culprits: found so far, rows by kind.
        open: groups of waiting jobs that could not be tested in time, in the order of testing.
        general: the cycle fails whatever is excluded.
        cycles: run so far.
        problems: culprit to the error that it causes.
    """

    run: PlanCycle
    over: Callable[[], bool]
    max_together: int = 0
    culprits: dict[RowKind, set[int]] = field(
        default_factory=lambda: {kind: set() for kind in RowKind}
    )
    open: list[list[int]] = field(default_factory=list)
    general: bool = False
    cycles: int = 0
    problems: dict[tuple[RowKind, int], str] = field(default_factory=dict)
    _problem: str = ""

    def look(self, snapshot: Snapshot, first: Sequence[Sequence[int]]) -> None:
        """Searches for culprits.

        Args:
            first: groups of waiting jobs to be tested first.
        """
        everyone = set(range(len(snapshot.jobs)))
        try:
            self._others(snapshot)
        except BudgetSpent:
            self.general = True
        if self.general:
            return
        requested = list[list[int]]()
        for group in first:
            own = [row for row in group if row in everyone]
            everyone.difference_update(own)
            requested.append(own)
        users = snapshot.jobs.user
        requested.append(sorted(everyone, key=lambda row: (str(users[row]), row)))
        with contextlib.suppress(BudgetSpent):
            self._groups(snapshot, requested)
            found = self.culprits[RowKind.PENDING]
            if len(found) > 1 and not self.general:  # is something else the common cause?
                rows, kept = sorted(found), set(found)
                found.clear()
                if not self._of_kinds(snapshot, {rows[0], rows[len(rows) // 2], rows[-1]}):
                    found.update(kept)

    def _groups(self, snapshot: Snapshot, requested: list[list[int]]) -> None:
        found = self.culprits[RowKind.PENDING]
        for at, group in enumerate(requested):
            try:
                self._pending(snapshot, group)
                if self.general:
                    return
                rest = {row for later in requested[at + 1 :] for row in later}
                if found and rest and not self._fails(snapshot, rest):
                    return
            except BudgetSpent:
                self.open += requested[at + 1 : -1]  # the last ones are exactly all others
                raise

    def _others(self, snapshot: Snapshot) -> None:
        """Determines the kind of the culprits (rule 2)."""
        kept = set[int]()
        if not self._fails(snapshot, kept):
            kept = _spread(snapshot)
            if len(kept) < 2 or not all(self._fails(snapshot, {row}) for row in sorted(kept)):
                return
        self.general = not self._of_kinds(snapshot, kept) and not kept

    def _of_kinds(self, snapshot: Snapshot, kept: set[int]) -> bool:
        """Finds a culprit of another kind because of which the kept waiting jobs fail."""
        pending = set(range(len(snapshot.jobs))) - kept
        for kind in (RowKind.ENDED, RowKind.RUNNING, RowKind.RESERVATION, RowKind.NODE):
            size = count(snapshot, kind)
            left_out = {RowKind.PENDING: pending, kind: set(range(size))}
            if not size or self._fails_without(snapshot, left_out):
                continue

            def fails(rows: list[int], kind: RowKind = kind, size: int = size) -> bool:
                others = set(range(size)).difference(rows)
                return self._fails_without(snapshot, {RowKind.PENDING: pending, kind: others})

            self._halve(list(range(size)), fails, kind)
            if self.culprits[kind] and not self._fails(snapshot, kept):
                return True
            self.culprits[kind].clear()
        return False

    def _pending(self, snapshot: Snapshot, group: list[int]) -> None:
        found = self.culprits[RowKind.PENDING]
        self._halve(group, lambda rows: self._fails(snapshot, set(rows)), RowKind.PENDING)
        for _ in range(self.max_together + 1):
            rest = [row for row in group if row not in found]
            if not rest or not self._fails(snapshot, set(rest)):
                return
            low, high = 0, len(rest)  # rest[:low] passes, rest[:high] fails
            while high - low > 1:
                middle = (low + high) // 2
                if self._fails(snapshot, set(rest[:middle])):
                    high = middle
                else:
                    low = middle
            self.problems[RowKind.PENDING, rest[high - 1]] = self._problem
            found.add(rest[high - 1])
        self.general = True

    def _halve(self, group: list[int], fails: Callable[[list[int]], bool], kind: RowKind) -> None:
        """Rule 1, depth first, so that the first culprit is found early."""
        waiting = [group] if group else []
        while waiting:
            rows = waiting.pop()
            try:
                if not fails(rows):
                    continue
            except BudgetSpent:
                if kind is RowKind.PENDING:
                    self.open += [rows, *reversed(waiting)]
                raise
            if len(rows) == 1:
                self.culprits[kind].add(rows[0])
                self.problems[kind, rows[0]] = self._problem
                continue
            half = len(rows) // 2
            waiting += [rows[half:], rows[:half]]

    def _fails(self, snapshot: Snapshot, kept: set[int]) -> bool:
        """Tells whether a cycle fails with these waiting jobs only, known culprits left out."""
        pending = set(range(len(snapshot.jobs))) - kept
        return self._fails_without(
            snapshot, {RowKind.PENDING: pending | self.culprits[RowKind.PENDING]}
        )

    def _fails_without(self, snapshot: Snapshot, rows: Any) -> bool:
        if self.cycles >= MAX_CYCLES or self.over():
            raise BudgetSpent
        self.cycles += 1
        left_out = {kind: {*rows.get(kind, ()), *self.culprits[kind]} for kind in RowKind}
        try:
            self.run(without(snapshot, left_out))
        except Exception as error:
            self._problem = f"{type(error).__name__}: {error}"
            return True
        return False


def _spread(snapshot: Snapshot) -> set[int]:
    """Returns up to three waiting jobs, of different users if possible."""
    users = snapshot.jobs.user
    order = sorted(range(len(users)), key=lambda row: (str(users[row]), row))
    return {order[0], order[len(order) // 2], order[-1]} if order else set()
