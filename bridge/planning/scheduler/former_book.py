# SPDX-License-Identifier: Apache-2.0
"""Takes over the book of the cycle before, or gives it up for an empty one.

See `bridge.planning.scheduler.book_handover` for when a book is reused, and why no plan changes.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.core import Kept
from bridge.planning.queue.columns import gather
from bridge.planning.scheduler.book_handover import KeptRowBookings
from bridge.planning.scheduler.cluster_book import ClusterBook
from bridge.planning.scheduler.former_placements import KeptRows
from bridge.planning.scheduler.placements import PlacementColumns
from bridge.planning.scheduler.planned_rows import PlannedRows

_MAX_SETTLED, _SETTLED_IN = 16, 128
"""This many rows, plus this fraction, are examined singly; more are planned in an empty book."""


class FormerBook:
    """Takes over the book of the cycle before for the rows of this one, if there is one."""

    def __init__(self, planned: PlannedRows, empty_book: Callable[[], ClusterBook]) -> None:
        """Nothing is taken over yet.

        Args:
            empty_book: makes a book that holds the running jobs alone.
        """
        self._planned, self._empty_book = planned, empty_book
        former = planned.cluster.kept
        self._bookings = None if former is None else KeptRowBookings(former)

    @property
    def bookings(self) -> KeptRowBookings | None:
        """Those of the book; None: it is not to be taken over, or has been."""
        return self._bookings

    def give_up(self) -> None:
        """Continues with an empty book unless that of the cycle before has been taken over."""
        if self._bookings is not None:
            self._bookings = None
            self._planned.move_to(self._empty_book())
            self._number_anew()

    def _number_anew(self, first: int = 0) -> None:
        n_rows = len(self._planned.number)
        self._planned.number = np.arange(n_rows, dtype=np.int64) + first

    def settle(
        self, reused: KeptRowBookings, kept: KeptRows, former: PlacementColumns
    ) -> Kept | None:
        """Makes the book of the cycle before hold what an empty one would, filled row by row.

        Rows that fit together also fit one after the other, in any order. If they do not, only
        rows near the conflict are examined (`Book.settle`).

        Args:
            kept: the rows, in order.

        Returns: Where the rows are; None: this is not conclusive, and the book holds only those
            that it held.
        """
        planned = self._planned
        all_ = planned.candidates
        stands = kept.position >= 0
        changed = self._only(reused, kept.take(np.flatnonzero(stands)))
        done = self.book(changed, former)
        unsure = np.zeros(len(planned.number), dtype=bool)
        unsure[changed.index[done:]] = True
        if done < len(changed):
            self.book(changed.take(slice(done, None)), former, forced=True)
        position = np.maximum(kept.position, 0)
        found = planned.book.settle(
            job=planned.number[kept.index],
            request=all_.requests(kept.candidate, position),
            start=kept.start_s,
            length=all_.length_s[kept.candidate],
            **all_.term_columns(all_.choices.numbers(kept.candidate, position)),
            booked=stands,
            unsure=unsure[kept.index],
            movable=all_.simple[kept.index],
            maximum=_MAX_SETTLED + len(kept) // _SETTLED_IN,
        )
        if found is None:
            for number in planned.number[changed.index].tolist():
                planned.book.revoke(number)
            return None
        self._bookings = None
        return found

    def _only(self, reused: KeptRowBookings, kept: KeptRows) -> KeptRows:
        """Revokes the bookings of all but these rows in a reused book; returns those not in it."""
        planned = self._planned
        self._number_anew(reused.kept.next_number)
        now = planned.candidates.record(
            planned.number[kept.index], kept.candidate, kept.position, kept.start_s
        )
        same = reused.keep_only(kept.row, now)
        planned.number[kept.index[same]] = reused.kept.rows.number[kept.row[same]]
        return kept.take(np.flatnonzero(~same))

    def _hold(self, reused: KeptRowBookings, kept: KeptRows, former: PlacementColumns) -> bool:
        """Makes a reused book hold these rows, or only those that it held if they do not fit."""
        planned = self._planned
        changed = self._only(reused, kept)
        done = self.book(changed, former)
        if done == len(changed) and not planned.book.overbooked():
            return True
        for number in planned.number[changed.index[:done]].tolist():
            planned.book.revoke(number)
        return False

    def refill(
        self,
        reused: KeptRowBookings,
        cluster: ClusterBook,
        stays: KeptRows,
        former: PlacementColumns,
        moved: NDArray[np.intp],
    ) -> None:
        """Writes what an empty book holds into one that is reused, and goes on there.

        Args:
            moved: all other rows that may have been booked.
        """
        planned = self._planned
        moved = moved[planned.has_start(moved)]
        start_s = planned.states.start_s[moved]
        rows = np.arange(len(moved))
        candidate, position = planned.candidates_of(moved), planned.states.position[moved]
        elsewhere = KeptRows(moved, rows, candidate, position, start_s)
        placements, filled = planned.placements_of(moved), planned.cluster
        planned.move_to(cluster)
        if not self._hold(reused, stays, former) or self.book(elsewhere, placements) < len(moved):
            planned.move_to(filled)
            self._number_anew()

    def book(self, kept: KeptRows, former: PlacementColumns, *, forced: bool = False) -> int:
        """Books rows until one does not fit or is not valid any more; returns how many.

        Args:
            forced: book them whether they fit or not.
        """
        gone = np.flatnonzero(kept.position < 0)
        kept = kept.take(slice(gone[0] if len(gone) else None))
        if not len(kept):
            return 0
        placed = self.columns(kept, former, np.arange(len(kept)))
        done = self._planned.book.book_many(**placed, forced=forced, stop=True)
        return len(done) if done.all() else int(np.argmin(done))

    def columns(
        self, kept: KeptRows, former: PlacementColumns, known: NDArray[np.intp]
    ) -> dict[str, Any]:
        """Rows and their placements, in the form of the book's bulk calls.

        Args:
            known: which rows have a request; the request of all others is invalid.
        """
        all_, position = self._planned.candidates, np.maximum(kept.position, 0)
        width = np.where(kept.position < 0, 0, np.diff(former.indptr)[kept.row])
        _, take = gather(former.indptr, kept.row[kept.position >= 0])
        request = np.zeros(len(kept), dtype=np.int32)
        request[known] = all_.requests(kept.candidate[known], position[known])
        return {
            "job": self._planned.number[kept.index],
            "request": request,
            "start": kept.start_s,
            "length": all_.length_s[kept.candidate],
            "indptr": np.concatenate(([0], np.cumsum(width))).astype(np.int64),
            "nodes": former.nodes[take],
            "groups": former.groups[take],
            "chunks": former.chunks[take],
            **all_.term_columns(all_.choices.numbers(kept.candidate, position)),
        }
