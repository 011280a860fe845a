# SPDX-License-Identifier: Apache-2.0
"""Hands the book of one cycle to the next, so that only changes are booked.

A book is mutable, a state is not (`bridge.ports.State`). So a state holds a `Handover`, from which
the first cycle can take the book, once. Every other cycle from that state (a repetition after a
failed check, a search for culprits, a what-if) starts with an empty book. Both give the same plan,
to the bit.

Rules
    1. A book is reused only with the same nodes, order of nodes and constraints, and only if no
       class of nodes is closed at any time (by reservations, leaf switches, FreePools of nodes).
    2. Before planning starts it holds exactly what a new one would hold: the running jobs, and the
       kept placements of the announced rows. Bookings that have ended, changed or are no longer
       announced are removed, new ones are added.
    3. If some resource is then overbooked at some second, or a placement is no longer valid, the
       order in which rows give way matters: rows near the conflict are examined in order
       (`Book.settle`). If this is not conclusive, or they are many, an empty book is filled row by
       row. Its contents are then written into the reused one, and planning continues there.

Search results cached in the book are kept. They save work and do not change results
(docs/design/0005-kernels.md, 5), except for searches that were abandoned as too large: a book with
one of those is not handed over.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.core import Book
from bridge.model.job import RunningTable
from bridge.model.node import NodeTable
from bridge.model.rules.site import Protection
from bridge.planning.queue.columns import gather
from bridge.planning.queue.layout_options import Layout
from bridge.planning.site_rules.capacity_constraints import Terms
from bridge.ports import Selection

Steps = tuple[NDArray[np.int64], NDArray[np.int64]]
"""Starts and amounts of a constraint."""


@dataclass(frozen=True, slots=True)
class BookWorld:
    """What a book was made for; it can be reused only for an equal one.

    Attributes:
        nodes: the nodes of the cluster; only their names and capacities matter.
        rank: (n_nodes,) nodes of lower rank first.
        selection: how nodes are picked among them.
        protect: see `Protection`.
        keys: keys of the constraints, in the order of their numbers.
    """

    nodes: NodeTable
    resources: tuple[str, ...]
    rank: NDArray[np.int32]
    selection: Selection
    protect: Protection
    keys: tuple[str, ...]

    def serves(self, other: "BookWorld") -> bool:
        """Whether a book made for this one can be reused for the other."""
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
        """Records the running jobs of a snapshot.

        Args:
            running: the jobs; no id twice.
            now_s: the present; a job holds its nodes for at least one more second.

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
    """For each running job, by id, everything it holds and counts on."""
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
        request: the book's request number.
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
        """(n,) whether rows of this one equal rows of another, apart from their numbers.

        Args:
            row: (n,) of this one.
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
    """A book and its contents.

    Attributes:
        classes: its classes without closed times: the nodes, as bytes of bool, to the number.
        requests: numbers of its requests, by layout and the numbers of its classes in the book.
        rows: the announced ones, in the order of `KeptPlan.by_id`.
        others: numbers of the bookings of other rows.
        next_number: greater than the number of any booking.
    """

    book: Book
    world: BookWorld
    steps: list[Steps]
    classes: dict[bytes, int]
    requests: dict[tuple[Layout, tuple[int, ...]], int]
    running: RunningRecord
    rows: RowRecord
    others: NDArray[np.int64]
    next_number: int


class KeptRowBookings:
    """The bookings of rows in a book that is reused, while it is made to hold other rows.

    Attributes:
        kept: the book and what it held when it was handed over.
    """

    def __init__(self, kept: KeptBook) -> None:
        self.kept = kept
        self._inside = np.ones(len(kept.rows.number), dtype=bool)
        self._others = kept.others.tolist()

    def keep_only(self, row: NDArray[np.intp], now: RowRecord) -> NDArray[np.bool_]:
        """Revokes the bookings of all rows but those that are as they were; returns which, (n,).

        Args:
            row: (n,) of `KeptBook.rows`.
        """
        rows = self.kept.rows
        same = rows.same(row, now) & self._inside[row]
        stays = np.zeros(len(self._inside), dtype=bool)
        stays[row[same]] = True
        for number in (*self._others, *rows.number[self._inside & ~stays].tolist()):
            self.kept.book.revoke(number)
        self._inside, self._others = stays, []
        return same


class Handover:
    """A book for the next cycle, given to the first taker. Copies and pickles hold none."""

    def __init__(self, kept: KeptBook | None = None) -> None:
        self._kept = [] if kept is None else [kept]

    def take(self) -> KeptBook | None:
        """The book; None if it has been taken."""
        try:
            return self._kept.pop()  # safe between threads
        except IndexError:
            return None

    def __reduce__(self) -> tuple[type["Handover"], tuple[()]]:
        return Handover, ()
