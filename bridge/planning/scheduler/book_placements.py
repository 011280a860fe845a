# SPDX-License-Identifier: Apache-2.0
"""Bookings of a book as a plan has them: a row's nodes, and its tasks and chunks on each."""

import numpy as np
from numpy.typing import NDArray

from bridge.core import Bookings
from bridge.planning.queue.layouts import Layout


class BookPlacements:
    """Bookings, node by node: several groups of a job on one node are one entry."""

    def __init__(self, layouts: list[Layout], found: Bookings) -> None:
        n_jobs = len(found.job)
        owner = np.repeat(np.arange(n_jobs), np.diff(found.indptr))
        options = {id(layout): layout for layout in layouts}  # jobs that ask alike share them
        number = {key: position for position, key in enumerate(options)}
        option = np.array([number[id(layout)] for layout in layouts], dtype=np.int64)
        sizes = [len(layout.groups) for layout in options.values()]
        offset = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        every = [group for layout in options.values() for group in layout.groups]
        tasks_each = np.array([group.tasks for group in every], dtype=np.int64)
        kind = np.array([group.kind for group in every], dtype=np.int64)
        group = offset[option[owner]] + found.groups
        order = np.lexsort((found.nodes, owner))
        owner, nodes, group = owner[order], found.nodes[order], group[order]
        chunks = found.chunks[order].astype(np.int64)
        fresh = np.ones(len(nodes), dtype=bool)
        fresh[1:] = (owner[1:] != owner[:-1]) | (nodes[1:] != nodes[:-1])
        entry = np.cumsum(fresh) - 1
        n_entries = int(fresh.sum())
        tasks = np.bincount(entry, weights=chunks * tasks_each[group], minlength=n_entries)
        self.nodes: NDArray[np.int32] = nodes[fresh].astype(np.int32)
        self.tasks: NDArray[np.int32] = tasks.astype(np.int32)
        self.width = np.bincount(owner[fresh], minlength=n_jobs)
        self.groups: NDArray[np.int32] | None = None
        several = np.array([layout.groups[-1].kind > 0 for layout in options.values()], dtype=bool)
        if several.any():
            mixed = several[option][owner]
            self.groups = np.zeros((n_entries, int(kind.max()) + 1), dtype=np.int32)
            np.add.at(self.groups, (entry[mixed], kind[group[mixed]]), chunks[mixed])
