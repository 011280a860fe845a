# SPDX-License-Identifier: Apache-2.0
"""A snapshot written into a book: nodes, closed times, what runs, limits, FreePools and licences.

Rules
    1. Every class of `Eligibility` is a class of the book, with its blackouts; jobs that a FreePool
       keeps off some nodes have a class of their own, closed there while the pool is in force.
    2. Limits and FreePools are constraints (`bridge.planning.site_rules.lowered_rules`), and so are
       licences (`bridge.planning.site_rules.licences`).
    3. Running jobs hold what they hold until their expected end, and count on their constraints.
    4. Classes and requests are made when they are first asked for.
"""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bridge.core import Book, pack_nodes
from bridge.model.site import Protection
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.alternatives import Eligibility
from bridge.planning.queue.layouts import Layout
from bridge.planning.requests.amounts import plain_name
from bridge.planning.site_rules.capacity_constraints import Mode
from bridge.planning.site_rules.freepools import Closure, Gates
from bridge.planning.site_rules.licences import LicenceConstraints
from bridge.planning.site_rules.lowered_rules import LoweredRules
from bridge.ports import Selection

BookTerms = tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int8]]
"""One job's terms as the book takes them: constraints, amounts, modes."""


class ClusterBook:
    """A book of one snapshot, and the names by which the planner knows its parts.

    Attributes:
        book: pending jobs are booked under numbers of the caller's, 0 and up.
        licences: the constraints of licences.
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
    ) -> None:
        """Writes what there is and what runs.

        Args:
            snapshot: the world.
            eligibility: of the same.
            rank: (n_nodes,) nodes of lower rank first.
            lowered: limits and FreePools for this snapshot.
            protect: see `Protection`; what it says of resources that no node has is void.
            selection: how nodes are picked.
        """
        self._snapshot, self._eligibility, self._lowered = snapshot, eligibility, lowered
        self._classes: dict[tuple[int, tuple[int, ...]], int] = {}
        self._requests: dict[tuple[Layout, Gates], int] = {}
        self._closed: list[tuple[int, int, int, NDArray[np.uint64]]] = []
        self._marks: list[int] = []  # how much of it was there at each mark
        self.book = Book(
            snapshot.now_s,
            np.ascontiguousarray(snapshot.nodes.capacity),
            rank,
            _protections(snapshot, protect or {}),
            int(selection),
        )
        for constraint in range(len(lowered.constraints)):
            self.book.add_constraint(*lowered.constraints.steps(constraint))
        self.licences = LicenceConstraints(snapshot, len(lowered.constraints))
        for steps in self.licences.steps:
            self.book.add_constraint(*steps)
        self._book_running()

    def _book_running(self) -> None:
        running = self._snapshot.running
        terms = self.licences.add_terms(self._lowered.running, running.licences, Mode.COUNT)
        self.book.book_running(
            job=-1 - np.arange(len(running), dtype=np.int64),
            run_indptr=running.indptr,
            run_nodes=running.nodes,
            run_use=np.ascontiguousarray(running.use),
            run_end=running.end_s,
            run_exclusive=running.exclusive,
            term_indptr=terms.indptr,
            term_constraint=terms.constraint,
            term_amount=terms.amount,
            term_mode=terms.mode,
        )

    def mark(self) -> int:
        """Begins what can be undone; see `undo` and `keep`."""
        self._marks.append(len(self._closed))
        return self.book.mark()

    def undo(self, mark: int) -> None:
        """Takes back what was booked since a mark. Requests named since then stay, as they are."""
        self.book.undo(mark)
        since = self._marks[mark]
        del self._marks[mark:]
        for closed in self._closed[since:]:  # the book has opened them again
            self.book.close(*closed)

    def keep(self, mark: int) -> None:
        """What was booked since a mark stays."""
        self.book.keep(mark)
        del self._marks[mark:]

    def request(self, layout: Layout, gates: Gates = ()) -> int:
        """The book's number of a layout; layouts that ask nodes for the same share it.

        Args:
            layout: of a pending job.
            gates: the FreePools' closures that keep it, or some of its chunks, out.
        """
        key = layout, gates
        found = self._requests.get(key)
        if found is None:
            groups = layout.groups
            found = self._requests[key] = self.book.add_request(
                count=np.array([group.count for group in groups], dtype=np.int64),
                want=np.array([group.want for group in groups], dtype=np.int64),
                cls=np.array(
                    [
                        self._class(group.class_, _shut(gates, want))
                        for group, want in zip(groups, layout.together(), strict=True)
                    ],
                    dtype=np.int32,
                ),
                arrangement=int(layout.arrangement),
                exclusive=layout.exclusive,
                most_per_node=np.array([group.most_per_node for group in groups], dtype=np.int64),
            )
        return found

    def _class(self, class_: int, shut: tuple[int, ...]) -> int:
        found = self._classes.get((class_, shut))
        if found is None:
            mask = self._eligibility.class_mask(class_)
            found = self.book.add_class(_bits(mask))
            for start_s, end_s, closed in self._eligibility.closed(class_):
                self._close(found, start_s, end_s, closed)
            for index in shut:
                closure = self._lowered.closures[index]
                closed = mask & closure.nodes
                if closed.any():
                    for start_s, end_s in closure.windows.tolist():
                        self._close(found, start_s, end_s, closed)
            self._classes[class_, shut] = found
        return found

    def _close(self, class_: int, start_s: int, end_s: int, nodes: NDArray[np.bool_]) -> None:
        closed = class_, start_s, end_s, _bits(nodes)
        self.book.close(*closed)
        self._closed.append(closed)

    @property
    def closures(self) -> tuple[Closure, ...]:
        """The FreePools of nodes; gates are numbers among them."""
        return self._lowered.closures

    def constraint_key(self, constraint: int) -> str:
        """What a constraint is called from snapshot to snapshot; empty for none."""
        if constraint < 0:
            return ""
        if constraint >= self.licences.first:
            return self.licences.key(constraint)
        return self._lowered.constraints.keys[constraint]

    @cached_property
    def constraint_of_key(self) -> dict[str, int]:
        """The constraints by their keys."""
        count = self.licences.first + len(self.licences.steps)
        return {self.constraint_key(constraint): constraint for constraint in range(count)}

    def constraint_label(self, constraint: int) -> tuple[bool, str]:
        """Whether a constraint is a licence, and what it is called."""
        if (licence := self.licences.licence(constraint)) >= 0:
            return True, self._snapshot.licences[licence]
        return False, self._lowered.constraints.labels[constraint]


def _shut(gates: Gates, want: tuple[int, ...]) -> tuple[int, ...]:
    """The closures that keep a chunk out, as positions in `LoweredRules.closures`."""
    return tuple(gate.closure for gate in gates if gate.shuts(want))


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
            continue  # nobody has it: there is nothing to keep for whom
        keep = np.zeros_like(capacity)
        having = capacity[:, column[plain_name(resource)]] > 0
        for name, amount in kept.items():
            if plain_name(name) in column:
                keep[having, column[plain_name(name)]] = amount
        found.append((column[plain_name(resource)], np.minimum(keep, capacity)))
    return found
