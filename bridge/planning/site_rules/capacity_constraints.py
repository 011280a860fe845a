# SPDX-License-Identifier: Apache-2.0
"""Capacity constraints and terms, to which limits and FreePools are lowered.

Terms
    constraint  here: a capacity constraint, an upper bound over time on a sum of amounts.
    term        a job's part in a constraint: which one, how much, and whether it checks or counts.
    open        of a constraint: its bound is `UNBOUNDED`; closed: it is 0.

Rules
    1. A job that checks may start only if the sum over all jobs that count stays within the bound
       throughout its run time.
    2. A job that only counts may raise the sum above the bound: what a FreePool reserves may be
       used by jobs with access.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.core import NEVER, TermMode
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.weighted_bound import WeightedBound

UNBOUNDED = NEVER
"""A bound that is never reached."""


Mode = TermMode
"""How a job's amount enters a constraint."""


@dataclass(frozen=True)
class CapacityConstraints:
    """Step functions; constraint i has steps indptr[i]:indptr[i + 1].

    Attributes:
        indptr: (n + 1,) int64.
        starts: (n_steps,) int64 instants, ascending in each constraint, first the snapshot's clock.
        amounts: (n_steps,) int64 from there on; the last one without end.
        keys: (n,) unique identifiers: the same rule of the same consumer has the same key in each
            snapshot.
        labels: (n,) names for users: "limit of user alice on cpus".
        peak: (n,) int64 the most that each ever allows.
        refusals: (n,) reason for a job that never fits; empty: that it requests too much.
        bounds: (n,) the bound that it is lowered from, if that has weights of nodes; None: it is
            of another rule.
    """

    indptr: NDArray[np.int64]
    starts: NDArray[np.int64]
    amounts: NDArray[np.int64]
    keys: tuple[str, ...]
    labels: tuple[str, ...]
    peak: NDArray[np.int64]
    refusals: tuple[str, ...]
    bounds: tuple[WeightedBound | None, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def steps(self, constraint: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Starts and amounts of one constraint."""
        own = slice(int(self.indptr[constraint]), int(self.indptr[constraint + 1]))
        return self.starts[own], self.amounts[own]

    def never(self, constraint: int, amount: int) -> Reason:
        """Describes an amount larger than a constraint ever allows."""
        peak, label = self.peak[constraint], self.labels[constraint]
        if (bound := self.bounds[constraint]) is not None:
            unit, rise = bound.unit, bound.rise
            text = f"needs {amount:,} {unit}, more than the {peak:,} {unit} that the {label} leaves"
            if amount <= peak + rise.amount:
                return Reason(bound.code, f"{text} {rise.until}")
            return Reason(ReasonCode.NEVER, text)
        text = (
            self.refusals[constraint] or f"requests {amount}, more than the {peak} of the {label}"
        )
        return Reason(ReasonCode.NEVER, text)


@dataclass(frozen=True)
class Terms:
    """The terms of n jobs; job i has terms indptr[i]:indptr[i + 1].

    Attributes:
        indptr: (n + 1,) int64.
        constraint: (n_terms,) int32.
        amount: (n_terms,) int64, at least 1.
        mode: (n_terms,) int8 `Mode`.
        reasons: (n,) why a job can never run under these constraints; None: it can.
    """

    indptr: NDArray[np.int64]
    constraint: NDArray[np.int32]
    amount: NDArray[np.int64]
    mode: NDArray[np.int8]
    reasons: tuple[Reason | None, ...]

    def __len__(self) -> int:
        return len(self.reasons)

    def of(self, job: int) -> slice:
        """The positions of one job's terms."""
        return slice(int(self.indptr[job]), int(self.indptr[job + 1]))


class CapacityConstraintList:
    def __init__(self) -> None:
        self._starts: list[NDArray[np.int64]] = []
        self._amounts: list[NDArray[np.int64]] = []
        self._keys: list[str] = []
        self._labels: list[str] = []
        self._refusals: list[str] = []
        self._bounds: list[WeightedBound | None] = []

    def add(
        self,
        starts: NDArray[np.int64],
        amounts: NDArray[np.int64],
        *,
        key: str,
        label: str,
        refusal: str = "",
        bound: WeightedBound | None = None,
    ) -> int:
        """Adds a constraint; returns its number."""
        self._starts.append(starts)
        self._amounts.append(amounts)
        self._keys.append(key)
        self._labels.append(label)
        self._refusals.append(refusal)
        self._bounds.append(bound)
        return len(self._labels) - 1

    def done(self) -> CapacityConstraints:
        empty = np.zeros(0, dtype=np.int64)
        peaks = [int(amounts.max()) for amounts in self._amounts]
        return CapacityConstraints(
            indptr=np.cumsum([0, *(len(starts) for starts in self._starts)], dtype=np.int64),
            starts=np.concatenate([empty, *self._starts]),
            amounts=np.concatenate([empty, *self._amounts]),
            keys=tuple(self._keys),
            labels=tuple(self._labels),
            peak=np.array(peaks, dtype=np.int64),
            refusals=tuple(self._refusals),
            bounds=tuple(self._bounds),
        )


class TermList:
    """Collects the terms of n jobs, rule by rule."""

    def __init__(self, n_jobs: int) -> None:
        self._n_jobs = n_jobs
        self._job: list[NDArray[np.int64]] = []
        self._constraint: list[NDArray[np.int64]] = []
        self._amount: list[NDArray[np.int64]] = []
        self._mode: list[NDArray[np.int8]] = []

    def add(
        self,
        job: NDArray[np.intp],
        constraint: NDArray[np.int64],
        amount: NDArray[np.int64],
        mode: NDArray[np.int8],
    ) -> None:
        """Adds one term for each of some jobs."""
        self._job.append(job.astype(np.int64))
        self._constraint.append(constraint)
        self._amount.append(amount)
        self._mode.append(mode)

    def done(self, constraints: CapacityConstraints) -> Terms:
        """Returns all of them, by job."""
        empty = np.zeros(0, dtype=np.int64)
        if not self._job:
            none = np.zeros(self._n_jobs + 1, dtype=np.int64)
            modes = empty.astype(np.int8)
            return Terms(none, empty.astype(np.int32), empty, modes, (None,) * self._n_jobs)
        job = np.concatenate([empty, *self._job])
        order = np.argsort(job, kind="stable")
        job = job[order]
        constraint = np.concatenate([empty, *self._constraint])[order]
        amount = np.concatenate([empty, *self._amount])[order]
        mode = np.concatenate([empty.astype(np.int8), *self._mode])[order]
        counts = np.bincount(job, minlength=self._n_jobs)
        reasons: list[Reason | None] = [None] * self._n_jobs
        hopeless = np.flatnonzero((mode != Mode.COUNT) & (amount > constraints.peak[constraint]))
        known: dict[tuple[int, int], Reason] = {}  # jobs with equal terms share one
        for term in hopeless[::-1].tolist():  # the first term that refuses gives the reason
            why = int(constraint[term]), int(amount[term])
            if why not in known:
                known[why] = constraints.never(*why)
            reasons[int(job[term])] = known[why]
        return Terms(
            indptr=np.concatenate(([0], np.cumsum(counts))).astype(np.int64),
            constraint=constraint.astype(np.int32),
            amount=amount,
            mode=mode,
            reasons=tuple(reasons),
        )
