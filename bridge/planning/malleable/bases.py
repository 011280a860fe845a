# SPDX-License-Identifier: Apache-2.0
"""The widths that malleable jobs are planned with.

Words
    asked       the nodes that a job asks for; of a running job that does not say, what it has.
    base        the fewest nodes that a job allows on which it takes at most `stretch` times as long
                as on those it asks for.
    lent nodes  those of a running job beyond its base.

Rules
    1. A waiting job is planned on its base, for as long as it would take there if its speed-up were
       perfect. No guess about a job that has not run yet can make that too short.
    2. A running job is planned to give back what it was lent as soon as it can, and to go on on its
       base. How long that takes follows from what it communicates.
    3. Lent nodes come back after the duration of a change, but not within `between_s` after the
       job's last change.
    4. A job that ends within `LEAST_LEFT` changes keeps its nodes.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import WidthRule
from bridge.model.job_columns import MAX_COUNT
from bridge.model.moulds import Moulds
from bridge.model.resizes import Resizes, heads
from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.expand_shrink import LEAST_LEFT
from bridge.planning.malleable.speed import UNKNOWN_SERIAL, serial_fraction, speed, width_for


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


def elastic_jobs(snapshot: Snapshot, costs: Costs) -> list[Elastic]:
    """The running malleable jobs, in order of their rows."""
    running, now_s = snapshot.running, snapshot.now_s
    width = np.diff(running.indptr)
    may = (running.max_nodes > 0) & ~running.releasing & (width > 0)
    rows = np.flatnonzero(may)
    asked = np.where(running.requested_nodes > 0, running.requested_nodes, width)
    left_s = np.maximum(running.end_s - now_s, 0)
    changed = running.resized_s > 0
    back_s = now_s + costs.adaptation_s * np.where(running.adapting, 2, 1)
    calm_s = np.where(changed, running.resized_s + costs.between_s, 0)
    columns = (
        running.indptr[:-1], running.indptr[1:], asked, running.min_nodes, _most(snapshot),
        running.width_rule, running.mtct, left_s, np.maximum(back_s, calm_s),
        ~running.adapting & (calm_s <= now_s), heads(running),
    )  # fmt: skip
    found = []
    for row, first, end, asks, least, most, code, mtct, left, back, resizable, head in zip(
        rows.tolist(), *(column[rows].tolist() for column in columns), strict=True
    ):
        serial, rule = serial_fraction(mtct, end - first), _RULES[code]
        base = end - first
        if left > LEAST_LEFT * costs.adaptation_s:
            base = min(_base(rule, least, asks, serial, costs.stretch), base)
        nodes = _head_first(running.nodes[first:end], head)
        found.append(Elastic(row, nodes, base, asks, most, rule, serial, left, back, resizable))
    return found


_RULES = {int(rule): rule for rule in WidthRule}


def _most(snapshot: Snapshot) -> NDArray[np.int64]:
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


def _base(rule: WidthRule, least: int, asked: int, serial: float, stretch: float) -> int:
    """The narrowest width that a job and `stretch` allow."""
    fewest = width_for(serial, speed(serial, asked) / stretch)
    return rule.next_width(max(min(fewest, asked), least, 1))


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


def moulds_at_bases(snapshot: Snapshot, stretch: float) -> Moulds:
    """The waiting moldable jobs at their bases (rule 1)."""
    jobs, found = snapshot.jobs, []
    for row in np.flatnonzero(jobs.most_start > 0).tolist():
        asked, limit_s = int(jobs.min_nodes[row]), int(jobs.time_limit_s[row])
        rule = WidthRule(int(jobs.width_rule[row]))
        base = _base(rule, int(jobs.least_start[row]), asked, UNKNOWN_SERIAL, stretch)
        if base < asked and limit_s > 0:
            found.append((row, base, -(-limit_s * asked // base)))
    return Moulds.of(found)
