# SPDX-License-Identifier: Apache-2.0
"""Licences as constraints of the book, and the part of them that reservations keep.

Rules
    1. A licence is a constraint with the amount this cluster may use. All jobs that hold it count.
    2. The licences of a reservation are not available to other jobs while it lasts, whether its own
       jobs hold them or not: Slurm checks a start in this way, and a start that it would refuse is
       not promised.
    3. Jobs of a reservation may use what others leave, and the licences of their own reservation,
       even where others are planned already.
"""

import numpy as np
from numpy.typing import NDArray

from bridge.model.snapshot import Snapshot
from bridge.planning.site_rules.capacity_constraints import Mode, Terms
from bridge.units import NEVER


class LicenceConstraints:
    """The licences of one snapshot; constraints are numbered from `first` on.

    Attributes:
        steps: starts and amounts of each constraint: first those for jobs without a reservation,
            one for each licence, then those of reservations.
    """

    def __init__(self, snapshot: Snapshot, first: int) -> None:
        self.first = first
        self._names = snapshot.licences
        self._of = list(range(len(snapshot.licences)))  # constraint to licence
        self._keepers: list[str] = [""] * len(snapshot.licences)  # constraint to reservation
        self._own: dict[tuple[int, int], int] = {}  # licence and reservation to constraint
        self.steps = [_left(snapshot, at, -1) for at in range(len(snapshot.licences))]
        for at in range(len(snapshot.licences)):
            for keeper, reservation in enumerate(snapshot.reservations):
                if _kept(snapshot, keeper, at):
                    self._own[at, keeper] = len(self.steps)
                    self._of.append(at)
                    self._keepers.append(reservation.name)
                    self.steps.append(_left(snapshot, at, keeper))

    def licence(self, constraint: int) -> int:
        """The licence of a constraint; -1: it is none of these."""
        return self._of[constraint - self.first] if constraint >= self.first else -1

    def key(self, constraint: int) -> str:
        """The key of one of these constraints, the same in every snapshot."""
        at = constraint - self.first
        keeper = self._keepers[at]
        return f"licence:{self._names[self._of[at]]}" + (f":{keeper}" if keeper else "")

    def add_terms(
        self,
        terms: Terms,
        licences: NDArray[np.int64],
        mode: Mode,
        reservation: NDArray[np.int64] | None = None,
    ) -> Terms:
        """Adds licences to the terms of n jobs.

        Args:
            licences: (n, L) requested amounts.
            mode: BOTH for waiting jobs, COUNT for running ones.
            reservation: (n,) that each runs in, -1: none; None: none does.
        """
        if not licences.any():
            return terms
        job, which = np.nonzero(licences)
        amount = licences[job, which]
        constraint = which.astype(np.int64)
        modes = np.full(len(job), mode)
        if self._own:
            within = np.full(len(job), -1) if reservation is None else reservation[job]
            parts = [
                (job, constraint, amount, np.where(self._has_own(which, within), Mode.COUNT, modes))
            ]
            for (licence, keeper), own in self._own.items():
                wants = np.flatnonzero(which == licence)
                mine = np.where(within[wants] == keeper, modes[wants], Mode.COUNT)
                parts.append((job[wants], np.full(len(wants), own), amount[wants], mine))
            job, constraint, amount, modes = (
                np.concatenate([part[at] for part in parts]) for at in range(4)
            )
        owner = np.repeat(np.arange(len(terms)), np.diff(terms.indptr))
        everyone = np.concatenate((owner, job))
        order = np.argsort(everyone, kind="stable")
        counts = np.bincount(everyone, minlength=len(terms))
        return Terms(
            indptr=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
            constraint=np.concatenate((terms.constraint, constraint + self.first))[order].astype(
                np.int32
            ),
            amount=np.concatenate((terms.amount, amount))[order],
            mode=np.concatenate((terms.mode, modes))[order].astype(np.int8),
            reasons=terms.reasons,
        )

    def _has_own(
        self, licence: NDArray[np.int64], reservation: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Which of these requests are checked by the constraint of their own reservation."""
        own = [
            pair in self._own for pair in zip(licence.tolist(), reservation.tolist(), strict=True)
        ]
        return np.array(own, dtype=bool)


def _kept(snapshot: Snapshot, reservation: int, licence: int) -> int:
    kept = snapshot.reservations[reservation].licences
    return int(kept[licence]) if licence < len(kept) else 0


def _left(
    snapshot: Snapshot, licence: int, own: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A licence without the parts of reservations other than `own`, as steps from the clock on."""
    now_s, total = snapshot.now_s, int(snapshot.licence_total[licence])
    windows = [
        (max(reservation.start_s, now_s), reservation.end_s, _kept(snapshot, keeper, licence))
        for keeper, reservation in enumerate(snapshot.reservations)
        if keeper != own and reservation.end_s > now_s and _kept(snapshot, keeper, licence)
    ]
    edges = {now_s, *(edge for window in windows for edge in window[:2] if edge < NEVER)}
    starts = sorted(edges)
    left = [
        max(total - sum(kept for begin, end, kept in windows if begin <= at < end), 0)
        for at in starts
    ]
    return np.array(starts, dtype=np.int64), np.array(left, dtype=np.int64)
