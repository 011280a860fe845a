# SPDX-License-Identifier: Apache-2.0
"""An oracle for Book: plain Python, second by second, every set tried, no cleverness.

Time runs from 0 to HORIZON; what a real book would hold for ever is beyond it. Who is on a node is
a list per second; every start is tried in turn; chunks are placed in every way.
"""

from functools import cache
from typing import NamedTuple

HORIZON = 120
FREE, PACK, SCATTER = range(3)
BOTH, COUNT, CHECK = range(3)


class Group(NamedTuple):
    count: int
    want: tuple[int, ...]
    cls: int
    maximum: int  # on a node; 0: no limit


class Request(NamedTuple):
    groups: tuple[Group, ...]
    arrangement: int
    exclusive: bool


class Term(NamedTuple):
    constraint: int
    amount: int
    mode: int


class Held(NamedTuple):
    request: Request
    start: int
    length: int
    terms: tuple[Term, ...]
    placed: dict[tuple[int, int], int]  # (node, group) -> chunks

    @property
    def end(self) -> int:
        return self.start + self.length


class NaiveBook:
    def __init__(self, capacity, protections=()):
        self.capacity = [tuple(row) for row in capacity]
        self.protections = protections  # (resource, keep rows)
        self.classes: list[set[int]] = []
        self.closed: list[tuple[int, int, int, set[int]]] = []
        self.constraints: list[list[int]] = []  # per second
        self.held: dict[int, Held] = {}

    def amount_used(self, constraint: int, second: int) -> int:
        return sum(
            term.amount
            for held in self.held.values()
            if held.start <= second < held.end
            for term in held.terms
            if term.constraint == constraint and term.mode != CHECK
        )

    def constraints_hold(self, terms, start, length) -> bool:
        return all(
            self.amount_used(term.constraint, second) + term.amount
            <= self.constraints[term.constraint][second]
            for term in terms
            if term.mode != COUNT
            for second in range(start, start + length)
        )

    def chunks_at(self, node, second):
        """(want, chunks, exclusive) of everybody there."""
        return [
            (held.request.groups[group].want, chunks, held.request.exclusive)
            for held in self.held.values()
            if held.start <= second < held.end
            for (where, group), chunks in held.placed.items()
            if where == node
        ]

    def free(self, node, second):
        """What is left, per resource and per (protection, resource); None under a whole holder."""
        left = list(self.capacity[node])
        kept = [
            [
                max(0, amount - keep[node][r]) if keep[node][r] and r != resource else 10**9
                for r, amount in enumerate(left)
            ]
            for resource, keep in self.protections
        ]
        for want, chunks, exclusive in self.chunks_at(node, second):
            if exclusive:
                return None
            for r, amount in enumerate(want):
                left[r] -= chunks * amount
            for (resource, _), row in zip(self.protections, kept, strict=True):
                if want[resource] == 0:
                    for r, amount in enumerate(want):
                        row[r] -= chunks * amount
        return left, kept

    def fits(self, request, node, chunks, start, length) -> bool:
        """Whether a node holds so many chunks of each group all the time."""
        if not any(chunks):
            return True
        if not any(self.capacity[node]):
            return False
        if request.arrangement == SCATTER and sum(chunks) > 1:
            return False
        for n, group in zip(chunks, request.groups, strict=True):
            if n and node not in self.classes[group.cls]:
                return False
            if n and group.maximum and n > group.maximum:
                return False
            if n and any(
                cls == group.cls and node in nodes and a < start + length and start < b
                for cls, a, b, nodes in self.closed
            ):
                return False
        for second in range(start, start + length):
            if request.exclusive:
                if self.chunks_at(node, second):
                    return False
                left = list(self.capacity[node])
                for resource, keep in self.protections:
                    others = any(k and r != resource for r, k in enumerate(keep[node]))
                    # every chunk there must want it
                    if (
                        others
                        and any(
                            n and g.want[resource] == 0
                            for n, g in zip(chunks, request.groups, strict=True)
                        )
                        and (
                            request.arrangement != PACK
                            or not any(g.want[resource] for g in request.groups)
                        )
                    ):
                        return False
                kept = []
            else:
                free = self.free(node, second)
                if free is None:
                    return False
                left, kept = free
            for r in range(len(left)):
                need = sum(n * g.want[r] for n, g in zip(chunks, request.groups, strict=True))
                if need > 0 and need > left[r]:
                    return False
                for (resource, _), row in zip(self.protections, kept, strict=False):
                    need = sum(
                        n * g.want[r]
                        for n, g in zip(chunks, request.groups, strict=True)
                        if g.want[resource] == 0
                    )
                    if need > 0 and need > row[r]:
                        return False
        return True

    def feasible(self, request, start, length) -> bool:
        """Whether some mapping exists: all chunk counts on all nodes are tried."""
        counts = tuple(group.count for group in request.groups)
        if request.arrangement == PACK:
            return any(
                self.fits(request, node, counts, start, length)
                for node in range(len(self.capacity))
            )

        def ways(left):
            if not left:
                yield ()
                return
            for n in range(left[0] + 1):
                for rest in ways(left[1:]):
                    yield (n, *rest)

        on_node = [
            [way for way in ways(counts) if self.fits(request, node, way, start, length)]
            for node in range(len(self.capacity))
        ]

        @cache
        def placeable(node, missing) -> bool:
            if not any(missing):
                return True
            if node == len(on_node):
                return False
            return any(
                placeable(node + 1, tuple(a - b for a, b in zip(missing, way, strict=True)))
                for way in on_node[node]
                if all(a >= b for a, b in zip(missing, way, strict=True))
            )

        return placeable(0, counts)

    def can_start(self, request, start, length, terms) -> bool:
        return self.constraints_hold(terms, start, length) and self.feasible(request, start, length)

    def find(self, request, length, terms, earliest, latest, last=False) -> int | None:
        starts = range(max(0, earliest), min(latest, HORIZON - length) + 1)
        for start in reversed(starts) if last else starts:
            if self.can_start(request, start, length, terms):
                return start
        return None

    def valid(self, held: Held) -> bool:
        """Whether a mapping is one of the request's that fits beside all others."""
        request = held.request
        rows: dict[int, list[int]] = {}
        for (node, group), chunks in held.placed.items():
            rows.setdefault(node, [0] * len(request.groups))[group] = chunks
        if request.arrangement == PACK and len(rows) != 1:
            return False
        totals = [sum(row[g] for row in rows.values()) for g in range(len(request.groups))]
        return totals == [group.count for group in request.groups] and all(
            self.fits(request, node, row, held.start, held.length) for node, row in rows.items()
        )
