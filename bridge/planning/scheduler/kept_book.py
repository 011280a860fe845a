# SPDX-License-Identifier: Apache-2.0
"""The book of one cycle, handed to the cycle after it: what has not changed is not booked again.

A book can be written to, a state cannot (`bridge.ports.State`). So a state holds a `Handover`, from
which the book can be taken once, by whichever cycle comes first. Every other cycle from that state
(one that is repeated after a failed check, a search for culprits, a what-if) finds nothing and
begins with an empty book. Both give the same plan, to the bit.

Rules
    1. A book is used again only for the nodes, the order of nodes and the constraints that it was
       made for, and not where times are closed to classes of nodes: reservations, leaf switches,
       FreePools of nodes.
    2. Before anything is planned it holds exactly what an empty one would then hold: what runs,
       and the kept placements of the rows that are announced. What has ended, has changed or is no
       longer announced is taken out, what is new is booked.
    3. If then more is booked at some second than there is, or a placement does not stand, the order
       in which rows give way matters: the book is given up, and an empty one is filled.

What searches have learnt stays in the book. It saves work and changes no answer
(docs/design/0005-kernels.md, 5), but for searches that were given up as too large: a book with one
of those is not handed over.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.core import Book
from bridge.model.job import RunningTable
from bridge.model.node import NodeTable
from bridge.model.site import Protection
from bridge.planning.queue.columns import gather
from bridge.planning.site_rules.capacity_constraints import Terms
from bridge.ports import Selection

Steps = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Starts and amounts of a constraint."""


@dataclass(frozen=True, slots=True)
class BookWorld:
    """What a book is made for.

    Attributes:
        nodes: there; only their names and capacities matter.
        resources: their columns.
        rank: (n_nodes,) nodes of lower rank first.
        selection: how nodes are picked among them.
        protect: what is kept for whom.
        keys: of the constraints, in the order of their numbers.
    """

    nodes: NodeTable
    resources: tuple[str, ...]
    rank: NDArray[np.int32]
    selection: Selection
    protect: Protection
    keys: tuple[str, ...]

    def serves(self, other: "BookWorld") -> bool:
        """Whether a book for this one may be used for the other."""
        mine, theirs = self.nodes, other.nodes
        return (
            self.resources == other.resources
            and self.keys == other.keys
            and self.protect == other.protect
            and self.selection == other.selection
            and np.array_equal(self.rank, other.rank)
            and (
                mine is theirs
                or (mine.names == theirs.names and np.array_equal(mine.capacity, theirs.capacity))
            )
        )


class RunningRecord:
    """The running jobs in a book."""

    def __init__(self) -> None:
        self._number: dict[str, int] = {}  # by id, below 0
        self._mark: dict[str, tuple[object, ...]] = {}
        self._next = -1

    def update(
        self, running: RunningTable, terms: Terms, now_s: int
    ) -> tuple[list[int], NDArray[np.intp], NDArray[np.int64]]:
        """Takes the running jobs of a snapshot down.

        Args:
            running: the jobs; no id twice.
            terms: theirs.
            now_s: the present; a job holds its nodes for a second more at least.

        Returns:
            Numbers of bookings to be revoked, rows of `running` to be booked, and their numbers.
        """
        marks = _marks(running, terms, now_s)
        gone = [self._number[job] for job, mark in self._mark.items() if marks.get(job) != mark]
        fresh = [
            row for row, (job, mark) in enumerate(marks.items()) if self._mark.get(job) != mark
        ]
        numbers = np.arange(self._next, self._next - len(fresh), -1, dtype=np.int64)
        self._next -= len(fresh)
        for row, number in zip(fresh, numbers.tolist(), strict=True):
            self._number[running.id[row]] = number
        self._number = {job: self._number[job] for job in marks}
        self._mark = marks
        return gone, np.array(fresh, dtype=np.intp), numbers


def _marks(running: RunningTable, terms: Terms, now_s: int) -> dict[str, tuple[object, ...]]:
    """By id, all that a running job holds and counts on."""
    ends = np.maximum(running.end_s, now_s + 1).tolist()
    nodes, use = np.ascontiguousarray(running.nodes), np.ascontiguousarray(running.use)
    whole, offsets, own = running.exclusive.tolist(), running.indptr.tolist(), terms.indptr.tolist()
    return {
        job: (
            ends[at],
            whole[at],
            nodes[offsets[at] : offsets[at + 1]].tobytes(),
            use[offsets[at] : offsets[at + 1]].tobytes(),
            terms.constraint[own[at] : own[at + 1]].tobytes(),
            terms.amount[own[at] : own[at + 1]].tobytes(),
        )
        for at, job in enumerate(running.id.tolist())
    }


@dataclass(frozen=True, slots=True)
class RowRecord:
    """What a book holds for rows, as columns of length n.

    Attributes:
        number: of the booking.
        request: the book's number of what is asked.
        start_s, length_s: when, and for how long.
        terms: constraints, amounts and modes.
        term_indptr: (n + 1,) row i has the terms term_indptr[i]:term_indptr[i + 1].
    """

    number: NDArray[np.int64]
    request: NDArray[np.int32]
    start_s: NDArray[np.int64]
    length_s: NDArray[np.int64]
    term_indptr: NDArray[np.int64]
    terms: tuple[NDArray[Any], NDArray[Any], NDArray[Any]]

    def same(self, row: NDArray[np.intp], other: "RowRecord") -> NDArray[np.bool_]:
        """(n,) whether rows of this one, but for their numbers, are those of another.

        Args:
            row: (n,) of this one.
            other: n rows.
        """
        alike: NDArray[np.bool_] = (
            (self.request[row] == other.request)
            & (self.start_s[row] == other.start_s)
            & (self.length_s[row] == other.length_s)
            & (np.diff(self.term_indptr)[row] == np.diff(other.term_indptr))
        )
        here = np.flatnonzero(alike)
        mine, take = gather(self.term_indptr, row[here])
        _, theirs = gather(other.term_indptr, here)
        columns = zip(self.terms, other.terms, strict=True)
        differ = [np.not_equal(one[take], two[theirs]) for one, two in columns]
        before = np.concatenate(([0], np.cumsum(np.any(differ, axis=0))))
        alike[here] = before[mine[1:]] == before[mine[:-1]]
        return alike


@dataclass(frozen=True)
class KeptBook:
    """A book, and what stands in it.

    Attributes:
        world: that it is made for.
        steps: of its constraints.
        classes: its classes without closed times: the nodes, as bytes of bool, to the number.
        running: the running jobs.
        rows: those that are announced, in the order of `KeptPlan.by_id`.
        others: numbers of the bookings of other rows.
        next_number: no booking has it or a greater one.
    """

    book: Book
    world: BookWorld
    steps: list[Steps]
    classes: dict[bytes, int]
    running: RunningRecord
    rows: RowRecord
    others: NDArray[np.int64]
    next_number: int


class Handover:
    """A book for the next cycle: who asks first gets it. Copies and pickles hold none."""

    def __init__(self, kept: KeptBook | None = None) -> None:
        self._kept = [] if kept is None else [kept]

    def take(self) -> KeptBook | None:
        """The book; None: there is none any more."""
        try:
            return self._kept.pop()  # safe between threads
        except IndexError:
            return None

    def __reduce__(self) -> tuple[type["Handover"], tuple[()]]:
        return Handover, ()
