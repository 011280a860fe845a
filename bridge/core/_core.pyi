# SPDX-License-Identifier: Apache-2.0
"""The C++ planning kernels: when can each job start, and on which nodes.

Terms: a *job* is an amount for a length of time; a *profile* is the free amount from now on;
*booked* means subtracted from the profile; the *depth* is the number of jobs that may hold a
reservation (1 is EASY, ``UNLIMITED`` is conservative backfilling).

Rules that hold for every function:

1. Times and lengths are int64 seconds; intervals are half-open, ``[start, end)``.
2. Jobs are planned in the order given. A job that fits now for its whole time limit starts now.
   Otherwise, while fewer than ``depth`` jobs hold a reservation, it is booked at its earliest
   feasible start. Beyond that it is left ``UNPLANNED``, unless it fits now.
3. A running job whose expected end is not in the future is expected to end at ``now + 1``.
4. Ends saturate at ``NEVER``. A job that could start only after something that ends at ``NEVER``
   gets the start ``NEVER``.
5. The same input gives the same output.
6. Columns must be C-contiguous NumPy arrays of exactly the stated dtype. A wrong dtype, shape or
   value raises ``ValueError`` whose text starts with the argument's name.
7. The interpreter lock is released while a kernel runs.
"""

import enum
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from bridge.core._alarm import Alarm as Alarm
from bridge.core._alarm import ClockAlarm as ClockAlarm
from bridge.core._book import Arrangement as Arrangement
from bridge.core._book import Book as Book
from bridge.core._book import Bookings as Bookings
from bridge.core._book import BookPlan as BookPlan
from bridge.core._book import Kept as Kept
from bridge.core._book import TermMode as TermMode
from bridge.core._corridor import WidthsFound as WidthsFound
from bridge.core._corridor import choose_widths as choose_widths
from bridge.core._judge import Fault as Fault
from bridge.core._judge import judge as judge
from bridge.core._orders import Decoding as Decoding
from bridge.core._orders import OrderFound as OrderFound
from bridge.core._orders import Stopped as Stopped
from bridge.core._orders import search_orders as search_orders
from bridge.core._requests import LoweredRows as LoweredRows
from bridge.core._requests import RequestTable as RequestTable
from bridge.core._tree import HopMetric as HopMetric
from bridge.core._tree import Tree as Tree
from bridge.core._tree_neural import RepairNetwork as RepairNetwork
from bridge.core.node_problem import NodeProblem

NEVER: Final[int]
"""A start that will not come (int64 maximum): the job cannot run even on the emptied system, or
only after something that never ends."""

UNPLANNED: Final[int]
"""No start was searched (-1): the job is beyond the reservation depth."""

UNLIMITED: Final[int]
"""A depth that no queue reaches (int64 maximum): conservative backfilling."""

class Blocked(enum.IntEnum):
    """Why a job of ``plan_nodes`` does not start now; the first that applies, in this order.

    ``NEVER_*`` mean that the job can never run. The others are judged for the alternative the job
    is planned on (its first possible one if it is unplanned).
    """

    STARTS_NOW = 0
    """It starts now."""
    NEVER_NODES = 1
    """Too few nodes exist in its class, a required node is not among them, or no width in
    [min, max] obeys the width rule."""
    NEVER_SIZE = 2
    """Enough nodes exist, but too few of them are large enough for its share per node, or no
    allowed number of them holds its tasks."""
    NEVER_COUNTER = 3
    """It requests more of a counter than exists; ``blocked_counter`` says which."""
    NEVER_FREED = 4
    """It could start only after something that never ends."""
    NOT_BEFORE = 5
    """Its not-before time is in the future."""
    NODES_BUSY = 6
    """Too few nodes are free of running jobs and of jobs that this plan starts."""
    BLACKOUT = 7
    """Enough nodes are free, but a blackout of its class closes them before the job would end."""
    COUNTER = 8
    """Nodes are free, but a counter is used up; ``blocked_counter`` says which."""
    PLANNED_START = 9
    """It would fit, but it would delay the planned start of a job before it."""
    TOO_LATE = 10
    """All possible starts are later than its latest one."""

class Select(enum.IntEnum):
    """Which of the eligible nodes a job takes."""

    SEQUENTIAL = 0
    """Ascending ``node_rank``, then ascending index."""
    BEST_FIT = 1
    """Ascending ``node_rank``, and among nodes of one rank for shared jobs those left with the
    least free after the job, each resource as a share of the node's capacity, summed; for exclusive
    jobs those of least capacity (each resource as a share of the largest node's, summed), then
    those whose idle gap after the job is shortest. Ties: ascending index."""

class WidthRule(enum.IntEnum):
    """Which numbers of nodes a job may have."""

    ANY = 0
    POWER_OF_TWO = 1
    EVEN = 2
    ODD = 3
    CUBIC = 4
    """1, 8, 27, 64, ..."""

def plan_counts(
    now: int,
    capacity: int,
    running_end: NDArray[np.int64],
    running_count: NDArray[np.int64],
    count: NDArray[np.int64],
    time_limit: NDArray[np.int64],
    not_before: NDArray[np.int64],
    depth: int,
) -> NDArray[np.int64]:
    """Plan jobs that request an amount of one countable resource (nodes, processors, licences).

    About 0.2 us a job for queues as they are found, 1 to 3 us where nearly all jobs differ.

    Args:
        now: the time of the plan, s.
        capacity: the total amount, at most 2**30.
        running_end: (n_running,) expected ends, s; NEVER for one that does not end.
        running_count: (n_running,) amounts held, >= 0. They may exceed the capacity together
            (nodes lost): then nothing starts until enough of them have ended.
        count: (n_jobs,) amounts wanted, >= 1.
        time_limit: (n_jobs,) lengths, s, >= 1.
        not_before: (n_jobs,) earliest allowed starts, s; anything <= now means none.
        depth: how many jobs may hold a reservation, >= 0.

    Returns:
        (n_jobs,) starts: now, later, UNPLANNED, or NEVER.

    Raises:
        ValueError: a column has the wrong dtype, shape or value; the text names it.
    """

def map_counts(
    n_nodes: int,
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    count: NDArray[np.int64],
    running_end: NDArray[np.int64],
    running_indptr: NDArray[np.int64],
    running_nodes: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Give planned whole-node jobs concrete nodes by a sweep over time.

    At each instant the jobs that end return their nodes first; then those that start take the
    lowest free indices, in the order given. This always succeeds when the counts fit at every
    second, because whole interchangeable nodes form an interval graph.

    Args:
        n_nodes: number of nodes.
        start: (n_jobs,) s; UNPLANNED and NEVER get no nodes.
        end: (n_jobs,) s, > start where there is a start (ignored elsewhere).
        count: (n_jobs,) nodes wanted, >= 1.
        running_end: (n_running,) when running jobs give their nodes back, s. They hold them from
            the beginning of time; one that ends before the first start is free by then.
        running_indptr: (n_running + 1,) CSR offsets into ``running_nodes``.
        running_nodes: node indices held. Two running jobs may hold the same node; it is free when
            the last of them has ended.

    Returns:
        ``(indptr, nodes)``: job j holds ``nodes[indptr[j]:indptr[j + 1]]``, ascending.

    Raises:
        ValueError: a column is malformed, or the jobs oversubscribe the nodes at some second.
    """

class Replay:
    """What ``replay_counts`` found."""

    @property
    def start(self) -> NDArray[np.int64]:
        """(n_jobs,) s; NEVER for a job larger than the capacity."""
    @property
    def decision_ns(self) -> NDArray[np.int64]:
        """(n_decisions,) nanoseconds each scheduling pass took, in time order."""
    @property
    def promises(self) -> NDArray[np.int64]:
        """(7 * n_jobs,) the promise of each job while it waited: ``bridge.state.accuracy``."""
    @property
    def decisions(self) -> int:
        """Number of scheduling passes: one per second with an event and a job waiting."""

def replay_counts(
    submit: NDArray[np.int64],
    runtime: NDArray[np.int64],
    time_limit: NDArray[np.int64],
    count: NDArray[np.int64],
    capacity: int,
    depth: int,
    order: NDArray[np.int64] | None = None,
) -> Replay:
    """Replay a whole trace: an event loop that plans the queue as ``plan_counts`` does.

    At every second in which jobs end or arrive, all of them are taken first; then the queue is
    planned once, from nothing, and the jobs whose start is now start.

    Args:
        submit: (n_jobs,) arrival, s, >= 0.
        runtime: (n_jobs,) what the jobs really take, s, >= 1. The caller caps it at the time limit
            if jobs are killed there; a job that overruns is expected to end in the next second.
        time_limit: (n_jobs,) run time that the plan assumes, s, >= 1.
        count: (n_jobs,) processors, >= 1.
        capacity: processors there are, at most 2**30.
        depth: how many jobs may hold a reservation: 1 is EASY, UNLIMITED conservative.
        order: (n_jobs,) the queue is sorted by this, ascending, then by arrival and index;
            None is first come, first served.

    Returns:
        Starts and decision times.

    Raises:
        ValueError: a column has the wrong dtype, shape or value; the text names it.
    """

class NodePlan:
    """What ``plan_nodes`` found."""

    @property
    def start(self) -> NDArray[np.int64]:
        """(n_jobs,) s: now, later, UNPLANNED, or NEVER."""
    @property
    def alternative(self) -> NDArray[np.int32]:
        """(n_jobs,) which of the job's own alternatives it is planned on, from 0; -1 if none.

        TOO_LATE: the one that could have had `missed_start`.
        """
    @property
    def indptr(self) -> NDArray[np.int64]:
        """(n_jobs + 1,) CSR offsets into ``nodes`` and ``tasks``; empty where there is no start."""
    @property
    def nodes(self) -> NDArray[np.int32]:
        """Node indices, ascending within a job."""
    @property
    def tasks(self) -> NDArray[np.int32]:
        """Tasks on each of ``nodes``; 0 for jobs that count no tasks."""
    @property
    def blocked_by(self) -> NDArray[np.int8]:
        """(n_jobs,) ``Blocked`` codes."""
    @property
    def blocked_counter(self) -> NDArray[np.int32]:
        """(n_jobs,) the counter for COUNTER and NEVER_COUNTER; -1 otherwise.

        For TOO_LATE it is the one that keeps the job from starting now, if one does.
        """
    @property
    def fit_now(self) -> NDArray[np.int32]:
        """(n_jobs,) how many eligible nodes could hold the job from now for its whole length.

        Counted after everything before it is booked and before itself, for the alternative that
        ``blocked_by`` is about. 0 for a job that can never run.
        """
    @property
    def missed_start(self) -> NDArray[np.int64]:
        """(n_jobs,) s; TOO_LATE: the earliest start, were it not bound; NEVER otherwise."""

def plan_nodes(problem: NodeProblem) -> NodePlan:
    """Plan jobs onto concrete nodes with several resources, shared or whole.

    On a node a job requests ``per_node``, plus ``per_task`` for each task there. A node that is
    eligible for a job is in the alternative's class, is not closed by a blackout of that class at
    any second of the job, and holds the request at every second of the job: for a shared job beside
    everything booked there and under no exclusive holder; for an exclusive job with nobody else
    there and the request within the node's capacity. A job with tasks needs a set of nodes, each
    with one task at least, that hold exactly ``tasks`` together.

    Of the alternatives the one with the earliest start wins, ties go to the first.

    Width: a job without tasks that starts now takes as many nodes as it may; one planned for later
    is booked with the least it may. A job with tasks takes, if its bounds allow, all nodes of the
    lower ranks and the fewest of the last it needs to hold them; otherwise the fewest of all.
    Which ones: the first in ``select`` order that can be completed to a valid set, required nodes
    first. Tasks: one on every node, the rest fills the nodes in that same order.

    Jobs that request whole nodes out of a set that no other job treats differently are planned as
    counts and mapped by a sweep over time as ``map_counts`` does (in ``node_rank`` order, then by
    capacity for BEST_FIT): that is faster, and it never starts a job later than choosing nodes
    early would. The first job that treats the set differently fixes the nodes of those before it.

    Args:
        problem: the nodes, what runs there, and the jobs in their order.

    Returns:
        Starts, nodes and reasons.

    Raises:
        ValueError: a column has the wrong dtype, shape or value; the text names it.
    """

class HostlistFolder:
    """Writes sets of nodes as Slurm hostlists: ``n[001-064,070],big1``.

    Names are folded over their trailing digits; names that differ before them, or in zero padding,
    stand apart. The order is that of first appearance of each such family, numbers ascending.
    """

    def __init__(self, names: Sequence[str]) -> None:
        """Learn the names of all nodes.

        Args:
            names: one name per node index.

        Raises:
            ValueError: a name is empty, occurs twice, or contains ``[``, ``]``, ``,`` or a space.
        """
    def fold(self, nodes: NDArray[np.int32]) -> str:
        """Write one set.

        Args:
            nodes: node indices in any order; repeats count once.

        Returns:
            The hostlist; empty for no nodes.

        Raises:
            ValueError: an index is out of range.
        """
    def fold_many(self, indptr: NDArray[np.int64], nodes: NDArray[np.int32]) -> list[str]:
        """Write a CSR of sets, as ``plan_nodes`` returns it.

        Args:
            indptr: (n_sets + 1,) offsets into ``nodes``.
            nodes: node indices.

        Returns:
            One hostlist per set.

        Raises:
            ValueError: the offsets do not ascend within ``nodes``, or an index is out of range.
        """

def group_numbers(key: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the groups of equal keys in order of appearance. O(n).

    Returns:
        (n_groups,) the first position of each group, ascending; (n,) the group of each key.
    """

def group_objects(objects: list[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The same, of objects: those are equal that are one and the same."""

def match_ids(former: Sequence[str], ids: Sequence[str]) -> NDArray[np.int64]:
    """Find jobs in the table of an earlier cycle. O(n), fast where both share the texts.

    Args:
        former: a list or tuple of ids, none of them twice.
        ids: a list or tuple of n ids.

    Returns:
        (n,) the position of each among the former ones; -1: it is not among them.

    Raises:
        ValueError: not a list or tuple.
    """

def read_status_lists(address: int) -> dict[str, dict[str, str | dict[str, str]]]:
    """Read a C library's linked list of objects with attributes. O(attributes).

    An object is ``{next, name, attributes, text}``, an attribute ``{next, name, resource, value,
    int}``: pointers, and texts that end with a zero byte. Bytes that are no UTF-8 are replaced.

    Args:
        address: of the first object; 0: there is none. Memory at any other address ends the
            process, so it must come from the library at once.

    Returns:
        By object and attribute: its values by resource, or its only value. Values without a
        resource that are stated repeatedly are joined by commas.
    """

def due_announcements(
    *,
    now_s: int,
    start_s: NDArray[np.int64],
    partition: NDArray[np.int32],
    indptr: NDArray[np.int64],
    nodes: NDArray[np.int32],
    reason: NDArray[np.int64],
    code: NDArray[np.int64],
    words: NDArray[np.int64],
    mix: NDArray[np.int64],
    row_of: NDArray[np.int64],
    version: NDArray[np.uint64],
    serial: NDArray[np.int64],
    said: NDArray[np.int64],
    in_order: NDArray[np.int64],
    words_s: int,
    prompt: int,
    calm_s: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
    """Compare a plan with what was announced of it. O(rows + nodes planned).

    ``bridge/rpc/controller/announcements.py`` has the rules.

    Args:
        now_s: the present.
        start_s: (n_rows,) s; ``NEVER`` or ``UNPLANNED``: only the reason is announced.
        partition: (n_rows,) of the planned starts.
        indptr: (n_rows + 1,) offsets into ``nodes``.
        nodes: of all rows.
        reason: (n_rows,) positions in ``code`` and ``words``.
        code: of each reason.
        words: a fingerprint of the text of each reason.
        mix: (n_nodes,) random weights, for fingerprints of sets of nodes.
        row_of: (n_jobs,) the row that is announced; -1: none.
        version: (n_jobs,) of the jobs.
        serial: (n_jobs,) of the jobs, in whose seconds their intervals begin.
        said: (8, n_jobs) the table of the last announcements; zeros: none was made.
        in_order: the jobs with a row, in the plan's order.
        words_s: seconds between two announcements of which only the words differ.
        prompt: so many jobs that have only moved may be announced each second.
        calm_s: the longest interval between announcements of the others, s.

    Returns:
        8 * n_jobs numbers: the table of the present announcements, row after row; the jobs to be
        announced, in order; and seconds until others are due, 0 if there are none.

    Raises:
        ValueError: a column has another length or type, or a number that refers to nothing.
    """

def write_announcements(
    folder: HostlistFolder,
    *,
    first_id: int,
    job_id: list[str],
    version: NDArray[np.uint64],
    start_s: NDArray[np.int64],
    partition: NDArray[np.int32],
    partitions: list[str],
    reason: NDArray[np.int64],
    reasons: list[bytes],
    indptr: NDArray[np.int64],
    nodes: NDArray[np.int32],
) -> bytes:
    """Write n announcements as a ``CycleReply`` that has them as its decisions.

    Args:
        folder: writes the hostlists.
        first_id: number of the first decision; the others follow.
        job_id: n ids.
        version: (n,) of the jobs.
        start_s: (n,) s; ``NEVER`` or ``UNPLANNED``: only the reason is announced.
        partition: (n,) positions in ``partitions``, of planned starts.
        partitions: their names.
        reason: (n,) positions in ``reasons``.
        reasons: ``Pending`` messages, encoded.
        indptr: (n + 1,) CSR offsets into ``nodes``.
        nodes: node indices.

    Returns:
        The encoded message.
    """
