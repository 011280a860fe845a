# SPDX-License-Identifier: Apache-2.0
"""What a layout adds at most to a bound with weights of nodes, before its nodes are chosen.

Rules
    1. Where an amount is stated of a job, it adds that on each of its nodes, less the least floor
       of the nodes that its layout may use.
    2. Otherwise whole nodes count as those with the largest weights; on other nodes the job counts
       with its part by CPUs, on the nodes where that part is largest.
    3. Free chunks may share nodes in several ways: each node may round up by 1.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bridge.model.node import CPUS
from bridge.model.resources import Arrangement
from bridge.model.snapshot import Snapshot
from bridge.model.weighted_bound import WeightedBound
from bridge.planning.eligibility.alternatives import Eligibility
from bridge.planning.queue.layout_options import Layout
from bridge.planning.site_rules.weighted_bounds import LoweredBound

_MILLI = 1000


class LayoutAmounts:
    """What layouts add to each of the bounds of one snapshot."""

    def __init__(
        self, snapshot: Snapshot, eligibility: Eligibility, bounds: Sequence[LoweredBound]
    ) -> None:
        self._of = [
            (_LayoutWeights(snapshot, eligibility, bound.given), bound.given.stated)
            for bound in bounds
        ]

    def maximum(
        self, layouts: Sequence[Layout], job: NDArray[np.int64], whole: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], ...]:
        """For each bound, (n,) what layouts add at most.

        Args:
            job: (n,) rows of their jobs.
            whole: (n,) whether these hold their nodes whole.
        """
        holds, found = whole.tolist(), []
        for weights, stated in self._of:
            each = zip(layouts, stated[job].tolist(), holds, strict=True)
            found.append(
                np.array(
                    [weights.maximum(one, a, whole=own) for one, a, own in each], dtype=np.int64
                )
            )
        return tuple(found)


class _LayoutWeights:
    """What layouts add to one bound."""

    def __init__(self, snapshot: Snapshot, eligibility: Eligibility, given: WeightedBound) -> None:
        self._eligibility = eligibility
        self._floor, self._weight = given.floor, given.weight
        self._cpus = np.maximum(snapshot.nodes.capacity[:, CPUS], 1)
        self._largest: dict[tuple[int, ...], NDArray[np.int64]] = {}
        self._minimum: dict[tuple[int, ...], int] = {}
        self._shared: dict[tuple[tuple[int, ...], int], int] = {}
        self._known: dict[tuple[int, int, bool], int] = {}
        self._kept: list[Layout] = []  # so that no other one gets an id that is in use

    def maximum(self, layout: Layout, stated: int, *, whole: bool) -> int:
        """The maximum that its nodes add.

        Args:
            stated: the amount that is stated of the job on each node; 0: none.
            whole: it holds its nodes whole.
        """
        key = id(layout), stated, whole
        if key not in self._known:
            self._kept.append(layout)
            self._known[key] = self._maximum(layout, stated, whole=whole)
        return self._known[key]

    def _maximum(self, layout: Layout, stated: int, *, whole: bool) -> int:
        classes = tuple(sorted({group.class_ for group in layout.groups}))
        if stated:
            return layout.nodes * max(stated - self._min_floor(classes), 0)
        scattered = layout.arrangement is Arrangement.SCATTER
        if whole:
            if scattered:
                parts = (((group.class_,), group.count) for group in layout.groups)
                return sum(self._of_largest(*part) for part in parts)
            return self._of_largest(classes, layout.nodes)
        if scattered:
            return sum(
                group.count * self._part((group.class_,), group.want[CPUS])
                for group in layout.groups
            )
        cpus = sum(group.count * group.want[CPUS] for group in layout.groups)
        if layout.arrangement is Arrangement.PACK:
            return self._part(classes, cpus)
        milli = self._rate(classes)
        return -(-cpus * milli // _MILLI) + (layout.nodes if milli else 0)

    def _mask(self, classes: tuple[int, ...]) -> NDArray[np.bool_]:
        found = np.zeros(len(self._weight), dtype=bool)
        for class_ in classes:
            found |= self._eligibility.classes.mask(class_)
        return found

    def _min_floor(self, classes: tuple[int, ...]) -> int:
        if classes not in self._minimum:
            floor = self._floor[self._mask(classes)]
            self._minimum[classes] = int(floor.min()) if len(floor) else 0
        return self._minimum[classes]

    def _of_largest(self, classes: tuple[int, ...], count: int) -> int:
        """The maximum of `count` nodes together."""
        if classes not in self._largest:
            weight = np.sort(self._weight[self._mask(classes)])[::-1]
            self._largest[classes] = np.concatenate(([0], np.cumsum(weight)))
        table = self._largest[classes]
        return int(table[min(count, len(table) - 1)])

    def _part(self, classes: tuple[int, ...], cpus: int) -> int:
        """The maximum of a number of CPUs of one node."""
        if (classes, cpus) not in self._shared:
            mask = self._mask(classes)
            there = self._cpus[mask]
            part = -(-self._weight[mask] * np.clip(cpus, 1, there) // there)
            self._shared[classes, cpus] = int(part.max(initial=0))
        return self._shared[classes, cpus]

    def _rate(self, classes: tuple[int, ...]) -> int:
        """The maximum of a CPU, in thousandths."""
        if (classes, -1) not in self._shared:
            mask = self._mask(classes)
            milli = -(-self._weight[mask] * _MILLI // self._cpus[mask])
            self._shared[classes, -1] = int(milli.max(initial=0))
        return self._shared[classes, -1]
