# SPDX-License-Identifier: Apache-2.0
"""The widths that malleable jobs are planned with.

Terms
    asked       the nodes that a job requests; of a running job that states none, those it has.
    base        the fewest nodes that a job allows on which it takes at most `stretch` times as long
                as on its requested nodes.
    lent nodes  those of a running job beyond its base.

Rules
    1. A waiting job is planned on its base for the time it would take there with a perfect
       speed-up, on enough nodes that its partitions allow that time. So the planned time is
       long enough whatever the job's speed-up.
    2. A running job is planned to give back its lent nodes as soon as it can, and to continue on
       its base. Its remaining time there follows from its measured communication, or else from
       earlier jobs.
    3. Lent nodes come back after the duration of a change, but not within `between_s` after the
       job's last change.
    4. A job that ends within `MIN_LEFT` changes keeps its nodes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.model.decisions.resizes import NO_RESIZES, Resizes, heads
from bridge.model.decisions.start_widths import NO_START_WIDTHS, StartWidths
from bridge.model.job import RunningTable, WidthRule
from bridge.model.job_columns import MAX_COUNT
from bridge.model.learnt import Learnt
from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.elastic import RULES, ElasticJobs
from bridge.planning.malleable.expand_shrink import MIN_LEFT
from bridge.planning.malleable.observing import learnt_serials
from bridge.planning.malleable.speed import (
    UNKNOWN_SERIAL,
    serial_fractions,
    speeds,
    widths_for,
)


@dataclass(frozen=True)
class Costs:
    """The cost of a change of width, and the weights of jobs.

    Attributes:
        adaptation_s: duration of a change.
        between_s: minimum time between two changes of a job.
        stretch: see the terms.
        fairness: preference for jobs with fewer nodes than requested.
    """

    adaptation_s: int
    between_s: int
    stretch: float
    fairness: float


def elastic_rows(running: RunningTable) -> NDArray[np.intp]:
    """The rows of the running malleable jobs."""
    holds = running.indptr[1:] > running.indptr[:-1]
    return np.flatnonzero((running.max_nodes > 0) & ~running.releasing & holds)


def elastic_jobs(snapshot: Snapshot, costs: Costs, learnt: Learnt | None = None) -> ElasticJobs:
    """The running malleable jobs, in order of their rows.

    Args:
        costs: costs of changes.
        learnt: speed-ups (`bridge.planning.malleable.observing`) of jobs that are not measured;
            None: nothing.
    """
    running, now_s = snapshot.running, snapshot.now_s
    rows = elastic_rows(running)
    width = running.indptr[rows + 1] - running.indptr[rows]
    stated, mtct = running.requested_nodes[rows], running.mtct[rows]
    adapting, resized_s = running.adapting[rows], running.resized_s[rows]
    requested = np.where(stated > 0, stated, width)
    left_s = np.maximum(running.end_s[rows] - now_s, 0)
    calm_s = np.where(resized_s > 0, resized_s + costs.between_s, 0)
    back_s = now_s + costs.adaptation_s * np.where(adapting, 2, 1)
    serial = serial_fractions(mtct, width)
    if learnt is not None and learnt.known:
        unknown = np.flatnonzero((mtct < 0) | (width < 2))
        of = rows[unknown]
        serial[unknown] = learnt_serials(learnt, running.user[of], running.name[of])
    rule = running.width_rule[rows]
    narrow = _bases(rule, running.min_nodes[rows], requested, serial, costs.stretch)
    keeps = left_s <= MIN_LEFT * costs.adaptation_s
    indptr, nodes, straight = _heads_first(running, rows, width)
    return ElasticJobs(
        row=rows,
        indptr=indptr,
        nodes=nodes,
        straight=straight,
        base=np.where(keeps, width, np.minimum(narrow, width)),
        requested=requested,
        maximum=max_nodes(snapshot)[rows],
        rule=rule,
        serial=serial,
        left_s=left_s,
        back_s=np.maximum(back_s, calm_s),
        resizable=~adapting & (calm_s <= now_s),
    )


def _heads_first(
    running: RunningTable, rows: NDArray[np.intp], width: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32], bool]:
    """The nodes of some jobs, each with its head, which is never given back, first.

    Returns:
        Where those of each begin, the nodes, and whether those of each are still ascending.
    """
    indptr = np.concatenate(([0], width.cumsum()))
    nodes = running.nodes
    if len(nodes) > indptr[-1]:
        first = running.indptr[rows]
        nodes = nodes[np.arange(indptr[-1]) + (first - indptr[:-1]).repeat(width)]
    head = heads(running)[rows]
    if (nodes[indptr[:-1]] == head).all():
        rises = nodes[1:] > nodes[:-1]
        rises[indptr[1:-1] - 1] = True
        return indptr, nodes, bool(rises.all())
    owner = np.arange(len(rows)).repeat(width)
    at_head = nodes == head[owner]
    if (np.bincount(owner[at_head], minlength=len(rows)) == 1).all():
        return indptr, nodes[np.argsort(2 * owner + ~at_head, kind="stable")], False
    sets = [
        np.concatenate((head[at : at + 1].astype(np.int32), own[own != head[at]]))
        for at, own in enumerate(np.split(nodes, indptr[1:-1]))
    ]
    sizes = np.array([len(own) for own in sets], dtype=np.int64)
    return np.concatenate(([0], sizes.cumsum())), np.concatenate(sets), False


def allowed(rule: NDArray[np.int8], minimum: NDArray[np.int64]) -> NDArray[np.int64]:
    """The smallest widths of at least the given numbers of nodes that the rules allow."""
    found = np.maximum(minimum, 1)
    for at in np.flatnonzero(rule != WidthRule.ANY).tolist():
        found[at] = RULES[int(rule[at])].next_width(int(found[at]))
    return found


def max_nodes(snapshot: Snapshot) -> NDArray[np.int64]:
    """(n_running,) the maximum number of nodes by each job's bounds and its partition."""
    running = snapshot.running
    bounds = np.array([one.max_nodes or MAX_COUNT for one in snapshot.partitions] + [MAX_COUNT])
    maximum = np.minimum(bounds[running.partition], len(snapshot.nodes))
    found: NDArray[np.int64] = np.minimum(running.max_nodes, maximum)
    return found


def _bases(
    rule: NDArray[np.int8],
    minimum: NDArray[np.int64],
    requested: NDArray[np.int64],
    serial: NDArray[np.float64],
    stretch: float,
) -> NDArray[np.int64]:
    """The narrowest widths that jobs and `stretch` allow."""
    nodes = np.maximum(requested, 1)
    fewest = widths_for(serial, speeds(serial, nodes) / stretch)
    return allowed(rule, np.maximum(np.minimum(fewest, nodes), minimum))


def at_bases(jobs: ElasticJobs, ends_s: NDArray[np.int64]) -> Resizes:
    """All lent nodes given back as soon as possible (rules 2 and 3).

    Args:
        jobs: running ones.
        ends_s: (n,) of each, see `base_ends_s`.
    """
    return given_back(jobs, jobs.is_lent, jobs.back_s, ends_s, _LENT)


def given_back(
    jobs: ElasticJobs,
    which: NDArray[np.bool_],
    by_s: NDArray[np.int64],
    ends_s: NDArray[np.int64],
    why: str,
) -> Resizes:
    """Some of the jobs at their bases.

    Args:
        jobs: running ones.
        which: (n,) these.
        by_s: (n,) when the change of each is complete.
        ends_s: (n,) when each ends then.
    """
    if not which.any():
        return NO_RESIZES
    indptr, nodes = jobs.nodes_at_bases(which)
    rows = jobs.row[which].astype(np.int32)
    return Resizes(rows, by_s[which], indptr, nodes, (why,) * len(rows), ends_s[which])


def base_ends_s(jobs: ElasticJobs, now_s: int, adaptation_s: int) -> NDArray[np.int64]:
    """(n,) the latest ends of jobs that give back lent nodes as soon as they can."""
    wide_s = jobs.back_s - adaptation_s - now_s
    as_now = ~jobs.is_lent | (jobs.left_s <= wide_s)
    part = 1 - wide_s / np.maximum(jobs.left_s, 1)
    narrow_s = np.ceil(jobs.lasts_s(jobs.base) * np.where(as_now, 0.0, part)).astype(np.int64)
    return np.where(as_now, now_s + jobs.left_s, jobs.back_s + narrow_s)


_LENT = "nodes beyond its base are lent"


def start_widths_at_bases(
    snapshot: Snapshot, stretch: float, learnt: Learnt | None = None
) -> StartWidths:
    """The waiting moldable jobs at their bases (rule 1); the arguments are as of `elastic_jobs`."""
    jobs = snapshot.jobs
    rows = np.flatnonzero((jobs.max_start > 0) & (jobs.time_limit_s > 0))
    if not len(rows):
        return NO_START_WIDTHS
    requested, limit_s = jobs.min_nodes[rows], jobs.time_limit_s[rows]
    serial = np.full(len(rows), UNKNOWN_SERIAL)
    if learnt is not None and learnt.known:
        serial = learnt_serials(learnt, jobs.user[rows], jobs.name[rows])
    minimum = np.maximum(jobs.min_start[rows], _min_in_time(snapshot, rows))
    base = _bases(jobs.width_rule[rows], minimum, requested, serial, stretch)
    narrow = base < requested
    return StartWidths(rows[narrow], base[narrow], -(-limit_s * requested // base)[narrow])


def _min_in_time(snapshot: Snapshot, rows: NDArray[np.intp]) -> NDArray[np.int64]:
    """The fewest nodes on which jobs end within the limits of all their partitions."""
    jobs = snapshot.jobs
    bound = [one.max_time_s for one in snapshot.partitions]
    if not any(bound):
        return np.ones(len(rows), dtype=np.int64)
    limit_s = np.maximum(jobs.kill_limit_s[rows], jobs.time_limit_s[rows])
    max_s = np.array(
        [min((bound[at] for at in jobs.partitions[row] if bound[at]), default=0) for row in rows]
    )
    fewest = -(-limit_s * jobs.min_nodes[rows] // np.maximum(max_s, 1))
    found: NDArray[np.int64] = np.where(max_s > 0, fewest, 1)
    return found
