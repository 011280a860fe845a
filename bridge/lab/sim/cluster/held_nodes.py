# SPDX-License-Identifier: Apache-2.0
"""The nodes of all running jobs of a simulation, one job after the other.

Arrays that were returned are never changed. From one call to the next only the rows of jobs that
started or ended are looked at; the others are copied in as few pieces as possible.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from bridge.lab.sim.cluster.allocation import Allocation

HeldColumns = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]
"""The jobs, (n_running,); offsets into the others, (n_running + 1,); the nodes of all, (nnz,); and
what is held on each, (nnz, R)."""


class HeldNodes:
    """What running jobs hold of each node, in order of start."""

    def __init__(self, allocations: Mapping[int, Allocation], n_resources: int) -> None:
        """Starts without running jobs.

        Args:
            allocations: by job, in order of start, as they are at each call.
            n_resources: columns of a resource vector.
        """
        self._allocations = allocations
        self._rows = np.zeros((2, 0), dtype=np.int64)  # the jobs, and how many nodes each has
        self._indptr = np.zeros(1, dtype=np.int64)
        self._nodes = np.zeros(0, dtype=np.int32)
        self._use = np.zeros((0, n_resources), dtype=np.int64)
        self._nothing = self._rows, self._indptr, self._nodes, self._use
        self._started: list[int] = []
        self._ended: list[int] = []
        self._changed = False

    def note_held(self, job: int) -> None:
        """A job is about to get an allocation: its first, or another one."""
        if job in self._allocations:
            self._changed = True
        else:
            self._started.append(job)

    def note_gone(self, job: int) -> None:
        """A job is about to lose its allocation."""
        if job in self._started:
            self._started.remove(job)
        else:
            self._ended.append(job)

    def columns(self) -> HeldColumns:
        if self._changed:
            self._rows, self._indptr, self._nodes, self._use = self._nothing
            self._started, self._ended, self._changed = list(self._allocations), [], False
        if self._started or self._ended:
            self._follow()
            self._started, self._ended = [], []
        return self._rows[0], self._indptr, self._nodes, self._use

    def _follow(self) -> None:
        """Leaves out the jobs that ended, and appends those that started."""
        rows, nodes, use = [], [], []
        row = entry = 0
        if self._ended:
            jobs, indptr = self._rows[0].tolist(), self._indptr
            for left in sorted(map(jobs.index, self._ended)):
                first, end = indptr[left : left + 2].tolist()
                rows.append(self._rows[:, row:left])
                nodes.append(self._nodes[entry:first])
                use.append(self._use[entry:first])
                row, entry = left + 1, end
        rows.append(self._rows[:, row:])
        nodes.append(self._nodes[entry:])
        use.append(self._use[entry:])
        if self._started:
            held = [self._allocations[job] for job in self._started]
            rows.append(np.array((self._started, [len(one.nodes) for one in held])))
            nodes += [one.nodes for one in held]
            use += [one.use for one in held]
        self._rows = np.concatenate(rows, axis=1)
        self._nodes, self._use = np.concatenate(nodes), np.concatenate(use)
        self._indptr = np.zeros(self._rows.shape[1] + 1, dtype=np.int64)
        self._rows[1].cumsum(out=self._indptr[1:])
