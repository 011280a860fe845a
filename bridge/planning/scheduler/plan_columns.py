# SPDX-License-Identifier: Apache-2.0
"""Converts bookings into a plan's columns: the nodes of a row, its tasks and chunks on each."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bridge.core import Bookings
from bridge.planning.queue.columns import by_appearance
from bridge.planning.queue.layout_options import Layout


class PlanColumns:
    """Bookings, node by node: several groups of a job on one node are one entry."""

    def __init__(
        self, layouts: Sequence[Layout], layout: NDArray[np.int64], found: Bookings
    ) -> None:
        """Merges the bookings' groups by node.

        Args:
            layouts: at least those of the bookings.
            layout: (n,) of each booking, a position in `layouts`.
        """
        n_jobs = len(found.job)
        which, option = by_appearance(layout)
        options = [layouts[at] for at in layout[which].tolist()]
        if _plain(options) and _in_order(found.indptr, found.nodes):
            self.nodes: NDArray[np.int32] = found.nodes
            self.tasks: NDArray[np.int32] = np.zeros(len(found.nodes), dtype=np.int32)
            self.width: NDArray[np.int64] = np.diff(found.indptr)
            self.groups: NDArray[np.int32] | None = None
            return
        owner = np.repeat(np.arange(n_jobs), np.diff(found.indptr))
        sizes = [len(one.groups) for one in options]
        offset = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        every = [group for one in options for group in one.groups]
        tasks_each = np.array([group.tasks for group in every], dtype=np.int64)
        kind = np.array([group.kind for group in every], dtype=np.int64)
        group = offset[option[owner]] + found.groups
        nodes, chunks = found.nodes, found.chunks.astype(np.int64)
        if ((nodes[1:] < nodes[:-1]) & (owner[1:] == owner[:-1])).any():  # by rank, not by index
            order = np.lexsort((nodes, owner))
            owner, nodes, group, chunks = owner[order], nodes[order], group[order], chunks[order]
        fresh = np.ones(len(nodes), dtype=bool)
        fresh[1:] = (owner[1:] != owner[:-1]) | (nodes[1:] != nodes[:-1])
        entry = np.cumsum(fresh) - 1
        n_entries = int(fresh.sum())
        tasks = np.bincount(entry, weights=chunks * tasks_each[group], minlength=n_entries)
        self.nodes = nodes[fresh].astype(np.int32)
        self.tasks = tasks.astype(np.int32)
        self.width = np.bincount(owner[fresh], minlength=n_jobs)
        self.groups = None
        several = np.array([one.groups[-1].kind > 0 for one in options], dtype=bool)
        if several.any():
            mixed = several[option][owner]
            self.groups = np.zeros((n_entries, int(kind.max()) + 1), dtype=np.int32)
            np.add.at(self.groups, (entry[mixed], kind[group[mixed]]), chunks[mixed])


def _plain(layouts: Sequence[Layout]) -> bool:
    """Whether all of them are one group without tasks: every entry is a node of its own."""
    return all(len(one.groups) == 1 and not one.groups[0].tasks for one in layouts)


def _in_order(indptr: NDArray[np.int64], nodes: NDArray[np.int32]) -> bool:
    """Whether the nodes of each booking ascend."""
    falls = nodes[1:] < nodes[:-1]
    falls[indptr[1:-1] - 1] = False  # from one booking to the next
    return not falls.any()
