# SPDX-License-Identifier: Apache-2.0
"""What was worked out of requests in one cycle, for the next ones: a cycle costs what changed.

Words
    to lower    to find where a request may run, for how long and how wide: its alternatives
                (`bridge.planning.eligibility.alternatives`).

Rules
    1. Kept is only what follows from a request and from the nodes and partitions. A request is told
       by all it says, not by the job's name or version; nodes and partitions by what they are.
       So nothing that is kept changes any plan, whoever plans and whatever was planned before.
    2. Where alternatives depend on more (reservations, switches, limits that are cut for a
       deadline) nothing is kept.
    3. Classes are numbered anew in every cycle, as its rows come upon them.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bridge.core import LoweredRows, RequestTable, pack_nodes
from bridge.model.node import NodeTable
from bridge.model.reasons import Reason
from bridge.model.snapshot import Partition, Snapshot
from bridge.planning.eligibility.alternatives import Eligibility

_MOST_WORLDS = 4
_MOST_KEPT = 200_000


class KeptLowering:
    """The requests of one machine that have been lowered so far.

    Attributes:
        table: numbers requests, and keeps the reasons why such jobs wait.
        refused: number of a request to why no such job can run.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._nodes, self._partitions = snapshot.nodes, snapshot.partitions
        self.table = RequestTable()
        self.refused: dict[int, Reason] = {}
        self._class_of: dict[bytes, int] = {}
        self._masks: list[NDArray[np.bool_]] = []
        self._packed: dict[tuple[int, ...], NDArray[np.uint64]] = {}

    def lower(self, snapshot: Snapshot, rows: NDArray[np.int64]) -> LoweredRows:
        """Lowers rows of the waiting jobs of a snapshot of this machine."""
        eligibility: Eligibility | None = None

        def find(number: int, row: int) -> list[tuple[int, int, int, int, int]]:
            nonlocal eligibility
            if eligibility is None:
                eligibility = Eligibility(snapshot)
            (answer,) = eligibility.alternatives(np.array([row]))
            if isinstance(answer, Reason):
                self.refused[number] = answer
                return []
            return [
                (
                    self._class(eligibility.class_mask(one.class_)), one.partition,
                    one.time_limit_s, one.min_nodes, one.max_nodes,
                )
                for one in answer
            ]  # fmt: skip

        return self.table.lower(snapshot.jobs, rows, find)

    def _class(self, nodes: NDArray[np.bool_]) -> int:
        key = nodes.tobytes()
        found = self._class_of.get(key)
        if found is None:
            self._masks.append(nodes)
            found = self._class_of[key] = len(self._masks) - 1
        return found

    def masks(self, classes: Sequence[int]) -> list[NDArray[np.bool_]]:
        """(n_nodes,) the nodes of some classes."""
        return [self._masks[class_] for class_ in classes]

    def class_nodes(self, classes: Sequence[int]) -> NDArray[np.uint64]:
        """(n_classes, n_words) the same as bitsets."""
        key = tuple(classes)
        found = self._packed.get(key)
        if found is None:
            masks = np.array(self.masks(classes), dtype=np.bool_)
            found = pack_nodes(masks.reshape(len(classes), len(self._nodes)))
            self._packed = {key: found}
        return found

    def fits(self, snapshot: Snapshot) -> bool:
        """Whether a snapshot is of this machine."""
        nodes, partitions = snapshot.nodes, snapshot.partitions
        if nodes is self._nodes and partitions is self._partitions:
            return True
        if not _alike(nodes, self._nodes) or len(partitions) != len(self._partitions):
            return False
        return all(map(_same, partitions, self._partitions))

    @property
    def full(self) -> bool:
        """Whether too much is kept."""
        return max(len(self.table), self.table.n_reasons, len(self._masks)) > _MOST_KEPT


def _alike(one: NodeTable, other: NodeTable) -> bool:
    return one is other or (
        one.features == other.features and np.array_equal(one.usable, other.usable)
    )


def _same(one: Partition, other: Partition) -> bool:
    mine, theirs = dict(vars(one)), dict(vars(other))
    return np.array_equal(mine.pop("nodes"), theirs.pop("nodes")) and mine == theirs


_kept: list[KeptLowering] = []


def kept_lowering(snapshot: Snapshot) -> KeptLowering | None:
    """What is kept for a snapshot's machine, be it nothing yet; None: nothing can be (rule 2)."""
    if (
        snapshot.reservations
        or snapshot.topology is not None
        or np.count_nonzero(snapshot.jobs.least_time_s)
        or np.count_nonzero(snapshot.jobs.reservation >= 0)
    ):
        return None
    for kept in _kept:
        if kept.fits(snapshot) and not kept.full:
            return kept
    kept = KeptLowering(snapshot)
    _kept[:] = [kept, *_kept[: _MOST_WORLDS - 1]]
    return kept
