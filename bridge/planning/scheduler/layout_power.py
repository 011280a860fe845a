# SPDX-License-Identifier: Apache-2.0
"""The maximum draw of a layout's nodes for its job, before they are chosen, W beyond idle.

Rules
    1. Where a job's estimate is known, each of its nodes draws that, less the least idle power of
       the nodes that its layout may use.
    2. Otherwise whole nodes count as those with the largest maximum; on other nodes the job counts
       with its part by CPUs, on the nodes where that part is largest.
    3. Free chunks may share nodes in several ways: each node may round up by 1 W.
"""

import numpy as np
from numpy.typing import NDArray

from bridge.model.node import CPUS
from bridge.model.resources import Arrangement
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.alternatives import Eligibility
from bridge.planning.queue.layout_options import Layout
from bridge.planning.site_rules.power import LoweredPower

_MILLI = 1000


class LayoutPower:
    """The draws of layouts in one snapshot."""

    def __init__(self, snapshot: Snapshot, eligibility: Eligibility, power: LoweredPower) -> None:
        self._eligibility = eligibility
        self._floor_w, self._span_w = power.nodes.floor_w, power.nodes.span_w
        self._cpus = np.maximum(snapshot.nodes.capacity[:, CPUS], 1)
        self._largest: dict[tuple[int, ...], NDArray[np.int64]] = {}
        self._least: dict[tuple[int, ...], int] = {}
        self._shared: dict[tuple[tuple[int, ...], int], int] = {}
        self._known: dict[tuple[int, int, bool], int] = {}
        self._kept: list[Layout] = []  # so that no other one gets an id that is in use

    def most(self, layout: Layout, stated_w: int, *, whole: bool) -> int:
        """The most that its nodes draw, W.

        Args:
            layout: of a job.
            stated_w: the job's estimate on each node; 0: not known.
            whole: it holds its nodes whole.
        """
        key = id(layout), stated_w, whole
        if key not in self._known:
            self._kept.append(layout)
            self._known[key] = self._most(layout, stated_w, whole=whole)
        return self._known[key]

    def _most(self, layout: Layout, stated_w: int, *, whole: bool) -> int:
        classes = tuple(sorted({group.class_ for group in layout.groups}))
        if stated_w:
            return layout.nodes * max(stated_w - self._least_floor(classes), 0)
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
        found = np.zeros(len(self._span_w), dtype=bool)
        for class_ in classes:
            found |= self._eligibility.classes.mask(class_)
        return found

    def _least_floor(self, classes: tuple[int, ...]) -> int:
        if classes not in self._least:
            floor_w = self._floor_w[self._mask(classes)]
            self._least[classes] = int(floor_w.min()) if len(floor_w) else 0
        return self._least[classes]

    def _of_largest(self, classes: tuple[int, ...], count: int) -> int:
        """The maximum draw of `count` nodes together."""
        if classes not in self._largest:
            span_w = np.sort(self._span_w[self._mask(classes)])[::-1]
            self._largest[classes] = np.concatenate(([0], np.cumsum(span_w)))
        table = self._largest[classes]
        return int(table[min(count, len(table) - 1)])

    def _part(self, classes: tuple[int, ...], cpus: int) -> int:
        """The maximum draw of a number of CPUs of one node."""
        if (classes, cpus) not in self._shared:
            mask = self._mask(classes)
            there = self._cpus[mask]
            part = -(-self._span_w[mask] * np.clip(cpus, 1, there) // there)
            self._shared[classes, cpus] = int(part.max(initial=0))
        return self._shared[classes, cpus]

    def _rate(self, classes: tuple[int, ...]) -> int:
        """The maximum draw of a CPU, mW."""
        if (classes, -1) not in self._shared:
            mask = self._mask(classes)
            milli = -(-self._span_w[mask] * _MILLI // self._cpus[mask])
            self._shared[classes, -1] = int(milli.max(initial=0))
        return self._shared[classes, -1]
