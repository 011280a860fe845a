# SPDX-License-Identifier: Apache-2.0
"""Writes a snapshot into a book: nodes, closed times, running jobs, limits, FreePools, licences.

Rules
    1. Every class of `Eligibility` is a class of the book, with its blackouts; jobs that a FreePool
       keeps off some nodes have a class of their own, closed there while the pool is in force.
    2. Limits and FreePools are constraints (`bridge.planning.site_rules.lowered_rules`), and so are
       licences (`bridge.planning.site_rules.licences`).
    3. Running jobs hold their resources until their expected end, and count on their constraints.
    4. Classes and requests are created on first use.
    5. The book of the cycle before is reused if possible
       (`bridge.planning.scheduler.book_handover`): only changes of constraints, of classes and of
       running jobs are written.
"""

from collections.abc import Sequence
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from bridge.core import Book, pack_nodes
from bridge.model.rules.site import Protection
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.alternatives import Eligibility
from bridge.planning.queue.columns import gather
from bridge.planning.queue.layout_options import Layout
from bridge.planning.requests.amounts import plain_name
from bridge.planning.scheduler.book_handover import (
    BookWorld,
    KeptBook,
    RowRecord,
    RunningRecord,
    Steps,
)
from bridge.planning.site_rules.capacity_constraints import Mode, Terms
from bridge.planning.site_rules.freepools import Closure, JobClosures
from bridge.planning.site_rules.licences import LicenceConstraints
from bridge.planning.site_rules.lowered_rules import LoweredRules
from bridge.ports import Selection

BookTerms = tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int8]]
"""One job's terms in the form of the book's calls: constraints, amounts, modes."""

_NEAR = 4
"""A class is changed into one of at least so many times the nodes in which they differ."""

_MAX_COMPARED = 64
"""Most classes of the cycle before that are compared with a new one."""

_MAX_PARTS = 50_000
"""Most requests in a book that is handed over; requests are never removed from a book."""


class ClusterBook:
    """A book of one snapshot, and the numbers of its parts.

    Attributes:
        book: pending jobs are booked under numbers of the caller's, 0 and up.
        lowered: the rules of the site.
        kept: the book of the cycle before, if it is reused.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        eligibility: Eligibility,
        rank: NDArray[np.int32],
        *,
        lowered: LoweredRules,
        protect: Protection | None = None,
        selection: Selection = Selection.SEQUENTIAL,
        kept: KeptBook | None = None,
    ) -> None:
        """Writes the cluster and its running jobs.

        Args:
            eligibility: the eligibility of the same snapshot.
            rank: (n_nodes,) nodes of lower rank first.
            lowered: limits and FreePools for this snapshot.
            protect: see `Protection`; entries for resources that no node has are ignored.
            kept: the book of the cycle before.
        """
        self._snapshot, self._eligibility, self.lowered = snapshot, eligibility, lowered
        self._classes: dict[tuple[int, tuple[int, ...]], int] = {}
        self._requests: dict[tuple[Layout, JobClosures], int] = {}
        self._closed: list[tuple[int, int, int, NDArray[np.uint64]]] = []
        self._marks: list[int] = []  # its length at each mark
        self._used: set[int] = set()  # classes without closed times, in this cycle
        self.licences = LicenceConstraints(snapshot, len(lowered.constraints))
        constraints = [lowered.constraints.steps(at) for at in range(len(lowered.constraints))]
        self._steps: list[Steps] = constraints + self.licences.steps
        self._world = BookWorld(
            nodes=snapshot.nodes,
            resources=snapshot.resources,
            rank=rank,
            selection=selection,
            protect=protect or {},
            keys=tuple(self.constraint_of_key),
        )
        self.kept = kept if kept is not None and self._serves(kept) else None
        if self.kept is not None:
            self._continue(self.kept)
            return
        self._open: dict[bytes, int] = {}
        self._numbered: dict[tuple[Layout, tuple[int, ...]], int] = {}
        self._running = RunningRecord()
        self.book = Book(
            snapshot.now_s,
            np.ascontiguousarray(snapshot.nodes.capacity),
            rank,
            _protections(snapshot, protect or {}),
            int(selection),
        )
        for steps in self._steps:
            self.book.add_constraint(*steps)
        everyone = np.arange(len(snapshot.running))
        self._book_running(everyone, -1 - everyone, self._running_terms())

    def _serves(self, kept: KeptBook) -> bool:
        """Whether the book of the cycle before can be reused."""
        return (
            self._repeatable
            and kept.book.now <= self._snapshot.now_s
            and kept.world.serves(self._world)
        )

    @property
    def _repeatable(self) -> bool:
        """Whether no class is ever closed, and the ids of the running jobs are unique."""
        snapshot = self._snapshot
        ids = snapshot.running.id.tolist()
        return (
            not snapshot.reservations
            and snapshot.topology is None
            and not self.closures
            and len(set(ids)) == len(ids)
        )

    def _continue(self, kept: KeptBook) -> None:
        """Writes the changes into the book of the cycle before."""
        now_s = self._snapshot.now_s
        self.book, self._open, self._running = kept.book, kept.classes, kept.running
        self._numbered = kept.requests
        self.book.advance(now_s)
        for constraint, (old, new) in enumerate(zip(kept.steps, self._steps, strict=True)):
            if not _same_from(now_s, old, new):
                self.book.set_constraint(constraint, *new)
        terms = self._running_terms()
        gone, fresh, numbers = self._running.update(self._snapshot.running, terms, now_s)
        for number in gone:
            self.book.revoke(number)
        self._book_running(fresh, numbers, terms)

    def hand_over(
        self, rows: RowRecord, others: NDArray[np.int64], next_number: int
    ) -> KeptBook | None:
        """Hands the book over to the next cycle; None: it cannot be reused.

        This object must not be used afterwards.

        Args:
            rows: the announced ones.
            others: numbers of the bookings of other rows.
            next_number: greater than the number of any booking.
        """
        parts = max(len(self._open), len(self._numbered), int(rows.request.max(initial=0)))
        if not self._repeatable or self.book.given_up or self._marks or parts > _MAX_PARTS:
            return None
        if self.kept is None:
            running = self._snapshot.running
            self._running.update(running, self._running_terms(), self._snapshot.now_s)
        return KeptBook(
            self.book,
            self._world,
            self._steps,
            self._open,
            self._numbered,
            self._running,
            rows,
            others,
            next_number,
        )

    def _running_terms(self) -> Terms:
        running = self._snapshot.running
        return self.licences.add_terms(self.lowered.running, running.licences, Mode.COUNT)

    def _book_running(
        self, rows: NDArray[np.intp], numbers: NDArray[np.int64], terms: Terms
    ) -> None:
        """Books running jobs under these numbers."""
        running = self._snapshot.running
        indptr, take = gather(running.indptr, rows)
        term_indptr, own = gather(terms.indptr, rows)
        self.book.book_running(
            job=numbers.astype(np.int64),
            run_indptr=indptr,
            run_nodes=running.nodes[take],
            run_use=np.ascontiguousarray(running.use[take]),
            run_end=running.end_s[rows],
            run_exclusive=running.exclusive[rows],
            term_indptr=term_indptr,
            term_constraint=terms.constraint[own],
            term_amount=terms.amount[own],
            term_mode=terms.mode[own],
        )

    def mark(self) -> int:
        """Sets a mark for `undo` or `keep`."""
        self._marks.append(len(self._closed))
        return self.book.mark()

    def undo(self, mark: int) -> None:
        """Undoes all bookings since a mark. Requests numbered since then stay valid."""
        self.book.undo(mark)
        since = self._marks[mark]
        del self._marks[mark:]
        for closed in self._closed[since:]:  # the book has opened them again
            self.book.close(*closed)

    def keep(self, mark: int) -> None:
        """Keeps all bookings since a mark."""
        self.book.keep(mark)
        del self._marks[mark:]

    def request(self, layout: Layout, job_closures: JobClosures = ()) -> int:
        """The book's request number of a layout; layouts with equal demands share it.

        Args:
            job_closures: the FreePools' closures that keep it, or some of its chunks, out.
        """
        key = layout, job_closures
        found = self._requests.get(key)
        if found is None:
            classes = tuple(
                self._class(group.class_, _shut(job_closures, want))
                for group, want in zip(layout.groups, layout.together(), strict=True)
            )
            found = self._numbered.get((layout, classes))
            if found is None:
                found = self._numbered[layout, classes] = self._add(layout, classes)
            self._requests[key] = found
        return found

    def _add(self, layout: Layout, classes: tuple[int, ...]) -> int:
        groups = layout.groups
        return self.book.add_request(
            count=np.array([group.count for group in groups], dtype=np.int64),
            want=np.array([group.want for group in groups], dtype=np.int64),
            cls=np.array(classes, dtype=np.int32),
            arrangement=int(layout.arrangement),
            exclusive=layout.exclusive,
            max_per_node=np.array([group.max_per_node for group in groups], dtype=np.int64),
        )

    def _class(self, class_: int, shut: tuple[int, ...]) -> int:
        found = self._classes.get((class_, shut))
        if found is None:
            mask, closed_to = (
                self._eligibility.classes.mask(class_),
                self._eligibility.classes.closed(class_),
            )
            if not shut and not closed_to:
                found = self._open_class(mask)
                self._classes[class_, shut] = found
                return found
            found = self.book.add_class(_bits(mask))
            for start_s, end_s, closed in closed_to:
                self._close(found, start_s, end_s, closed)
            for index in shut:
                closure = self.lowered.closures[index]
                closed = mask & closure.nodes
                if closed.any():
                    for start_s, end_s in closure.windows.tolist():
                        self._close(found, start_s, end_s, closed)
            self._classes[class_, shut] = found
        return found

    def _open_class(self, mask: NDArray[np.bool_]) -> int:
        """The class of these nodes that is never closed."""
        key = mask.tobytes()
        found = self._open.get(key)
        if found is None:
            found = self._changed_class(mask)
        if found is None:
            found = self.book.add_class(_bits(mask))
        self._open[key] = found
        self._used.add(found)
        return found

    def _changed_class(self, mask: NDArray[np.bool_]) -> int | None:
        """A class of the cycle before with nearly these nodes, made to have them; None: none.

        So the cached results of its requests are kept when a node fails or returns.
        """
        if self.kept is None or self._marks:
            return None
        free = islice(
            (key for key, number in self._open.items() if number not in self._used), _MAX_COMPARED
        )
        differ = {
            key: int(np.count_nonzero(np.frombuffer(key, dtype=bool) != mask)) for key in free
        }
        nearest = min(differ, key=differ.__getitem__, default=None)
        if nearest is None or _NEAR * differ[nearest] > np.count_nonzero(mask):
            return None
        number = self._open.pop(nearest)
        self.book.set_class(number, _bits(mask))
        return number

    def _close(self, class_: int, start_s: int, end_s: int, nodes: NDArray[np.bool_]) -> None:
        closed = class_, start_s, end_s, _bits(nodes)
        self.book.close(*closed)
        self._closed.append(closed)

    @property
    def closures(self) -> tuple[Closure, ...]:
        """The FreePools of nodes; closures of jobs are indexes into them."""
        return self.lowered.closures

    def constraint_key(self, constraint: int) -> str:
        """The key of a constraint, the same in every snapshot; empty for none."""
        if constraint < 0:
            return ""
        if constraint >= self.licences.first:
            return self.licences.key(constraint)
        return self.lowered.constraints.keys[constraint]

    @cached_property
    def constraint_of_key(self) -> dict[str, int]:
        count = self.licences.first + len(self.licences.steps)
        return {self.constraint_key(constraint): constraint for constraint in range(count)}

    def constraint_label(self, constraint: int) -> tuple[bool, str]:
        """Whether a constraint is a licence, and its label."""
        if (licence := self.licences.licence(constraint)) >= 0:
            return True, self._snapshot.licences[licence]
        return False, self.lowered.constraints.labels[constraint]


def _shut(job_closures: JobClosures, want: tuple[int, ...]) -> tuple[int, ...]:
    """The closures that keep a chunk out, as positions in `LoweredRules.closures`."""
    return tuple(each.closure for each in job_closures if each.shuts(want))


def _same_from(now_s: int, old: Steps, new: Steps) -> bool:
    """Whether a constraint is the same from now on."""
    at = max(int(np.searchsorted(old[0], now_s, side="right")) - 1, 0)
    starts = np.maximum(old[0][at:], now_s)
    return np.array_equal(starts, new[0]) and np.array_equal(old[1][at:], new[1])


def _bits(mask: NDArray[np.bool_]) -> NDArray[np.uint64]:
    row: NDArray[np.uint64] = pack_nodes(mask.reshape(1, -1))[0]
    return row


def _protections(
    snapshot: Snapshot, protect: Protection
) -> Sequence[tuple[int, NDArray[np.int64]]]:
    column = {name: index for index, name in enumerate(snapshot.resources)}
    capacity = snapshot.nodes.capacity
    found = []
    for resource, kept in protect.items():
        if plain_name(resource) not in column:
            continue  # no node has the resource: nothing to protect
        keep = np.zeros_like(capacity)
        having = capacity[:, column[plain_name(resource)]] > 0
        for name, amount in kept.items():
            if plain_name(name) in column:
                keep[having, column[plain_name(name)]] = amount
        found.append((column[plain_name(resource)], np.minimum(keep, capacity)))
    return found
