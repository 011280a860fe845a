# SPDX-License-Identifier: Apache-2.0
"""What a layout of a job is; `bridge.planning.queue.layouts` finds those of each.

Terms
    group       equal chunks: a class of nodes, a number of chunks, the amounts of each.
    layout      one option: groups, how they share nodes, how many tasks each chunk stands for.
"""

from dataclasses import dataclass, field

from bridge.model.resources import Arrangement


@dataclass(frozen=True, slots=True)
class Group:
    """Equal chunks.

    Attributes:
        class_: class of `Eligibility`.
        count: chunks.
        want: (R,) amounts of each chunk.
        max_per_node: chunks of this group on one node; 0: no bound.
        tasks: number of tasks in each chunk; 0 for jobs without tasks.
        kind: position in the job's `ChunkRequest.kinds`; -1: the job does not request chunks.
    """

    class_: int
    count: int
    want: tuple[int, ...]
    max_per_node: int = 0
    tasks: int = 0
    kind: int = -1

    @property
    def asks(self) -> tuple[object, ...]:
        """All fields but the class."""
        return (self.count, self.want, self.max_per_node, self.tasks, self.kind)


@dataclass(frozen=True, slots=True)
class Layout:
    """One way to lay a job out on nodes.

    Attributes:
        groups: at least one.
        nodes: the most nodes that it uses.
    """

    groups: tuple[Group, ...]
    arrangement: Arrangement
    exclusive: bool
    nodes: int
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        own = hash((self.groups, self.arrangement, self.exclusive, self.nodes))
        object.__setattr__(self, "_hash", own)

    def __hash__(self) -> int:
        return self._hash

    def together(self) -> list[tuple[int, ...]]:
        """For each group the amounts that must be on one node with each of its chunks."""
        if self.arrangement is not Arrangement.PACK:
            return [group.want for group in self.groups]
        columns = zip(*(group.want for group in self.groups), strict=True)
        counts = [group.count for group in self.groups]
        every = tuple(
            sum(n * want for n, want in zip(counts, each, strict=True)) for each in columns
        )
        return [every] * len(self.groups)

    def alike(self, other: "Layout") -> bool:
        """Whether the other is the same layout, apart from classes, renumbered in every cycle."""
        if self is other:
            return True
        return (self.arrangement, self.exclusive, len(self.groups)) == (
            other.arrangement, other.exclusive, len(other.groups),
        ) and all(
            mine.asks == theirs.asks
            for mine, theirs in zip(self.groups, other.groups, strict=True)
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class LayoutOptions:
    """The layouts of one alternative of a job.

    Attributes:
        minimum: tried in this order, the earliest start wins; empty: no allowed number of nodes
            holds the job's tasks.
        wider: for a start now, widest first; without `minimum`.
    """

    minimum: tuple[Layout, ...]
    wider: tuple[Layout, ...] = ()
