# SPDX-License-Identifier: Apache-2.0
"""A window of jobs as numbers, for constraint programming models: an instance.

Terms
    unit        resources that a job takes together from one node: one node of a job without tasks,
                one task, or one chunk. A job's units are in groups of identical ones.
    used        resources of a node that are not available to the window, over time.
    place       the greedy plan's start of a job and node of each of its units.

`bridge.papers.dispatch.window` makes instances of cycles. All times count from now.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from bridge.units import NEVER

Span = tuple[int, int, tuple[int, ...]]
"""Begin, end, amounts."""
ALL = NEVER >> 1
"""An amount that is all there is."""


@dataclass(frozen=True, slots=True)
class ResourceUnit:
    """Resources that a job takes together from one node.

    Attributes:
        group: the group of its layout; units of one group are identical.
        want: (K,) amounts of the instance's resources.
        nodes: ascending positions in the instance's nodes that hold it when nothing is used.
    """

    group: int
    want: tuple[int, ...]
    nodes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class WindowJob:
    """One job of an instance; times count from now.

    Attributes:
        submit_s: <= 0 mostly.
        release_s: earliest start.
        length_s: expected, >= 1.
        units: at least one; those of a group are adjacent.
        scatter: at most one unit on a node.
        max_per_node: maximum number of units of each group on a node; 0: no bound.
        place_s: greedy start.
        place: node of each unit there, ascending within a group.
    """

    submit_s: int
    release_s: int
    length_s: int
    units: tuple[ResourceUnit, ...]
    scatter: bool
    max_per_node: tuple[int, ...]
    place_s: int
    place: tuple[int, ...]

    @property
    def slowdown_now(self) -> float:
        """The slowdown if it started now: the paper's static priority."""
        return (self.length_s - self.submit_s) / self.length_s

    def demand(self) -> NDArray[np.int64]:
        """(K,) of all units together."""
        total: NDArray[np.int64] = np.array([u.want for u in self.units], dtype=np.int64).sum(0)
        return total


@dataclass(frozen=True, slots=True)
class Unavailable:
    """An amount that is not available over [start_s, end_s); NEVER: permanently."""

    start_s: int
    end_s: int
    amount: tuple[int, ...]


@dataclass(frozen=True)
class Instance:
    """A window of jobs and the nodes they may use.

    Attributes:
        jobs: in order.
        resources: (K,) names; at least one.
        capacity: (N, K) int64.
        used: for each node, ascending and disjoint; never more than the capacity.
        rank: (N,) nodes of lower rank are preferred.
    """

    jobs: tuple[WindowJob, ...]
    resources: tuple[str, ...]
    capacity: NDArray[np.int64]
    used: tuple[tuple[Unavailable, ...], ...]
    rank: NDArray[np.int64]

    @cached_property
    def n_units(self) -> int:
        """The units of all jobs."""
        return sum(len(job.units) for job in self.jobs)

    @cached_property
    def horizon_s(self) -> int:
        """The end of all jobs if they run one after the other after all known ends."""
        ends = [u.end_s for used in self.used for u in used if u.end_s < NEVER]
        free_s = max([0, *ends, *(job.release_s for job in self.jobs)])
        worst_s = free_s + sum(job.length_s for job in self.jobs)
        return max(worst_s, *(job.place_s + job.length_s for job in self.jobs))

    def pooled(self) -> tuple[NDArray[np.int64], tuple[Unavailable, ...]]:
        """The nodes merged into one: (K,) capacity, and its use over time."""
        capacity: NDArray[np.int64] = self.capacity.sum(axis=0)
        spans = Counter((u.start_s, u.end_s, u.amount) for used in self.used for u in used)
        each = [(a, b, tuple(n * x for x in amount)) for (a, b, amount), n in spans.items()]
        return capacity, summed(each, capacity.tolist())

    def without_spares(self, maximum: int) -> tuple["Instance", NDArray[np.int64]]:
        """Drops nodes: first those that no solution needs, then those that become free last.

        Nodes are equal if they have the same capacity, suit the same units and are used at the same
        times. As many of equal nodes are kept as there are units that could use them.

        Args:
            maximum: nodes to keep, unless the greedy placement needs more.

        Returns:
            The smaller instance, and the positions of its nodes in this one.
        """
        serves = self.served()
        alike: dict[tuple[object, ...], list[int]] = {}
        for node in range(len(self.used)):
            key = (self.capacity[node].tobytes(), self.used[node], serves[node])
            alike.setdefault(key, []).append(node)
        taken = {node for job in self.jobs for node in job.place}
        keep: list[int] = []
        for nodes in alike.values():
            need = sum(len(self.jobs[i].units) for i in {i for i, _ in serves[nodes[0]]})
            nodes.sort(key=lambda node: (node not in taken, int(self.rank[node]), node))
            keep.extend(nodes[:need])
        if len(keep) > maximum:
            free_s = [max((u.end_s for u in used), default=0) for used in self.used]
            keep.sort(key=lambda node: (node not in taken, free_s[node], int(self.rank[node])))
            del keep[max(maximum, len(taken)) :]
        keep.sort()
        return self._only(keep), np.array(keep, dtype=np.int64)

    def served(self) -> list[tuple[tuple[int, int], ...]]:
        """For each node the units that fit on it, as job and the first of equal ones."""
        members: list[list[tuple[int, int]]] = [[] for _ in self.used]
        for i, job in enumerate(self.jobs):
            for j, unit in enumerate(job.units):
                if not j or unit.group != job.units[j - 1].group:
                    for node in unit.nodes:
                        members[node].append((i, j))
        known: dict[tuple[tuple[int, int], ...], tuple[tuple[int, int], ...]] = {}
        return [known.setdefault(some, some) for some in map(tuple, members)]

    def coarsened(self) -> "Instance":
        """Merges differences of use that no unit can tell apart.

        A rest of a resource that is too small for any unit of a node counts as used. While this
        holds for a resource that all units request, only the first such resource counts as used,
        completely, and the others as in the following piece: so there are fewer pieces.
        """
        known: dict[int, tuple[NDArray[np.int64], list[int]]] = {}
        used = []
        for node, (pieces, serves) in enumerate(zip(self.used, self.served(), strict=True)):
            if id(serves) not in known:
                wants = np.array([self.jobs[i].units[j].want for i, j in serves], dtype=np.int64)
                wants = wants.reshape(len(serves), len(self.resources))
                minimum = np.where(wants > 0, wants, NEVER).min(axis=0, initial=NEVER)
                known[id(serves)] = minimum, np.flatnonzero((wants > 0).all(axis=0)).tolist()
            used.append(_coarse(pieces, self.capacity[node], *known[id(serves)]))
        return replace(self, used=tuple(used))

    def _only(self, keep: list[int]) -> "Instance":
        at = {node: position for position, node in enumerate(keep)}
        moved: dict[int, tuple[int, ...]] = {}

        def nodes_of(unit: ResourceUnit) -> tuple[int, ...]:
            if id(unit.nodes) not in moved:
                moved[id(unit.nodes)] = tuple(at[node] for node in unit.nodes if node in at)
            return moved[id(unit.nodes)]

        return replace(
            self,
            jobs=tuple(
                replace(
                    job,
                    units=tuple(replace(unit, nodes=nodes_of(unit)) for unit in job.units),
                    place=tuple(at[node] for node in job.place),
                )
                for job in self.jobs
            ),
            capacity=self.capacity[keep],
            used=tuple(self.used[node] for node in keep),
            rank=self.rank[keep],
        )


def summed(spans: Sequence[Span], maximum: Sequence[int]) -> tuple[Unavailable, ...]:
    """Sums of amounts over time, at most `maximum`; pieces without any are left out."""
    change: dict[int, list[int]] = {}
    for start_s, end_s, amount in spans:
        up = change.setdefault(start_s, [0] * len(maximum))
        down = change.setdefault(end_s, [0] * len(maximum))
        for r, number in enumerate(amount):
            bounded = min(number, ALL)
            up[r] += bounded
            down[r] -= bounded
    pieces: list[Unavailable] = []
    level = [0] * len(maximum)
    instants = sorted(change)
    for start_s, end_s in pairwise(instants):
        level = [a + b for a, b in zip(level, change[start_s], strict=True)]
        amount = tuple(map(min, level, maximum))
        if not any(amount):
            continue
        if pieces and pieces[-1].end_s == start_s and pieces[-1].amount == amount:
            pieces[-1] = Unavailable(pieces[-1].start_s, end_s, amount)
        else:
            pieces.append(Unavailable(start_s, end_s, amount))
    return tuple(pieces)


def _coarse(
    pieces: tuple[Unavailable, ...],
    capacity: NDArray[np.int64],
    minimum: NDArray[np.int64],
    all_: list[int],
) -> tuple[Unavailable, ...]:
    """See `Instance.coarsened`.

    Args:
        capacity: (K,) of it.
        minimum: (K,) the minimum that any unit requests.
        all_: resources that all units request.
    """
    if not pieces or not all_:
        return pieces
    first = all_[0]
    found: list[Unavailable] = []
    after: tuple[int, ...] = (0,) * len(capacity)
    after_s = NEVER
    has, smallest = capacity.tolist(), minimum.tolist()
    for piece in reversed(pieces):
        if piece.end_s != after_s:
            after = (0,) * len(has)
        amount = [
            maximum if maximum - now < one else now
            for now, maximum, one in zip(piece.amount, has, smallest, strict=True)
        ]
        if any(amount[r] == has[r] for r in all_):
            amount = list(after)
            amount[first] = has[first]
        after, after_s = tuple(amount), piece.start_s
        if found and found[-1].start_s == piece.end_s and found[-1].amount == after:
            found[-1] = Unavailable(piece.start_s, found[-1].end_s, after)
        else:
            found.append(Unavailable(piece.start_s, piece.end_s, after))
    return tuple(reversed(found))
