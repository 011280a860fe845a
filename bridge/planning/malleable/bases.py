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
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import WidthRule
from bridge.model.moulds import Moulds
from bridge.model.resizes import Resizes
from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.expand_shrink import LEAST_LEFT
from bridge.planning.malleable.speed import UNKNOWN_SERIAL, serial_fraction, speed, width_for
from bridge.planning.malleable.widths import most_allowed


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

    def lasts_s(self, width: int) -> float:
        """How long it takes from now on at another width."""
        return self.left_s * speed(self.serial, len(self.nodes)) / speed(self.serial, width)


def elastic_jobs(snapshot: Snapshot, costs: Costs) -> list[Elastic]:
    """The running malleable jobs, in order of their rows."""
    running = snapshot.running
    may = (running.max_nodes > 0) & ~running.releasing & (np.diff(running.indptr) > 0)
    return [_elastic(snapshot, row, costs) for row in np.flatnonzero(may).tolist()]


def _elastic(snapshot: Snapshot, row: int, costs: Costs) -> Elastic:
    running, now_s = snapshot.running, snapshot.now_s
    own = running.nodes[running.indptr[row] : running.indptr[row + 1]]
    width, rule = len(own), WidthRule(int(running.width_rule[row]))
    serial = serial_fraction(float(running.mtct[row]), width)
    left_s = max(int(running.end_s[row]) - now_s, 0)
    adapting, changed_s = bool(running.adapting[row]), int(running.resized_s[row])
    asked = int(running.requested_nodes[row]) or width
    base = width
    if left_s > LEAST_LEFT * costs.adaptation_s:
        base = _base(rule, int(running.min_nodes[row]), asked, serial, costs.stretch)
        base = base if base < width else width
    back_s = now_s + costs.adaptation_s * (2 if adapting else 1)
    if changed_s:
        back_s = max(back_s, changed_s + costs.between_s)
    return Elastic(
        row=row,
        nodes=_head_first(own, running.head_of(row)),
        base=base,
        asked=asked,
        most=most_allowed(snapshot, row),
        rule=rule,
        serial=serial,
        left_s=left_s,
        back_s=back_s,
        resizable=not adapting and now_s >= changed_s + (costs.between_s if changed_s else 0),
    )


def _head_first(nodes: NDArray[np.int32], head: int) -> NDArray[np.int32]:
    """The nodes with the one that is never given back in front."""
    if nodes[0] == head:
        return nodes
    return np.concatenate((np.array([head], dtype=np.int32), nodes[nodes != head]))


def _base(rule: WidthRule, least: int, asked: int, serial: float, stretch: float) -> int:
    """The narrowest allowed width of which `stretch` allows; `asked` at most."""
    fewest = width_for(serial, speed(serial, asked) / stretch)
    return min(rule.next_width(max(fewest, least, 1)), asked)


def at_bases(jobs: Sequence[Elastic], now_s: int, adaptation_s: int) -> Resizes:
    """All lent nodes given back as soon as possible (rules 2 and 3)."""
    rows = [(job.row, job.back_s, job.nodes[: job.base], _LENT) for job in jobs if len(job.lent)]
    return Resizes.of(
        rows, {job.row: base_end_s(job, now_s, adaptation_s) for job in jobs if len(job.lent)}
    )


def base_end_s(job: Elastic, now_s: int, adaptation_s: int) -> int:
    """When a job ends at the latest that gives back what it was lent as soon as it can."""
    wide_s = job.back_s - adaptation_s - now_s
    if not len(job.lent) or job.left_s <= wide_s:
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
