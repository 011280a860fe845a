# SPDX-License-Identifier: Apache-2.0
"""How long classes of jobs have waited, against a simulation of EASY on the same jobs.

Terms
    entry       a job seen lately: [number, eligible_s, length_s, width, class, start_s, end_s];
                0: not yet.
    simulation  the jobs of all entries under EASY on one pool of processors, in the order in
                which they were seen. A job that has ended takes there what it took; another one,
                what was expected when it came.
    class       of size (one node; up to 1/8, 1/2 of the machine; larger) and of expected length
                (1, 4, 12 h; longer), eight in all: each job is in one of either kind.

Rules
    1. A job enters when it is first planned, and is told to end by the controller, or by being
       neither waiting nor running any more. The `MAX` newest are kept, and those that have not
       ended; while there are `MAX_KNOWN`, none enters. Rows of arrays are left out: their tasks
       have other names once they run.
    2. After each `EVERY` arrivals EASY is simulated anew; once in `FULL_S` while no job may enter,
       as then nothing arrives. Waits of a class, real and simulated, begin when a job is eligible,
       and are those until now: of jobs that have not started, what they have waited so far.
    3. A class whose wait is more than `class_factor` times the simulated one gets more weight: the
       excess to the power of `GAIN`, at most `MAX_WEIGHT`. A job has the product of the weights
       of its two classes, arrays too.
    4. Sums are integers, and powers products: the same on every machine.

The simulation ignores what a count cannot express: nodes, partitions, limits, reservations. Where
it is too quick or too slow for all jobs alike, the weights of all classes change alike, which
changes no plan.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.core import replay_counts
from bridge.model.layers import Draft
from bridge.model.learnt import Learnt
from bridge.model.snapshot import Snapshot

NAME: Final = "search"
"""Of the account in `bridge.ports.State.learnt`: the name of its plan stage."""
HOUR_S: Final = 3600
MAX: Final = 2000
MAX_KNOWN: Final = 2 * MAX
EVERY: Final = 5
FULL_S: Final = 60
GAIN: Final = 4
MAX_WEIGHT: Final = 10_000.0
FLOOR_S: Final = 60
"""Added to mean waits before they are compared: shorter ones do not matter."""
MIN_LONGEST_S: Final = 4 * HOUR_S
"""No job is overdue earlier."""
_LENGTHS_H: Final = (1, 4, 12)
_CLASSES: Final = 8
_UNIT: Final = 1 << 20
"""Weights are kept as multiples of 1 / `_UNIT`."""
_TOTALS: Final = "*"
"""The key of [number of arrivals, of those at the last simulation, its instant, longest wait,
weights]."""
_MAX_LENGTH_S: Final = 1 << 40
_ELIGIBLE, _LENGTH, _WIDTH, _CLASS, _START, _END = range(1, 7)

Ints = NDArray[np.int64]


class Account:
    """The account during one cycle; `done` is that of the next one.

    Attributes:
        longest_s: the longest simulated wait; 0: there was no simulation yet.
        running: returns the starts of running jobs, by id.
    """

    running: Callable[[], Mapping[str, int]] = staticmethod(dict)

    def __init__(self, before: Learnt) -> None:
        """Begins with what was known: entries and totals are `known`."""
        self._known = Draft(before.known)
        totals = self._known.get(_TOTALS) or [0, 0, 0, 0] + [_UNIT] * _CLASSES
        self._arrivals, self._simulated, self._at_s, self.longest_s = totals[:4]
        self._weight = np.array(totals[4:], dtype=np.float64) / _UNIT
        self._before = before

    def arrive(
        self,
        ids: Iterable[str],
        eligible_s: Ints,
        length_s: Ints,
        width: Ints,
        *,
        total: int,
        nodes: int,
    ) -> None:
        """Jobs wait; those that are known already are not changed.

        Args:
            ids: (n,) of the jobs.
            eligible_s: (n,) instants from which they wait.
            length_s: (n,) expected run times.
            width: (n,) as of `counted`.
        """
        if self._is_full:
            return
        kinds = _classes(length_s, width, total, nodes)
        columns = (each.tolist() for each in (eligible_s, length_s, width, kinds))
        for id_, *column in zip(ids, *columns, strict=True):
            known = self._known.get(id_)
            if (known is None or known[_END]) and not self._is_full:
                self._arrivals += 1
                self._known[id_] = [self._arrivals, *column, 0, 0]

    def end(self, ids: Iterable[str], start_s: Iterable[int], end_s: Iterable[int]) -> None:
        """Jobs have ended; unknown ones are ignored."""
        for id_, started_s, ended_s in zip(ids, start_s, end_s, strict=True):
            entry = self._known.get(id_)
            if entry is not None:
                self._known[id_] = [*entry[:_START], started_s, ended_s]

    def settle(
        self,
        now_s: int,
        total: int,
        class_factor: float,
        waiting: Collection[str],
    ) -> None:
        """Simulates EASY if there were enough arrivals (rule 2), and weighs the classes.

        Args:
            total: width of the machine.
            class_factor: rule 3.
            waiting: ids of waiting jobs.
        """
        full = self._is_full and now_s - self._at_s >= FULL_S
        if self._arrivals - self._simulated < EVERY and not full:
            return
        self._simulated, self._at_s = self._arrivals, now_s
        entries = self._followed(now_s, set(waiting), self.running())
        entries = sorted(entry for entry in entries if entry[_WIDTH] <= total)
        if not entries:
            return
        _, eligible_s, length_s, width, kind, start_s, end_s = np.ascontiguousarray(
            np.array(entries, dtype=np.int64).T
        )
        length_s = np.clip(length_s, 1, _MAX_LENGTH_S)
        run_s = np.where(end_s > 0, np.clip(end_s - start_s, 1, length_s), length_s)
        easy = replay_counts(eligible_s, run_s, length_s, width, total, 1).start
        under_easy_s = np.maximum(np.minimum(easy, now_s) - eligible_s, 0)
        waited_s = np.maximum(np.where(start_s > 0, start_s, now_s) - eligible_s, 0)
        self.longest_s = int(under_easy_s.max())
        for each in range(_CLASSES):
            own = (kind // 4 == each) if each < 4 else (kind % 4 == each - 4)
            self._weight[each] = _weight(
                int(waited_s[own].sum()), int(under_easy_s[own].sum()), int(own.sum()), class_factor
            )

    def weights(
        self, length_s: Ints, width: Ints, *, total: int, nodes: int
    ) -> NDArray[np.float64]:
        """(n,) of jobs; the arguments are those of `arrive`."""
        by_kind = np.outer(self._weight[:4], self._weight[4:]).ravel()
        found: NDArray[np.float64] = by_kind[_classes(length_s, width, total, nodes)]
        return found

    @property
    def _is_full(self) -> bool:
        return len(self._known) >= MAX_KNOWN

    def done(self) -> Learnt:
        """What the next cycle is to know."""
        weight = np.rint(self._weight * _UNIT).astype(np.int64).tolist()
        totals = [self._arrivals, self._simulated, self._at_s, self.longest_s, *weight]
        if totals != self._known.get(_TOTALS):
            self._known[_TOTALS] = totals
        return Learnt(self._known.done())

    def _followed(
        self, now_s: int, waiting: set[str], running: Mapping[str, int]
    ) -> list[list[int]]:
        """The entries, after the starts of running jobs and the ends of which nobody told."""
        found = []
        for id_ in self._known.in_order():
            entry = self._known[id_]
            if id_ == _TOTALS:
                continue
            after = entry if entry[_END] else _followed(entry, id_, now_s, waiting, running)
            if after is None or (after[_END] and after[0] <= self._arrivals - MAX):
                self._known.pop(id_)
                continue
            if after is not entry:
                self._known[id_] = after
            found.append(after)
        return found


def _followed(
    entry: list[int], id_: str, now_s: int, waiting: set[str], running: Mapping[str, int]
) -> list[int] | None:
    """An entry without an end, now; None: the job was cancelled."""
    start_s = entry[_START]
    if id_ in waiting:  # if it has a start, it was requeued
        return [*entry[:_START], 0, 0] if start_s else entry
    if id_ in running:
        now_running_s = running[id_]
        return entry if start_s == now_running_s else [*entry[:_START], now_running_s, 0]
    return [*entry[:_END], max(now_s, start_s + 1)] if start_s else None


def counted(snapshot: Snapshot, job: Ints, nodes: Ints) -> tuple[Ints, int]:
    """Jobs and machine as one number each: processors, of the resource they need most of.

    Args:
        job: (n,) rows of its jobs.
        nodes: (n,) that each needs.

    Returns:
        (n,) widths, and that of the machine.
    """
    jobs, capacity = snapshot.jobs, snapshot.nodes.capacity.sum(axis=0)
    total = max(int(capacity[0]), 1)
    wants = nodes[:, np.newaxis] * jobs.per_node[job]
    wants = wants + jobs.tasks[job][:, np.newaxis] * jobs.per_task[job]
    width = -(-wants * total // np.maximum(capacity, 1)).max(axis=1, initial=0)
    whole = -(-nodes * total // max(len(snapshot.nodes), 1))
    return np.maximum(np.where(jobs.exclusive[job], np.maximum(width, whole), width), 1), total


def _classes(length_s: Ints, width: Ints, total: int, nodes: int) -> Ints:
    """(n,) 4 times the class of size, and the class of length: each 0 to 3."""
    size = np.where(8 * width <= total, 1, np.where(2 * width <= total, 2, 3))
    size = np.where(width * nodes <= total, 0, size)
    limits_s = HOUR_S * np.array(_LENGTHS_H, dtype=np.int64)
    found: Ints = 4 * size + np.searchsorted(limits_s, length_s, side="left")
    return found


def _weight(waited_s: int, under_easy_s: int, jobs: int, class_factor: float) -> float:
    """Rule 3; 1 for a class that waits no longer than it may."""
    excess = (waited_s + FLOOR_S * jobs) / (class_factor * (under_easy_s + FLOOR_S * jobs) or 1.0)
    if excess <= 1:
        return 1.0
    for _ in range(2):  # to the power of GAIN
        excess = excess * excess
    return min(excess, MAX_WEIGHT)
