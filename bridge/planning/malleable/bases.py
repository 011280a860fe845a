# SPDX-License-Identifier: Apache-2.0
"""The widths that malleable jobs are planned with.

Words
    asked       the nodes that a job requests; of a running job that states none, those it has.
    base        the fewest nodes that a job allows on which it takes at most `stretch` times as long
                as on its requested nodes.
    lent nodes  those of a running job beyond its base.

Rules
    1. A waiting job is planned on its base, for as long as it would take there if its speed-up were
       perfect, and on so many nodes that its partitions allow that time. So the planned time is
       long enough whatever the job's speed-up.
    2. A running job is planned to give back its lent nodes as soon as it can, and to continue on
       its base. How long that takes follows from its measured communication, or else from what was
       learnt of earlier jobs.
    3. Lent nodes come back after the duration of a change, but not within `between_s` after the
       job's last change.
    4. A job that ends within `LEAST_LEFT` changes keeps its nodes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import WidthRule
from bridge.model.job_columns import MAX_COUNT
from bridge.model.learnt import Learnt
from bridge.model.resizes import Resizes, heads
from bridge.model.snapshot import Snapshot
from bridge.model.start_widths import NO_START_WIDTHS, StartWidths
from bridge.planning.malleable.expand_shrink import LEAST_LEFT
from bridge.planning.malleable.observing import learnt_serials
from bridge.planning.malleable.speed import (
    UNKNOWN_SERIAL,
    serial_fractions,
    speed,
    speeds,
    widths_for,
)


@dataclass(frozen=True)
class Costs:
    """What a change of width costs, and how nodes are weighed against each other.

    Attributes:
        adaptation_s: how long a change takes.
        between_s: least time between two changes of a job.
        stretch: see Words.
        fairness: by how much jobs that have less than they asked for go before others.
    """

    adaptation_s: int
    between_s: int
    stretch: float
    fairness: float


@dataclass(frozen=True, slots=True)
class Elastic:
    """A running malleable job.

    Attributes:
        row: of `Snapshot.running`.
        nodes: what it holds; its first `base` ones are those that it keeps.
        base: see Words; its width, if it keeps its nodes (rule 4).
        asked: see Words.
        most: the most nodes that it allows.
        rule: which numbers of nodes it allows up to that.
        serial: its serial fraction.
        left_s: how long it takes from now on at its width, at most.
        back_s: when lent nodes can be back.
        resizable: it is not adapting, and its last change was long enough ago.
    """

    row: int
    nodes: NDArray[np.int32]
    base: int
    asked: int
    most: int
    rule: WidthRule
    serial: float
    left_s: int
    back_s: int
    resizable: bool

    @property
    def lent(self) -> NDArray[np.int32]:
        """The nodes beyond its base."""
        return self.nodes[self.base :]

    @property
    def is_lent(self) -> bool:
        """Whether it has nodes beyond its base."""
        return len(self.nodes) > self.base

    def lasts_s(self, width: int) -> float:
        """How long it takes from now on at another width."""
        return self.left_s * speed(self.serial, len(self.nodes)) / speed(self.serial, width)


def elastic_jobs(snapshot: Snapshot, costs: Costs, learnt: Learnt | None = None) -> list[Elastic]:
    """The running malleable jobs, in order of their rows.

    Args:
        snapshot: the world.
        costs: of changes.
        learnt: of speed-ups (`bridge.planning.malleable.observing`), for jobs that are not
            measured; None: nothing.
    """
    running, now_s = snapshot.running, snapshot.now_s
    width = np.diff(running.indptr)
    may = (running.max_nodes > 0) & ~running.releasing & (width > 0)
    rows = np.flatnonzero(may)
    requested = running.requested_nodes
    asked = np.where(requested > 0, requested, width)
    left_s = np.maximum(running.end_s - now_s, 0)
    calm_s = np.where(running.resized_s > 0, running.resized_s + costs.between_s, 0)
    back_s = now_s + costs.adaptation_s * np.where(running.adapting, 2, 1)
    serial = serial_fractions(running.mtct, width)
    unknown = rows[(running.mtct[rows] < 0) | (width[rows] < 2)]
    if learnt is not None and len(unknown) and learnt.known:
        serial[unknown] = learnt_serials(learnt, running.user[unknown], running.name[unknown])
    base = np.where(
        left_s > LEAST_LEFT * costs.adaptation_s,
        np.minimum(
            _bases(running.width_rule, running.min_nodes, asked, serial, costs.stretch), width
        ),
        width,
    )
    columns = (
        running.indptr[:-1], running.indptr[1:], base, asked, most_nodes(snapshot),
        running.width_rule, serial, left_s, np.maximum(back_s, calm_s),
        ~running.adapting & (calm_s <= now_s),
        heads(running),
    )  # fmt: skip
    found = []
    for row, first, end, narrow, asks, most, code, part, left, back, resizable, head in zip(
        rows.tolist(), *(column[rows].tolist() for column in columns), strict=True
    ):
        nodes = _head_first(running.nodes[first:end], head)
        found.append(
            Elastic(row, nodes, narrow, asks, most, RULES[code], part, left, back, resizable)
        )
    return found


RULES: Final = {int(rule): rule for rule in WidthRule}


def allowed(rule: NDArray[np.int8], least: NDArray[np.int64]) -> NDArray[np.int64]:
    """The least widths of at least so many nodes that the rules allow."""
    found = np.maximum(least, 1)
    for at in np.flatnonzero(rule != WidthRule.ANY).tolist():
        found[at] = RULES[int(rule[at])].next_width(int(found[at]))
    return found


def most_nodes(snapshot: Snapshot) -> NDArray[np.int64]:
    """(n_running,) the most nodes within each job's bounds and its partition."""
    running = snapshot.running
    bounds = np.array([one.max_nodes or MAX_COUNT for one in snapshot.partitions] + [MAX_COUNT])
    most = np.minimum(bounds[running.partition], len(snapshot.nodes))
    found: NDArray[np.int64] = np.minimum(running.max_nodes, most)
    return found


def _head_first(nodes: NDArray[np.int32], head: int) -> NDArray[np.int32]:
    """The nodes with the one that is never given back in front."""
    if nodes[0] == head:
        return nodes
    return np.concatenate((np.array([head], dtype=np.int32), nodes[nodes != head]))


def _bases(
    rule: NDArray[np.int8],
    least: NDArray[np.int64],
    asked: NDArray[np.int64],
    serial: NDArray[np.float64],
    stretch: float,
) -> NDArray[np.int64]:
    """The narrowest widths that jobs and `stretch` allow."""
    nodes = np.maximum(asked, 1)
    fewest = widths_for(serial, speeds(serial, nodes) / stretch)
    return allowed(rule, np.maximum(np.minimum(fewest, nodes), least))


def at_bases(jobs: Sequence[Elastic], ends_s: Mapping[int, int]) -> Resizes:
    """All lent nodes given back as soon as possible (rules 2 and 3).

    Args:
        jobs: running ones.
        ends_s: row of each to `base_end_s`.
    """
    rows = [(job.row, job.back_s, job.nodes[: job.base], _LENT) for job in jobs if job.is_lent]
    return Resizes.of(rows, ends_s)


def base_end_s(job: Elastic, now_s: int, adaptation_s: int) -> int:
    """When a job ends at the latest that gives back what it was lent as soon as it can."""
    wide_s = job.back_s - adaptation_s - now_s
    if not job.is_lent or job.left_s <= wide_s:
        return now_s + job.left_s
    return job.back_s + math.ceil(job.lasts_s(job.base) * (1 - wide_s / job.left_s))


_LENT = "nodes beyond its base are lent"


def start_widths_at_bases(
    snapshot: Snapshot, stretch: float, learnt: Learnt | None = None
) -> StartWidths:
    """The waiting moldable jobs at their bases (rule 1); the arguments are as of `elastic_jobs`."""
    jobs = snapshot.jobs
    rows = np.flatnonzero((jobs.most_start > 0) & (jobs.time_limit_s > 0))
    if not len(rows):
        return NO_START_WIDTHS
    asked, limit_s = jobs.min_nodes[rows], jobs.time_limit_s[rows]
    serial = np.full(len(rows), UNKNOWN_SERIAL)
    if learnt is not None and learnt.known:
        serial = learnt_serials(learnt, jobs.user[rows], jobs.name[rows])
    least = np.maximum(jobs.least_start[rows], _least_in_time(snapshot, rows))
    base = _bases(jobs.width_rule[rows], least, asked, serial, stretch)
    narrow = base < asked
    return StartWidths(rows[narrow], base[narrow], -(-limit_s * asked // base)[narrow])


def _least_in_time(snapshot: Snapshot, rows: NDArray[np.intp]) -> NDArray[np.int64]:
    """The fewest nodes on which jobs end within what all their partitions allow."""
    jobs = snapshot.jobs
    bound = [one.max_time_s for one in snapshot.partitions]
    if not any(bound):
        return np.ones(len(rows), dtype=np.int64)
    limit_s = np.maximum(jobs.kill_limit_s[rows], jobs.time_limit_s[rows])
    most_s = np.array(
        [min((bound[at] for at in jobs.partitions[row] if bound[at]), default=0) for row in rows]
    )
    fewest = -(-limit_s * jobs.min_nodes[rows] // np.maximum(most_s, 1))
    found: NDArray[np.int64] = np.where(most_s > 0, fewest, 1)
    return found
