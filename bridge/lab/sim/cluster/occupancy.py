# SPDX-License-Identifier: Apache-2.0
"""The resources of each node that simulated jobs hold, and the free ones."""

import numpy as np
from numpy.typing import NDArray


class Occupancy:
    """The use of nodes, by index.

    Attributes:
        capacity: (n_nodes, R) int64.
        free: (n_nodes, R) int64: what no job holds.
    """

    def __init__(self, capacity: NDArray[np.int64]) -> None:
        self.capacity, self.free = capacity, capacity.copy()
        self._holders = np.zeros(len(capacity), dtype=np.int64)
        self._whole = np.zeros(len(capacity), dtype=bool)

    def take(self, nodes: NDArray[np.int32], use: NDArray[np.int64], exclusive: bool) -> None:
        """Gives nodes to a job; `exclusive`: no other job gets anything on them."""
        self.free[nodes] -= use
        self._holders[nodes] += 1
        self._whole[nodes] = exclusive

    def give_back(self, nodes: NDArray[np.int32], use: NDArray[np.int64], exclusive: bool) -> None:
        """Gives back what `take` took."""
        self.free[nodes] += use
        self._holders[nodes] -= 1
        if exclusive:
            self._whole[nodes] = False

    def change(self, nodes: NDArray[np.int32], more: NDArray[np.int64]) -> None:
        """Changes what a job takes of its nodes by this amount."""
        self.free[nodes] -= more

    def holds(self, nodes: NDArray[np.int32], want: NDArray[np.int64], exclusive: bool) -> bool:
        """Whether all these nodes have room for a job.

        Args:
            nodes: (n,) indexes.
            want: (R,) or (n, R) int64: what the job takes of each.
            exclusive: no other job may hold anything on them.
        """
        taken, room = (self._holders, self.capacity) if exclusive else (self._whole, self.free)
        return not (
            np.count_nonzero(taken.take(nodes)) or np.count_nonzero(room.take(nodes, axis=0) < want)
        )

    def occupied(
        self, nodes: NDArray[np.int32], want: NDArray[np.int64], exclusive: bool
    ) -> NDArray[np.bool_]:
        """Tells which of some nodes have no room for a job.

        Args:
            nodes: (n,) indexes.
            want: (n, R) int64: what the job takes of each.
            exclusive: no other job may hold anything on them.
        """
        if exclusive:
            taken, room = self._holders[nodes] > 0, self.capacity[nodes]
        else:
            taken, room = self._whole[nodes], self.free[nodes]
        busy: NDArray[np.bool_] = taken | (want > room).any(axis=1)
        return busy
