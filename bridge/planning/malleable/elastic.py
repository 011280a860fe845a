# SPDX-License-Identifier: Apache-2.0
"""Running malleable jobs as a planner sees them: one by one, and as columns.

`bridge.planning.malleable.bases` makes them, and defines the terms.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.model.job import WidthRule
from bridge.planning.malleable.speed import speed, speeds

RULES: Final = {int(rule): rule for rule in WidthRule}


@dataclass(frozen=True, slots=True)
class MalleableJob:
    """A running malleable job.

    Attributes:
        row: the row of `Snapshot.running`.
        nodes: those that it holds; it keeps the first `base` of them.
        base: the number of nodes that it is planned with; its width, if it keeps its nodes.
        requested: the number of nodes that it requested; its present number, if it states none.
        maximum: the maximum number of nodes that it allows.
        rule: which numbers of nodes it allows up to that.
        left_s: its maximum remaining time at its width.
        back_s: when lent nodes can be returned.
        resizable: it is not adapting, and its last change was long enough ago.
    """

    row: int
    nodes: NDArray[np.int32]
    base: int
    requested: int
    maximum: int
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
        """Its remaining time at another width."""
        return self.left_s * speed(self.serial, len(self.nodes)) / speed(self.serial, width)


@dataclass(frozen=True)
class ElasticJobs:
    """Running malleable jobs as columns of length n, in order of their rows.

    Attributes: as of `MalleableJob`, and
        indptr: (n + 1,) job i holds nodes[indptr[i]:indptr[i + 1]], those of its base first.
        nodes: (nnz,) node indexes.
        straight: the nodes of each are ascending.
        width: how many nodes each holds.
        is_lent: which of them have nodes beyond their bases.
        in_base: (nnz,) which nodes belong to the base of their job.
    """

    row: NDArray[np.int64]
    indptr: NDArray[np.int64]
    nodes: NDArray[np.int32]
    straight: bool
    base: NDArray[np.int64]
    requested: NDArray[np.int64]
    maximum: NDArray[np.int64]
    rule: NDArray[np.int8]
    serial: NDArray[np.float64]
    left_s: NDArray[np.int64]
    back_s: NDArray[np.int64]
    resizable: NDArray[np.bool_]
    width: NDArray[np.int64] = field(init=False)
    is_lent: NDArray[np.bool_] = field(init=False)
    in_base: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        width = self.indptr[1:] - self.indptr[:-1]
        ends = (self.indptr[:-1] + self.base).repeat(width)
        own = {"width": width, "is_lent": width > self.base}
        self.__dict__.update(own, in_base=np.arange(len(self.nodes)) < ends)

    def __len__(self) -> int:
        return len(self.row)

    def __iter__(self) -> Iterator[MalleableJob]:
        return (self[at] for at in range(len(self)))

    def __getitem__(self, at: int) -> MalleableJob:
        return MalleableJob(
            row=int(self.row[at]),
            nodes=self.nodes[self.indptr[at] : self.indptr[at + 1]],
            base=int(self.base[at]),
            requested=int(self.requested[at]),
            maximum=int(self.maximum[at]),
            rule=RULES[int(self.rule[at])],
            serial=float(self.serial[at]),
            left_s=int(self.left_s[at]),
            back_s=int(self.back_s[at]),
            resizable=bool(self.resizable[at]),
        )

    def lasts_s(self, width: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n,) their remaining times at other widths."""
        return self.left_s * speeds(self.serial, self.width) / speeds(self.serial, width)

    def nodes_at_bases(
        self, which: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The nodes of the bases of some jobs.

        Args:
            which: (n,) these jobs.

        Returns:
            Where those of each begin, and the nodes, ascending for each.
        """
        kept = np.minimum(self.base, self.width)[which]
        indptr = np.concatenate(([0], kept.cumsum()))
        nodes = self.nodes[self.in_base & which.repeat(self.width)]
        if not self.straight:
            nodes = nodes[np.lexsort((nodes, np.arange(len(kept)).repeat(kept)))]
        return indptr, nodes

    def first_used_s(self, used_s: NDArray[np.int64], never_s: int) -> NDArray[np.int64]:
        """(n,) when the plan uses any of the lent nodes of each.

        Args:
            used_s: (n_nodes,) when it uses each node.
            never_s: stands for no time: it uses none, or none is lent.
        """
        found = np.full(len(self), never_s, dtype=np.int64)
        some = self.is_lent
        lent = used_s[self.nodes[~self.in_base]]
        if len(lent):
            sizes = (self.width - self.base)[some]
            found[some] = np.minimum.reduceat(lent, sizes.cumsum() - sizes)
        return found
