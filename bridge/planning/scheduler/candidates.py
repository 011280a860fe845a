# SPDX-License-Identifier: Apache-2.0
"""The candidates of each row of a cycle, and their requests in the book.

Terms
    candidate   one alternative of an asked row: where, how long, and its layouts.
    simple      a row with one candidate that has only one layout: booked in bulk.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.planning.queue.columns import by_appearance, gather, packed
from bridge.planning.queue.layouts import layouts_of
from bridge.planning.queue.rows import Rows
from bridge.planning.queue.time_windows import requested_time_limit_s
from bridge.planning.scheduler.book_handover import RowRecord
from bridge.planning.scheduler.cluster_book import BookTerms, ClusterBook
from bridge.planning.scheduler.layout_choices import LayoutChoice, LayoutChoices
from bridge.planning.site_rules.capacity_constraints import Mode
from bridge.planning.site_rules.freepools import JobClosures
from bridge.planning.site_rules.lowered_rules import LoweredRules


class Candidates:
    """All candidates of the plannable rows, their terms, and their requests in the book.

    Attributes:
        cluster: the book in which requests are numbered.
        first: (n_plannable + 1,) row i has the candidates first[i]:first[i + 1].
        job: (n_plannable,) row of `snapshot.jobs`.
        layouts: (n_candidates,) `LayoutOptions`, before the rules of the site.
        choices: the same under the rules of the site.
        length_s: (n_candidates,) how long each would be booked.
        not_before_s: (n_plannable,) the earliest start that a row allows; 0: any.
        latest_s: (n_candidates,) the latest start.
        simple, refused: (n_plannable,) which rows are simple, and which can never run.
    """

    def __init__(self, rows: Rows, cluster: ClusterBook, lowered: LoweredRules) -> None:
        self.rows, self.cluster = rows, cluster
        snapshot, alternatives = rows.snapshot, rows.alternatives
        n_plannable = len(rows.plannable)
        self.job = rows.job[rows.plannable]
        self.first = alternatives.indptr
        counts = np.diff(self.first)
        owner = np.repeat(np.arange(n_plannable), counts)
        job = self.job[owner]
        self.layouts = layouts_of(rows, job)
        self.choices = LayoutChoices(
            self.layouts,
            snapshot,
            rows.eligibility,
            lowered,
            job=job,
            partition=alternatives.partition,
            time_limit_s=requested_time_limit_s(snapshot.jobs, job, alternatives.time_limit_s),
        )
        wants = job[self.choices.owner]
        self.terms = cluster.licences.add_terms(
            self.choices.terms,
            snapshot.jobs.licences[wants],
            Mode.BOTH,
            snapshot.jobs.reservation[wants],
        )
        self.length_s = alternatives.time_limit_s
        self.not_before_s = rows.not_before_s()
        self.latest_s = rows.latest_s()
        self.refused = np.ones(n_plannable, dtype=bool)
        self.refused[owner[~self.choices.refused]] = False
        self.simple = counts == 1
        self.simple[owner[~self.choices.simple | self.choices.refused]] = False
        self._request = np.full(len(self.layouts), -1, dtype=np.int32)  # of the first choices

    def move_to(self, cluster: ClusterBook) -> None:
        """Numbers the requests in another book of the same snapshot."""
        self.cluster = cluster
        self._request[:] = -1

    def of(self, requested: int) -> range:
        return range(int(self.first[requested]), int(self.first[requested + 1]))

    def runnable(self, requested: int) -> list[int]:
        """A row's candidates that the rules do not refuse."""
        return [one for one in self.of(requested) if not self.choices.refused[one]]

    def deadline_s(self, requested: int) -> int:
        """When a row must end; 0: any time."""
        return int(self.rows.snapshot.jobs.deadline_s[self.job[requested]])

    def terms_of(self, choice: LayoutChoice) -> BookTerms:
        own = self.terms.of(choice.number)
        return self.terms.constraint[own], self.terms.amount[own], self.terms.mode[own]

    def term_columns(self, numbers: NDArray[np.int64]) -> dict[str, Any]:
        """The terms of some choices, in the form of the book's bulk calls."""
        indptr, take = gather(self.terms.indptr, numbers)
        return {
            "term_indptr": indptr,
            "term_constraint": self.terms.constraint[take],
            "term_amount": self.terms.amount[take],
            "term_mode": self.terms.mode[take],
        }

    def request_of(self, choice: LayoutChoice) -> int:
        """The book's number of one choice."""
        if choice.position:
            return self.cluster.request(choice.layout, self.choices.job_closures[choice.number])
        return int(self.requests(np.array([choice.candidate]))[0])

    def requests(
        self, candidate: NDArray[np.int64], position: NDArray[np.int32] | None = None
    ) -> NDArray[np.int32]:
        """The book's request numbers of choices; equal requests share one.

        Args:
            candidate: (n,) candidates.
            position: (n,) of the choices among their layouts; None: the first ones.
        """
        if position is not None and position.any():
            found = self._numbered(candidate, position)
        else:
            found = self._request[candidate]
            fresh = candidate[found < 0]
            if len(fresh):
                self._request[fresh] = self._numbered(fresh, np.zeros(len(fresh), dtype=np.int32))
                found = self._request[candidate]
        return found

    def _numbered(
        self, candidate: NDArray[np.int64], position: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        choices = self.choices
        layout, numbers = choices.which[candidate] + position, choices.numbers(candidate, position)
        job_closures = choices.job_closures
        shut: dict[JobClosures, int] = {(): 0}
        kind = np.zeros(len(candidate), dtype=np.int64)
        if self.cluster.closures:
            each = [shut.setdefault(job_closures[at], len(shut)) for at in numbers.tolist()]
            kind = np.array(each, dtype=np.int64)
        first, which = by_appearance(packed(layout, kind))
        found = [
            self.cluster.request(choices.layouts[at], job_closures[number])
            for at, number in zip(layout[first].tolist(), numbers[first].tolist(), strict=True)
        ]
        return np.array(found, dtype=np.int32)[which]

    def record(
        self,
        number: NDArray[np.int64],
        candidate: NDArray[np.int64],
        position: NDArray[np.int32],
        start_s: NDArray[np.int64],
    ) -> RowRecord:
        """The book's records of n booked rows.

        Args:
            number: (n,) of the bookings.
            candidate: (n,) that each row has.
            position: (n,) of its layout.
            start_s: (n,) its start.
        """
        indptr, take = gather(self.terms.indptr, self.choices.numbers(candidate, position))
        terms = self.terms
        return RowRecord(
            number=number,
            request=self.requests(candidate, position),
            start_s=start_s,
            length_s=self.length_s[candidate],
            term_indptr=indptr,
            terms=(terms.constraint[take], terms.amount[take], terms.mode[take]),
        )

    def name_requests(self, requested: int) -> None:
        """Makes all requests of a row before a mark; else they would be repeated after an undo."""
        for candidate in self.of(requested):
            for choice in self.choices.to_plan(candidate):
                self.request_of(choice)
            for choice in self.choices.to_start(candidate):
                self.request_of(choice)

    def requested_nodes(self, candidate: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n,) how many nodes the first layout of some candidates has; 0: it has no layout."""
        nodes = [one.minimum[0].nodes if one.minimum else 0 for one in self.layouts.options]
        return np.array(nodes, dtype=np.int64)[self.layouts.which[candidate]]
