# SPDX-License-Identifier: Apache-2.0
"""What is set aside in the cycles of one policy, and when the next search for culprits is due.

Rules
    1. What was set aside is tried again when it or its partition changes (`mark_of`), and after
       `RETRY_S`.
    2. After a search without result, the next one waits for 2, 4, ... at most `MAX_SKIPPED`
       failures. A policy that was interrupted is not run for as many cycles.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from bridge.errors import PolicyError
from bridge.model.snapshot import Snapshot
from bridge.safe_cycle.exclusion import RowKind, mark_of, name_of

RETRY_S = 3600
MAX_SKIPPED = 64


class TookTooLong(PolicyError):
    """The policy was interrupted."""


@dataclass(frozen=True)
class SetAsideJob:
    """What is set aside: its `mark_of` then, since when, and the reason for users."""

    mark: str
    since_s: int
    text: str


@dataclass
class SetAside:
    """What is set aside in the cycles of one policy.

    Attributes:
        known: what is set aside, by kind and name.
        open: groups of job ids that still have to be searched for culprits.
        skip, skipped: failures until the next search; their number after the last search.
        rests: why the policy is not run until then; None: it is run.
    """

    known: dict[tuple[RowKind, str], SetAsideJob] = field(default_factory=dict)
    open: list[set[str]] = field(default_factory=list)
    skip: int = 0
    skipped: int = 1
    rests: PolicyError | None = None

    def rows(self, snapshot: Snapshot) -> dict[RowKind, dict[int, str]]:
        """Returns the rows that are set aside, and why; drops those that are gone or changed."""
        found: dict[RowKind, dict[int, str]] = {}
        if not self.known:
            return found
        still: dict[tuple[RowKind, str], SetAsideJob] = {}
        for kind in {kind for kind, _ in self.known}:
            wanted = {name: entry for (of, name), entry in self.known.items() if of is kind}
            for row, name in enumerate(_names(snapshot, kind)):
                entry = wanted.get(name)
                if entry is None or not 0 <= snapshot.now_s - entry.since_s < RETRY_S:
                    continue
                if mark_of(snapshot, kind, row) == entry.mark:
                    still[kind, name] = entry
                    found.setdefault(kind, {})[row] = entry.text
        self.known = still
        return found

    def is_skipped(self, problem: PolicyError) -> bool:
        """Tells whether to do without a search: always after an interrupt, which has no culprit."""
        if self.skip > 0:
            self.skip -= 1
            return True
        self.rests = problem if isinstance(problem, TookTooLong) else None
        if self.rests is not None:
            self.search_failed()
        return self.rests is not None

    def search_failed(self) -> None:
        """Doubles the number of failures until the next search."""
        self.skipped = min(2 * self.skipped, MAX_SKIPPED)
        self.skip = self.skipped


def _names(snapshot: Snapshot, kind: RowKind) -> Iterable[str]:
    if kind is RowKind.NODE:
        return snapshot.nodes.names
    if kind is RowKind.RESERVATION:
        return [kept.name for kept in snapshot.reservations]
    tables = snapshot.jobs, snapshot.ended, snapshot.running
    names: list[str] = tables[kind].id.tolist()
    if kind is RowKind.RUNNING and snapshot.running.releasing.any():
        return [name_of(snapshot, kind, row) for row in range(len(names))]
    return names
