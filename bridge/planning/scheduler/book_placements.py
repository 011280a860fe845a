# SPDX-License-Identifier: Apache-2.0
"""Converts bookings into a plan's columns: the nodes of a row, its tasks and chunks on each."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bridge.core import Bookings
from bridge.planning.queue.layouts import Layout


class BookPlacements:
    """Bookings, node by node: several groups of a job on one node are one entry."""

    def __init__(
        self, layouts: Sequence[Layout], layout: NDArray[np.int64], found: Bookings
    ) -> None:
        """Merges the bookings' groups by node.

        Args:
            layouts: at least those of the bookings.
            layout: (n,) of each booking, a position in `layouts`.
            found: n bookings.
        """
        n_jobs = len(found.job)
        owner = np.repeat(np.arange(n_jobs), np.diff(found.indptr))
        used, option = np.unique(layout, return_inverse=True)
        options = [layouts[at] for at in used.tolist()]
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
        self.nodes: NDArray[np.int32] = nodes[fresh].astype(np.int32)
        self.tasks: NDArray[np.int32] = tasks.astype(np.int32)
        self.width = np.bincount(owner[fresh], minlength=n_jobs)
        self.groups: NDArray[np.int32] | None = None
        several = np.array([one.groups[-1].kind > 0 for one in options], dtype=bool)
        if several.any():
            mixed = several[option][owner]
            self.groups = np.zeros((n_entries, int(kind.max()) + 1), dtype=np.int32)
            np.add.at(self.groups, (entry[mixed], kind[group[mixed]]), chunks[mixed])
