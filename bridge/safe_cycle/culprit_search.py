# SPDX-License-Identifier: Apache-2.0
"""Finds what makes cycles fail: halves what is suspected, again and again, within a budget.

Words
    to fail     a cycle raises, or its plan is illegal.
    culprit     a suspect (`bridge.safe_cycle.exclusion`) with which alone, of its kind, a cycle
    fails. open        suspects of a group that fails, among which the culprits were not found in
    time.

Rules
    1. A group that passes has no culprit; one that fails is halved until its culprits are known.
       One culprit among n costs about as much as one cycle, however large n is.
    2. First it is asked of what kind the culprits are. Where it fails without any waiting job, or
       with each of a few that have nothing to do with each other (so it is asked again of several
       culprits that were found), jobs that ended are left out,
       then running jobs, reservations or nodes closed. If it fails without waiting jobs all the
       same, the policy is at fault and nobody else (`Search.general`).
    3. Waiting jobs that the judge named are asked first, then those that were left open the last
       time, then the others, by user: what one user has sent is told from all other users' at once.
    4. Where a group fails and none of its parts does, nobody is a culprit alone; then the first
       job with which those before it fail is taken for one, and so on for at most so many
       (`most_together`). If there were more, the policy is at fault.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bridge.model.snapshot import Snapshot
from bridge.safe_cycle.exclusion import RowKind, count, without

MOST_CYCLES = 300
"""That one search makes."""

Run = Callable[[Snapshot], Any]
"""Plans a world; raises if that fails."""


class Spent(Exception):
    """The budget is spent."""


@dataclass
class CulpritSearch:
    """One search.

    Attributes:
        run: plans a world.
        over: tells whether the time is up.
        most_together: so many jobs may be at fault though none of them is alone.
        culprits: found so far, rows by kind.
        open: groups of waiting jobs that could not be looked at in time, to be asked in this order.
        general: it fails whatever is left out.
        cycles: made so far.
        problems: culprit to what went wrong with it.
    """

    run: Run
    over: Callable[[], bool]
    most_together: int = 0
    culprits: dict[RowKind, set[int]] = field(
        default_factory=lambda: {kind: set() for kind in RowKind}
    )
    open: list[list[int]] = field(default_factory=list)
    general: bool = False
    cycles: int = 0
    problems: dict[tuple[RowKind, int], str] = field(default_factory=dict)
    _problem: str = ""

    def look(self, snapshot: Snapshot, first: Sequence[Sequence[int]]) -> None:
        """Looks for culprits.

        Args:
            snapshot: the world; it fails.
            first: groups of waiting jobs to be asked first.
        """
        everyone = set(range(len(snapshot.jobs)))
        try:
            self._others(snapshot)
        except Spent:
            self.general = True
        if self.general:
            return
        asked = list[list[int]]()
        for group in first:
            own = [row for row in group if row in everyone]
            everyone.difference_update(own)
            asked.append(own)
        users = snapshot.jobs.user
        asked.append(sorted(everyone, key=lambda row: (str(users[row]), row)))
        with contextlib.suppress(Spent):
            self._groups(snapshot, asked)
            found = self.culprits[RowKind.PENDING]
            if len(found) > 1 and not self.general:  # have they somebody else in common?
                rows, kept = sorted(found), set(found)
                found.clear()
                if not self._of_kinds(snapshot, {rows[0], rows[len(rows) // 2], rows[-1]}):
                    found.update(kept)

    def _groups(self, snapshot: Snapshot, asked: list[list[int]]) -> None:
        found = self.culprits[RowKind.PENDING]
        for at, group in enumerate(asked):
            try:
                self._pending(snapshot, group)
                if self.general:
                    return
                rest = {row for later in asked[at + 1 :] for row in later}
                if found and rest and not self._fails(snapshot, rest):
                    return
            except Spent:
                self.open += asked[at + 1 : -1]  # the last ones are just all others
                raise

    def _others(self, snapshot: Snapshot) -> None:
        """Rule 2."""
        kept = set[int]()
        if not self._fails(snapshot, kept):
            kept = _spread(snapshot)
            if len(kept) < 2 or not all(self._fails(snapshot, {row}) for row in sorted(kept)):
                return
        self.general = not self._of_kinds(snapshot, kept) and not kept

    def _of_kinds(self, snapshot: Snapshot, kept: set[int]) -> bool:
        """Whether some waiting jobs fail because of something else, which is found then."""
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
        for _ in range(self.most_together + 1):
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
        """Rule 1; depth first, so that a culprit is found early."""
        waiting = [group] if group else []
        while waiting:
            rows = waiting.pop()
            try:
                if not fails(rows):
                    continue
            except Spent:
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
        """Whether it fails with these waiting jobs only, but for the culprits of other kinds."""
        pending = set(range(len(snapshot.jobs))) - kept
        return self._fails_without(
            snapshot, {RowKind.PENDING: pending | self.culprits[RowKind.PENDING]}
        )

    def _fails_without(self, snapshot: Snapshot, rows: Any) -> bool:
        if self.cycles >= MOST_CYCLES or self.over():
            raise Spent
        self.cycles += 1
        left_out = {kind: {*rows.get(kind, ()), *self.culprits[kind]} for kind in RowKind}
        try:
            self.run(without(snapshot, left_out))
        except Exception as error:
            self._problem = f"{type(error).__name__}: {error}"
            return True
        return False


def _spread(snapshot: Snapshot) -> set[int]:
    """A few waiting jobs, of different users if there are any."""
    users = snapshot.jobs.user
    order = sorted(range(len(users)), key=lambda row: (str(users[row]), row))
    return {order[0], order[len(order) // 2], order[-1]} if order else set()
