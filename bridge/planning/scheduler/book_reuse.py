# SPDX-License-Identifier: Apache-2.0
"""The book in which the rows of a cycle are booked: that of the cycle before, or an empty one.

See `bridge.planning.scheduler.kept_book` for when a book is reused, and why that changes no plan.
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.core import Kept
from bridge.model.rules.site import Protection
from bridge.planning.queue.columns import gather
from bridge.planning.queue.rows import Rows
from bridge.planning.scheduler.booked import PlacementColumns
from bridge.planning.scheduler.booked_view import BookedView
from bridge.planning.scheduler.candidates import Candidates
from bridge.planning.scheduler.cluster_book import ClusterBook
from bridge.planning.scheduler.kept_book import Handover, KeptBook, KeptRowBookings
from bridge.planning.scheduler.kept_rows import KeptRows
from bridge.planning.site_rules.lowered_rules import LoweredRules
from bridge.ports import Preference
from bridge.units import NEVER

_MAX_SETTLED, _SETTLED_IN = 16, 128
"""This many rows, plus this fraction, are examined singly; more are planned in an empty book."""


class BookReuse(BookedView):
    """The rows of a cycle and their book; `Booking` plans them."""

    def __init__(
        self,
        rows: Rows,
        preference: Preference,
        *,
        lowered: LoweredRules,
        protect: Protection | None = None,
        kept: KeptBook | None = None,
    ) -> None:
        """Lowers all candidates and books the running jobs.

        Args:
            rows: of the cycle.
            preference: how nodes are picked.
            lowered: the rules.
            protect: see `Protection`.
            kept: the book of the cycle before; used if the first pass is `keep`.
        """
        self._empty_book = partial(
            ClusterBook,
            rows.snapshot,
            rows.eligibility,
            preference.rank,
            lowered=lowered,
            protect=protect,
            selection=preference.selection,
        )
        cluster = self._empty_book(kept=kept)
        super().__init__(rows, cluster, Candidates(rows, cluster, lowered))
        # Until its contents are known.
        self._former = None if cluster.kept is None else KeptRowBookings(cluster.kept)
        self._mark: int | None = None

    def _begin(self) -> None:
        """Continues with an empty book unless that of the cycle before has been taken over."""
        if self._former is None:
            return
        self._former = None
        self._move_to(self._empty_book())
        self._number = np.arange(len(self.rows.plannable), dtype=np.int64)

    def _move_to(self, cluster: ClusterBook) -> None:
        self.cluster = cluster
        self._candidates.move_to(cluster)

    def _keep_book(
        self, reused: KeptRowBookings, kept: KeptRows, former: PlacementColumns
    ) -> Kept | None:
        """Makes the book of the cycle before hold what an empty one would, filled row by row.

        Rows that fit together also fit one after the other, in any order. If they do not, only
        rows near the conflict are examined (`Book.settle`).

        Args:
            reused: its bookings of rows.
            kept: the rows, in order.
            former: their placements.

        Returns: Where the rows are; None: this is not conclusive, and the book holds only those
            that it held.
        """
        all_ = self._candidates
        stands = kept.position >= 0
        changed = self._only(reused, kept.take(np.flatnonzero(stands)))
        done = self._book_kept(changed, former)
        unsure = np.zeros(len(self._number), dtype=bool)
        unsure[changed.index[done:]] = True
        if done < len(changed):
            self._book_kept(changed.take(slice(done, None)), former, forced=True)
        position = np.maximum(kept.position, 0)
        found = self._book.settle(
            job=self._number[kept.index],
            request=all_.requests(kept.candidate, position),
            start=kept.start_s,
            length=all_.length_s[kept.candidate],
            **all_.term_columns(all_.choices.numbers(kept.candidate, position)),
            booked=stands,
            unsure=unsure[kept.index],
            movable=all_.simple[kept.index],
            most=_MAX_SETTLED + len(kept) // _SETTLED_IN,
        )
        if found is None:
            for number in self._number[changed.index].tolist():
                self._book.revoke(number)
            return None
        self._former = None
        return found

    def _only(self, reused: KeptRowBookings, kept: KeptRows) -> KeptRows:
        """Revokes the bookings of all but these rows in a reused book; returns those not in it."""
        self._number = np.arange(len(self._number), dtype=np.int64) + reused.kept.next_number
        now = self._candidates.record(
            self._number[kept.index], kept.candidate, kept.position, kept.start_s
        )
        same = reused.keep_only(kept.row, now)
        self._number[kept.index[same]] = reused.kept.rows.number[kept.row[same]]
        return kept.take(np.flatnonzero(~same))

    def _hold(self, reused: KeptRowBookings, kept: KeptRows, former: PlacementColumns) -> bool:
        """Makes a reused book hold these rows, or only those that it held if they do not fit."""
        changed = self._only(reused, kept)
        done = self._book_kept(changed, former)
        if done == len(changed) and not self._book.overbooked():
            return True
        for number in self._number[changed.index[:done]].tolist():
            self._book.revoke(number)
        return False

    def _reuse(
        self,
        reused: KeptRowBookings,
        cluster: ClusterBook,
        stays: KeptRows,
        former: PlacementColumns,
        moved: NDArray[np.intp],
    ) -> None:
        """Writes what an empty book holds into one that is reused, and goes on there.

        Args:
            reused: its bookings of rows.
            cluster: the book.
            stays: rows booked at their former placements.
            former: these placements.
            moved: all other rows that may have been booked.
        """
        moved = moved[self.has_start(moved)]
        start_s = self._booked.start_s[moved]
        rows = np.arange(len(moved))
        elsewhere = KeptRows(moved, rows, self._of(moved), self._booked.position[moved], start_s)
        placements, filled = self.placements_of(moved), self.cluster
        self._move_to(cluster)
        if not self._hold(reused, stays, former) or self._book_kept(elsewhere, placements) < len(
            moved
        ):
            self._move_to(filled)
            self._number = np.arange(len(self.rows.plannable), dtype=np.int64)

    def _book_kept(self, kept: KeptRows, former: PlacementColumns, *, forced: bool = False) -> int:
        """Books rows until one does not fit or is not valid any more; returns how many.

        Args:
            kept: the rows.
            former: their placements.
            forced: book them whether they fit or not.
        """
        gone = np.flatnonzero(kept.position < 0)
        kept = kept.take(slice(gone[0] if len(gone) else None))
        if not len(kept):
            return 0
        placed = self._placed(kept, former, np.arange(len(kept)))
        done = self._book.book_many(**placed, forced=forced, stop=True)
        return len(done) if done.all() else int(np.argmin(done))

    def _placed(
        self, kept: KeptRows, former: PlacementColumns, known: NDArray[np.intp]
    ) -> dict[str, Any]:
        """Rows and their placements, in the form of the book's bulk calls.

        Args:
            kept: the rows.
            former: their placements.
            known: which rows have a request; the request of all others is invalid.
        """
        all_, position = self._candidates, np.maximum(kept.position, 0)
        width = np.where(kept.position < 0, 0, np.diff(former.indptr)[kept.row])
        _, take = gather(former.indptr, kept.row[kept.position >= 0])
        request = np.zeros(len(kept), dtype=np.int32)
        request[known] = all_.requests(kept.candidate[known], position[known])
        return {
            "job": self._number[kept.index],
            "request": request,
            "start": kept.start_s,
            "length": all_.length_s[kept.candidate],
            "indptr": np.concatenate(([0], np.cumsum(width))).astype(np.int64),
            "nodes": former.nodes[take],
            "groups": former.groups[take],
            "chunks": former.chunks[take],
            **all_.term_columns(all_.choices.numbers(kept.candidate, position)),
        }

    def hand_over(self, asked: NDArray[np.intp]) -> Handover:
        """Hands the book over to the next cycle; this object must not be used afterwards.

        Args:
            asked: booked rows that are announced, in the order in which they are kept.
        """
        self._begin()
        booked, number = self._booked, self._number
        rows = self._candidates.record(
            number[asked], self._of(asked), booked.position[asked], booked.start_s[asked]
        )
        other = booked.start_s != NEVER
        other[asked] = False
        last = int(number.max(initial=-1))
        return Handover(self.cluster.hand_over(rows, number[other], last + 1))
