# SPDX-License-Identifier: Apache-2.0
"""Keeps the lowered requests from cycle to cycle, so that only new requests are lowered.

Terms
    to lower    to find where, how long and how wide a request can run: its alternatives
                (`bridge.planning.eligibility.alternatives`).

Rules
    1. Results are kept only if they depend on nothing but the request, the nodes, the partitions,
       the nodes of reservations and the switches. All of these are compared by content, not by a
       job's name or version. So plans do not depend on what was kept.
    2. Nothing is kept where alternatives depend on more (leaf switches that a job waits for, a
       time limit that is cut for a deadline).
    3. Classes are renumbered in every cycle, in the order in which its rows use them.
    4. Nodes that fail or return change no request: classes are kept as if all nodes were usable,
       and classes with the same usable nodes count as one. Alternatives depend on which nodes are
       usable only if switches form several fabrics.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bridge.core import LoweredRows, RequestTable, pack_nodes
from bridge.model.reasons import Reason
from bridge.model.snapshot import Partition, Snapshot
from bridge.planning.eligibility.alternatives import Eligibility
from bridge.planning.eligibility.leaf_switches import Leaves, pending
from bridge.planning.queue.layout_options import LayoutOptions

_MAX_WORLDS = 4
_MAX_KEPT = 200_000


class KeptLowering:
    """The requests of one cluster that have been lowered so far.

    Attributes:
        table: numbers requests, and keeps the reasons why jobs with them wait.
        refused: from the number of a request to the reason why no such job can run.
        wait_reasons: reasons why jobs wait, by what they depend on.
        layouts: layouts of requests whose layouts depend on nothing but the request and its class
            (`bridge.planning.queue.layouts`).
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._nodes, self._partitions = snapshot.nodes, snapshot.partitions
        self._reserved, self._topology = _reserved(snapshot), snapshot.topology
        self._dialect = snapshot.dialect
        self._apart = self._topology is not None and not Leaves.of(self._topology).whole
        self.table = RequestTable()
        self.refused: dict[int, Reason] = {}
        self.wait_reasons: dict[tuple[object, ...], Reason] = {}
        self.layouts: dict[tuple[object, ...], LayoutOptions] = {}
        self._class_of: dict[tuple[bytes, int], int] = {}
        self._all: list[tuple[NDArray[np.bool_], int]] = []  # as if all nodes were usable
        self._now: list[tuple[NDArray[np.bool_], int]] = []
        self._first: dict[tuple[bytes, int], int] = {}
        self._same: list[int] = []
        self._usable = snapshot.nodes.usable
        self._packed: dict[tuple[int, ...], NDArray[np.uint64]] = {}

    def lower(self, snapshot: Snapshot, rows: NDArray[np.int64]) -> LoweredRows:
        """Lowers rows of the waiting jobs of a snapshot of this cluster."""
        eligibility: Eligibility | None = None
        self._take_usable(snapshot.nodes.usable)

        def find(number: int, row: int) -> list[tuple[int, int, int, int, int]]:
            nonlocal eligibility
            if eligibility is None:
                eligibility = Eligibility(snapshot if self._apart else _all_usable(snapshot))
            (answer,) = eligibility.alternatives(np.array([row]))
            if isinstance(answer, Reason):
                self.refused[number] = answer
                return []
            return [
                (
                    self._class(eligibility, one.class_), one.partition,
                    one.time_limit_s, one.min_nodes, one.max_nodes,
                )
                for one in answer
            ]  # fmt: skip

        return self.table.lower(snapshot.jobs, rows, find)

    def _class(self, eligibility: Eligibility, class_: int) -> int:
        nodes, reservation = (
            eligibility.classes.mask(class_),
            eligibility.classes.reservation(class_),
        )
        key = nodes.tobytes(), reservation
        found = self._class_of.get(key)
        if found is None:
            found = self._class_of[key] = len(self._all)
            self._all.append((nodes, reservation))
            self._add_now(found)
            self.table.unite(self._same)
        return found

    def _take_usable(self, usable: NDArray[np.bool_]) -> None:
        """Records which nodes are usable now (rule 4)."""
        if usable is self._usable:
            return
        changed = not np.array_equal(usable, self._usable)
        self._usable = usable
        if changed:
            self._now, self._same = [], []
            self._first.clear()
            self._packed.clear()
            for class_ in range(len(self._all)):
                self._add_now(class_)
            self.table.unite(self._same)

    def _add_now(self, class_: int) -> None:
        nodes, reservation = self._all[class_]
        now = nodes & self._usable
        self._now.append((now, reservation))
        self._same.append(self._first.setdefault((now.tobytes(), reservation), class_))

    def classes(self, classes: Sequence[int]) -> list[tuple[NDArray[np.bool_], int]]:
        """(n_nodes,) the usable nodes of some classes, and the reservation of their jobs."""
        return [self._now[class_] for class_ in classes]

    def class_nodes(self, classes: Sequence[int]) -> NDArray[np.uint64]:
        """(n_classes, n_words) the same nodes as bitsets."""
        key = tuple(classes)
        found = self._packed.get(key)
        if found is None:
            masks = np.array([nodes for nodes, _ in self.classes(classes)], dtype=np.bool_)
            found = pack_nodes(masks.reshape(len(classes), len(self._nodes)))
            self._packed = {key: found}
        return found

    def fits(self, snapshot: Snapshot) -> bool:
        nodes, partitions = snapshot.nodes, snapshot.partitions
        if snapshot.topology is not self._topology or len(partitions) != len(self._partitions):
            return False
        if snapshot.dialect != self._dialect:
            return False
        if nodes is not self._nodes:
            if nodes.features != self._nodes.features:
                return False
            if self._apart and not np.array_equal(nodes.usable, self._nodes.usable):
                return False
        if partitions is not self._partitions:
            if not all(map(_same, partitions, self._partitions)):
                return False
            self._partitions = partitions
        return (not snapshot.reservations and not self._reserved) or (
            _reserved(snapshot) == self._reserved
        )

    @property
    def full(self) -> bool:
        """Whether the table has reached its bound."""
        kept = len(self.table), self.table.n_reasons, len(self._all), len(self.wait_reasons)
        return max(*kept, len(self.layouts)) > _MAX_KEPT


def _all_usable(snapshot: Snapshot) -> Snapshot:
    nodes = replace(snapshot.nodes, usable=np.ones(len(snapshot.nodes), dtype=bool))
    return replace(snapshot, nodes=nodes)


def _reserved(snapshot: Snapshot) -> tuple[tuple[bytes, bool], ...]:
    """The parts of reservations that decide where their jobs can run."""
    return tuple((one.nodes.tobytes(), one.anywhere) for one in snapshot.reservations)


def _same(one: Partition, other: Partition) -> bool:
    if one is other:
        return True
    mine, theirs = dict(vars(one)), dict(vars(other))
    return np.array_equal(mine.pop("nodes"), theirs.pop("nodes")) and mine == theirs


_kept: list[KeptLowering] = []


def kept_lowering(snapshot: Snapshot) -> KeptLowering | None:
    """The kept requests of a snapshot's cluster, possibly none yet; None: not allowed (rule 2)."""
    jobs = snapshot.jobs
    if np.count_nonzero(jobs.min_time_s) and ((jobs.min_time_s > 0) & (jobs.deadline_s != 0)).any():
        return None
    if snapshot.topology is not None and pending(snapshot).any():
        return None
    for kept in _kept:
        if kept.fits(snapshot) and not kept.full:
            return kept
    kept = KeptLowering(snapshot)
    _kept[:] = [kept, *_kept[: _MAX_WORLDS - 1]]
    return kept
