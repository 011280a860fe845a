# SPDX-License-Identifier: Apache-2.0
"""The book: use over time, of every node and in total (part of ``_core``).

The rules of ``_core.pyi`` hold here too, except that there is no depth: every given job is planned,
and earlier bookings stay until they are revoked.
"""

import enum
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

class Arrangement(enum.IntEnum):
    """How the chunks of a request are placed."""

    FREE = 0
    """Several chunks may share a node."""
    PACK = 1
    """All on one node."""
    SCATTER = 2
    """One chunk on a node at most."""

class TermMode(enum.IntEnum):
    """How a constraint applies to a job."""

    BOTH = 0
    """The job is checked and counts (a limit, a licence)."""
    COUNT = 1
    """The job counts, even above the bound (a job with access to a reserved amount)."""
    CHECK = 2
    """The job is checked by itself, and does not count."""

class BookPlan:
    """What ``Book.plan_many`` found and booked."""

    @property
    def start(self) -> NDArray[np.int64]:
        """(n_jobs,) s; NEVER for a job that is not booked."""
    @property
    def indptr(self) -> NDArray[np.int64]:
        """(n_jobs + 1,) CSR offsets into ``nodes``, ``groups`` and ``chunks``."""
    @property
    def nodes(self) -> NDArray[np.int32]:
        """Node indices, in the order of the book."""
    @property
    def groups(self) -> NDArray[np.int32]:
        """Which group of the request has chunks there."""
    @property
    def chunks(self) -> NDArray[np.int32]:
        """How many, >= 1."""
    @property
    def blocked_by(self) -> NDArray[np.int8]:
        """(n_jobs,) ``Blocked`` codes; empty without reasons.

        COUNTER and NEVER_COUNTER mean a constraint; NODES_BUSY that not even one second fits now;
        BLACKOUT that it would, but too many nodes are closed, or close before the job would end.
        """
    @property
    def blocked_constraint(self) -> NDArray[np.int32]:
        """(n_jobs,) the constraint for COUNTER and NEVER_COUNTER, or -1; empty without reasons."""

class Kept:
    """What ``Book.keep_many`` did."""

    @property
    def done(self) -> int:
        """The first job that was not dealt with; n: all were."""
    @property
    def kept(self) -> NDArray[np.bool_]:
        """(n,) which are booked where they were."""
    @property
    def start(self) -> NDArray[np.int64]:
        """(n,) s; NEVER for a job that is not booked."""
    @property
    def blocked_by(self) -> NDArray[np.int8]:
        """(n,) of those that moved, as in ``BookPlan``."""
    @property
    def blocked_constraint(self) -> NDArray[np.int32]:
        """(n,) likewise."""

class Bookings:
    """Bookings as columns; ``book_many`` takes them back."""

    @property
    def job(self) -> NDArray[np.int64]:
        """(n,) job numbers."""
    @property
    def request(self) -> NDArray[np.int32]:
        """(n,) requests; -1 for one of ``book_running``."""
    @property
    def start(self) -> NDArray[np.int64]:
        """(n,) s."""
    @property
    def end(self) -> NDArray[np.int64]:
        """(n,) s; NEVER for one that does not end."""
    @property
    def indptr(self) -> NDArray[np.int64]:
        """(n + 1,) CSR offsets into ``nodes``, ``groups`` and ``chunks``."""
    @property
    def nodes(self) -> NDArray[np.int32]:
        """Node indices, in the order of the book."""
    @property
    def groups(self) -> NDArray[np.int32]:
        """Groups; -1 for one of ``book_running``."""
    @property
    def chunks(self) -> NDArray[np.int32]:
        """Chunks."""

class Book:
    """The use of every node and every constraint over time, from now on.

    Terms: a *class* is a set of eligible nodes with closed times; a *request* is groups of equal
    *chunks*, each chunk within one node; a *constraint* is a step function of time under which a
    sum of amounts must stay; a job's *terms* are its parts in constraints; a *booking* is a job at
    [start, end) on nodes.

    Rules:

    1. A search is exact: a start is skipped only if no mapping exists there. (Packings of many
       groups may be too many to try all: ``given_up`` counts the starts skipped for that.)
    2. Nodes are taken in order of rank, then index, each with as many chunks as fit (FREE). Of
       several groups, those with the largest chunks (share of the system) are placed first.
    3. Booking a job never moves or changes another booking.
    4. A node without any resource (all capacities 0) is not used. An exclusive job has a node to
       itself for its whole length; its chunks are then limited by the capacity only.
    5. Classes, constraints and requests are names: ``undo`` leaves them. Everything else that was
       done since a mark is undone exactly.
    6. The same calls in the same order give the same book.

    ``terms`` of one job are None or three columns: constraints (int32), amounts (int64, 0 to
    2**40), ``TermMode`` codes (int8). Of many jobs they are CSR: ``term_indptr`` (n_jobs + 1,)
    int64 into ``term_constraint``, ``term_amount``, ``term_mode``. Node sets are bitset rows (see
    ``pack_nodes``). Every method raises ``ValueError`` naming the argument that is wrong, and then
    has changed nothing.
    """

    def __init__(
        self,
        now: int,
        capacity: NDArray[np.int64],
        node_rank: NDArray[np.int32],
        protections: Sequence[tuple[int, NDArray[np.int64]]] = (),
        select: int = 0,
    ) -> None:
        """Begin an empty book.

        Args:
            now: the present, s, >= 0.
            capacity: (n_nodes, n_res), 0 to 2**40, like all requested amounts.
            node_rank: (n_nodes,) nodes of low rank are taken first.
            protections: each is a protected resource (column of ``capacity``) and what every node
                keeps for chunks that request it, (n_nodes, n_res) int64: all other chunks together
                get no more of the other resources than the capacity less that, and cannot have
                such a node exclusively. (PACK: unless a chunk of the same job requests it.)
            select: a ``Select`` code. By BEST_FIT a request of one group takes the fewest nodes
                that hold it, but none of higher rank to save one of lower rank. Requests of several
                groups that request different chunks take nodes as by SEQUENTIAL.
        """
    @property
    def now(self) -> int:
        """The present, s."""
    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
    @property
    def given_up(self) -> int:
        """Number of starts skipped because the search for a packing grew too large."""
    def __len__(self) -> int:
        """Number of bookings."""
    def advance(self, now: int) -> None:
        """Advance the present; the past is discarded, bookings stay until revoked.

        Raises:
            ValueError: ``now`` lies in the past, or a mark is set.
        """
    def add_class(self, nodes: NDArray[np.uint64]) -> int:
        """Add a set of eligible nodes; return its number."""
    def set_class(self, cls: int, nodes: NDArray[np.uint64]) -> None:
        """Replace the nodes of a class; bookings stay, and what was learnt about it is kept.

        Raises:
            ValueError: the class has closed times, or a mark is set.
        """
    def close(self, cls: int, start: int, end: int, nodes: NDArray[np.uint64]) -> int:
        """Close nodes to a class within [start, end); bookings stay. Return its number."""
    def reopen(self, closure: int) -> None:
        """Undo one ``close``; no effect if it is undone already."""
    def add_constraint(self, starts: NDArray[np.int64], amounts: NDArray[np.int64]) -> int:
        """Add a step function.

        Args:
            starts: (n,) ascending; ``amounts[i]`` holds from ``starts[i]`` to the next, the last
                one for ever, the first one also before its start.
            amounts: (n,) 0 to 2**60, or NEVER: unbounded.

        Returns:
            Its number.
        """
    def set_constraint(
        self, constraint: int, starts: NDArray[np.int64], amounts: NDArray[np.int64]
    ) -> None:
        """Replace a step function; what counts on it stays."""
    def constraint_use(
        self, constraint: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return a constraint over time: slot starts, the bounds, and the amounts that count."""
    def add_request(
        self,
        count: NDArray[np.int64],
        want: NDArray[np.int64],
        cls: NDArray[np.int32],
        arrangement: int = 0,
        exclusive: bool = False,
        most_per_node: NDArray[np.int64] | None = None,
    ) -> int:
        """Add a request, or find it again: equal requests have one number.

        Args:
            count: (n_groups,) chunks of each group, 1 to 2**30; at most 64 groups.
            want: (n_groups, n_res) what each chunk requests.
            cls: (n_groups,) class of each group.
            arrangement: an ``Arrangement`` code.
            exclusive: whether it requests nodes for itself.
            most_per_node: (n_groups,) chunks of the group on a node at most; 0: no limit.
        """
    def find(
        self,
        request: int,
        length: int,
        terms: tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int8]] | None = None,
        earliest: int | None = None,
        latest: int = ...,
        last: bool = False,
    ) -> tuple[int, NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]] | None:
        """Look for the earliest (``last``: the latest) start in [earliest, latest].

        Args:
            request: what.
            length: s, >= 1; NEVER: it does not end.
            terms: see the class.
            earliest: s; None or the past: now.
            latest: the latest start allowed, s. A deadline is ``latest + length``.
            last: whether the latest start is wanted.

        Returns:
            Start, nodes, groups, chunks (as in ``BookPlan``); None if there is none.
        """
    def why(
        self,
        request: int,
        length: int,
        terms: tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int8]] | None = None,
        earliest: int | None = None,
        latest: int = ...,
    ) -> tuple[int, int]:
        """Return why a job would not start now: a ``Blocked`` code and a constraint or -1."""
    def book(
        self,
        job: int,
        request: int,
        start: int,
        length: int,
        terms: tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int8]] | None,
        nodes: NDArray[np.int32],
        groups: NDArray[np.int32],
        chunks: NDArray[np.int32],
    ) -> bool:
        """Book a job; False, without changes, if it does not fit there."""
    def revoke(self, job: int) -> None:
        """Remove a booking."""
    def book_many(
        self,
        *,
        job: NDArray[np.int64],
        request: NDArray[np.int32],
        start: NDArray[np.int64],
        length: NDArray[np.int64],
        indptr: NDArray[np.int64],
        nodes: NDArray[np.int32],
        groups: NDArray[np.int32],
        chunks: NDArray[np.int32],
        term_indptr: NDArray[np.int64],
        term_constraint: NDArray[np.int32],
        term_amount: NDArray[np.int64],
        term_mode: NDArray[np.int8],
        forced: bool = False,
        stop: bool = False,
    ) -> NDArray[np.bool_]:
        """Book jobs where they are known to be, in order.

        Args:
            job: (n,) new numbers.
            request: (n,).
            start: (n,) s; before now only if forced.
            length: (n,) s.
            indptr: (n + 1,) CSR offsets.
            nodes: node indices.
            groups: groups of the requests.
            chunks: chunks, >= 1.
            term_indptr: see the class.
            term_constraint: see the class.
            term_amount: see the class.
            term_mode: see the class.
            forced: book them even where they do not fit (running jobs are where they are).
            stop: book none after the first one that does not fit.

        Returns:
            (n,) which are booked.
        """
    def keep_many(
        self,
        *,
        job: NDArray[np.int64],
        request: NDArray[np.int32],
        start: NDArray[np.int64],
        length: NDArray[np.int64],
        indptr: NDArray[np.int64],
        nodes: NDArray[np.int32],
        groups: NDArray[np.int32],
        chunks: NDArray[np.int32],
        term_indptr: NDArray[np.int64],
        term_constraint: NDArray[np.int32],
        term_amount: NDArray[np.int64],
        term_mode: NDArray[np.int8],
        stands: NDArray[np.bool_],
        movable: NDArray[np.bool_],
        first: int = 0,
    ) -> Kept:
        """Book jobs where they were, in order, or else on other nodes at the same time.

        Args:
            job: as for ``book_many``.
            request: likewise.
            start: (n,) s, not before now.
            length: as for ``book_many``.
            indptr: likewise.
            nodes: likewise.
            groups: likewise.
            chunks: likewise.
            term_indptr: see the class.
            term_constraint: see the class.
            term_amount: see the class.
            term_mode: see the class.
            stands: (n,) which may be booked where they were; the nodes of others are ignored.
            movable: (n,) which may be booked elsewhere; the first other one that does not fit ends
                the call.
            first: the jobs before this one are passed over.

        Returns:
            Outcomes of decisions.
        """
    def settle(
        self,
        *,
        job: NDArray[np.int64],
        request: NDArray[np.int32],
        start: NDArray[np.int64],
        length: NDArray[np.int64],
        term_indptr: NDArray[np.int64],
        term_constraint: NDArray[np.int32],
        term_amount: NDArray[np.int64],
        term_mode: NDArray[np.int8],
        booked: NDArray[np.bool_],
        unsure: NDArray[np.bool_],
        movable: NDArray[np.bool_],
        most: int,
    ) -> Kept | None:
        """What ``keep_many`` makes of an empty book, in one that holds the jobs where they were.

        Only jobs near what does not fit are looked at.

        Args:
            job: (n,) in order; nothing else is booked but running jobs.
            request: (n,) requests.
            start: (n,) s, not before now: where they are booked, or are to be.
            length: (n,) s.
            term_indptr: see the class.
            term_constraint: see the class.
            term_amount: see the class.
            term_mode: see the class; none is ``CHECK``.
            booked: (n,) which are booked, whether they fit or not (``book_many``, ``forced``).
            unsure: (n,) which are to be looked at although no node of theirs is overbooked.
            movable: (n,) which may be booked elsewhere.
            most: jobs that are looked at.

        Returns:
            Outcomes of decisions; None: it cannot be told so, and the book is as it was. So it is
            if more than `most` jobs would be looked at, or one that asks for chunks of several
            kinds, has terms but no place, is not movable, or takes whole nodes by best fit; or if a
            constraint is exceeded.
        """
    def book_running(
        self,
        *,
        job: NDArray[np.int64],
        run_indptr: NDArray[np.int64],
        run_nodes: NDArray[np.int32],
        run_use: NDArray[np.int64],
        run_end: NDArray[np.int64],
        run_exclusive: NDArray[np.bool_],
        term_indptr: NDArray[np.int64],
        term_constraint: NDArray[np.int32],
        term_amount: NDArray[np.int64],
        term_mode: NDArray[np.int8],
    ) -> None:
        """Book running jobs by what they hold, from now to their ends (now + 1 at the least).

        The ``run_*`` columns are those of ``plan_nodes``.
        """
    def plan_many(
        self,
        *,
        job: NDArray[np.int64],
        request: NDArray[np.int32],
        length: NDArray[np.int64],
        not_before: NDArray[np.int64],
        latest: NDArray[np.int64],
        last: NDArray[np.bool_],
        term_indptr: NDArray[np.int64],
        term_constraint: NDArray[np.int32],
        term_amount: NDArray[np.int64],
        term_mode: NDArray[np.int8],
        reasons: bool = True,
        depth: int = ...,
    ) -> BookPlan:
        """Find and book each job in order; one for which there is no start is left out.

        Args:
            job: (n,) new numbers.
            request: (n,).
            length: (n,) s.
            not_before: (n,) earliest starts, s.
            latest: (n,) latest starts, s; NEVER: any.
            last: (n,) whether the latest start is wanted.
            term_indptr: see the class.
            term_constraint: see the class.
            term_amount: see the class.
            term_mode: see the class.
            reasons: whether to say why jobs do not start now (costs some time).
            depth: once so many of these jobs start later than now, the others start now or are
                left out; ``UNLIMITED``: never.
        """
    def replan_many(
        self, job: NDArray[np.int64], not_before: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Move each job in order to its earliest start, if that is earlier than the booked one.

        One that has started, and one of ``book_running``, stays.

        Args:
            job: (n,) booked jobs.
            not_before: (n,) earliest starts, s.

        Returns:
            (n,) the starts they have now.
        """
    def bookings(self, job: NDArray[np.int64] | None = None) -> Bookings:
        """Return bookings: of these jobs, or all in order of start, then of booking."""
    def free_at(self, time: int) -> NDArray[np.int64]:
        """Return what is free at a time, (n_nodes, n_res); 0 on nodes held exclusively.

        Negative where a node lost what is booked on it.
        """
    def holders(
        self,
        request: int,
        terms: tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int8]] | None,
        start: int,
        length: int,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Return what blocks a request at [start, start + length).

        Returns:
            The jobs that use, at some second then, a resource of which eligible nodes have too
            little for one more chunk, or that count on constraints that cannot hold it; and these
            constraints.
        """
    def overbooked(self) -> bool:
        """Whether more is booked at some second than a node has or a constraint allows."""
    def mark(self) -> int:
        """Begin a what-if; marks nest."""
    def undo(self, mark: int) -> None:
        """Undo everything since the mark, and end it and those within it."""
    def keep(self, mark: int) -> None:
        """End the what-if and keep its changes."""
