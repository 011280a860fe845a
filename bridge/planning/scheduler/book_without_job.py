# SPDX-License-Identifier: Apache-2.0
"""Writes a plan back into a book without the rows of one job, to find what is left for that job.

Rules
    1. Every row with a start holds its nodes from its start to its end and counts on its
       constraints, even if the book itself would have placed it elsewhere. Rows without a start
       are not booked.
    2. The amounts on a node follow from the row's tasks and chunks there in the plan.
"""

import numpy as np
from numpy.typing import NDArray

from bridge.core import Book
from bridge.model.plan import Plan
from bridge.model.resources import Arrangement
from bridge.model.snapshot import Snapshot
from bridge.planning.queue.time_windows import requested_time_limit_s
from bridge.planning.scheduler.cluster_book import ClusterBook
from bridge.planning.site_rules.capacity_constraints import Mode
from bridge.planning.site_rules.lowered_rules import Extent, LoweredRules
from bridge.units import NEVER, UNPLANNED


def book_plan(
    cluster: ClusterBook, lowered: LoweredRules, snapshot: Snapshot, plan: Plan, *, without: int
) -> None:
    """Books all rows of a plan except those of one job.

    Args:
        cluster: the cluster of the same snapshot; running jobs are booked in it.
        snapshot: the cluster; `plan.job` are rows of its jobs.
        without: the row of the job to be left out.
    """
    there = (plan.start_s != NEVER) & (plan.start_s != UNPLANNED) & (plan.job != without)
    rows = np.flatnonzero(there)
    if not len(rows):
        return
    width = np.diff(plan.indptr)
    entries = np.flatnonzero(np.repeat(there, width))
    width = width[rows]
    owner = np.repeat(np.arange(len(rows)), width)
    job = plan.job[rows].astype(np.int64)
    entries, owner, kind, want = _held(snapshot, plan, entries, owner, job)
    request = _requests(cluster.book, want, snapshot.jobs.exclusive[job][owner])
    # One booking for each row, request and kind: usually all nodes of a row hold the same.
    part = owner * (int(request.max()) + 1) + request
    part = part * (int(kind.max()) + 1) + kind
    order = np.argsort(part, kind="stable")
    entries, owner, request, part = entries[order], owner[order], request[order], part[order]
    first = np.ones(len(owner), dtype=bool)
    first[1:] = part[1:] != part[:-1]
    at = np.flatnonzero(first)
    row = owner[at]
    lasts_s = (plan.end_s - plan.start_s)[rows]
    limit_s = requested_time_limit_s(snapshot.jobs, job, lasts_s)
    extent = Extent.of_plan(lowered, plan, rows)
    terms = lowered.terms(job, plan.partition[rows].astype(np.int64), limit_s, extent)
    jobs = snapshot.jobs
    terms = cluster.licences.add_terms(terms, jobs.licences[job], Mode.BOTH, jobs.reservation[job])
    counts = np.diff(terms.indptr)
    bears = np.ones(len(row), dtype=bool)  # the first booking of a row carries its terms
    bears[1:] = row[1:] != row[:-1]
    cluster.book.book_many(
        job=np.arange(len(at), dtype=np.int64),
        request=request[at].astype(np.int32),
        start=plan.start_s[rows][row],
        length=lasts_s[row],
        indptr=np.append(at, len(owner)).astype(np.int64),
        nodes=plan.nodes[entries].astype(np.int32),
        groups=np.zeros(len(owner), dtype=np.int32),
        chunks=np.ones(len(owner), dtype=np.int32),
        term_indptr=np.concatenate(([0], np.cumsum(np.where(bears, counts[row], 0)))).astype(
            np.int64
        ),
        term_constraint=terms.constraint,
        term_amount=terms.amount,
        term_mode=terms.mode,
        forced=True,
    )


def _held(
    snapshot: Snapshot,
    plan: Plan,
    entries: NDArray[np.intp],
    owner: NDArray[np.intp],
    job: NDArray[np.int64],
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.int64], NDArray[np.int64]]:
    """The holdings on each node: positions in `plan.nodes`, rows, kinds, and (n, R) amounts.

    A node with chunks of several kinds comes once for each kind.
    """
    jobs = snapshot.jobs
    mine = job[owner]
    tasks = plan.tasks[entries].astype(np.int64)
    want = jobs.per_node[mine] + tasks[:, None] * jobs.per_task[mine]
    if plan.groups is None:
        return entries, owner, np.zeros(len(owner), dtype=np.int64), want
    chunks = plan.groups[entries]
    mixed = chunks.any(axis=1)
    at, kind = np.nonzero(chunks)
    parts = np.empty((len(at), want.shape[1]), dtype=np.int64)
    for position, (entry, which) in enumerate(zip(at.tolist(), kind.tolist(), strict=True)):
        requested = jobs.chunks[mine[entry]]
        each = np.array(requested.wants[which]) + np.array(requested.per_node)
        parts[position] = int(chunks[entry, which]) * each
    plain = ~mixed
    return (
        np.concatenate((entries[plain], entries[at])),
        np.concatenate((owner[plain], owner[at])),
        np.concatenate((np.zeros(int(plain.sum()), dtype=np.int64), kind)),
        np.concatenate((want[plain], parts)),
    )


def _requests(
    book: Book, want: NDArray[np.int64], exclusive: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """The book's request for one chunk of each of these amounts; equal ones share one."""
    table = np.column_stack((want, exclusive.astype(np.int64)))
    _, index, inverse = np.unique(_fingerprints(table), return_index=True, return_inverse=True)
    if not np.array_equal(table[index][inverse], table):  # two rows have the same fingerprint
        _, index, inverse = np.unique(table, axis=0, return_index=True, return_inverse=True)
    # No search uses these requests, so their class may be empty.
    nowhere = book.add_class(np.zeros(-(-book.n_nodes // 64), dtype=np.uint64))
    one, cls = np.ones(1, dtype=np.int64), np.array([nowhere], dtype=np.int32)
    numbers = np.array(
        [
            book.add_request(
                one, want[at : at + 1], cls, int(Arrangement.SCATTER), bool(exclusive[at])
            )
            for at in index.tolist()
        ],
        dtype=np.int64,
    )
    found: NDArray[np.int64] = numbers[inverse.reshape(-1)]
    return found


def _fingerprints(table: NDArray[np.int64]) -> NDArray[np.uint64]:
    """One number for each row of a table; sorting rows as wholes takes ten times as long."""
    marks = np.zeros(len(table), dtype=np.uint64)
    for column in table.T.astype(np.uint64):
        marks = (marks ^ column) * np.uint64(0x9E3779B97F4A7C15)
        marks ^= marks >> np.uint64(29)
    return marks
