# SPDX-License-Identifier: Apache-2.0
"""The reservations of the simulated controller."""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from bridge.lab.sim.cluster.allocation import Allocation
from bridge.model.snapshot import Reservation


class Reservations:
    """Reservations that have not ended; jobs of a workload run outside of them."""

    def __init__(self, running: Mapping[int, Allocation]) -> None:
        """Starts without reservations.

        Args:
            running: the allocations of running jobs, as they are at each call.
        """
        self._running = running
        self._items: tuple[Reservation, ...] = ()

    def __iter__(self) -> Iterator[Reservation]:
        return iter(self._items)

    def reserve(self, reservation: Reservation) -> str:
        """Makes a reservation like Slurm; returns an empty text, or why not."""
        if any(item.name == reservation.name for item in self._items):
            return "Reservation name duplicates existing reservation"
        if self.conflict(reservation.nodes, reservation.start_s, reservation.end_s) is not None:
            return "Requested reservation overlaps another"
        for held in self._running.values():
            if held.limit_s > reservation.start_s and np.isin(held.nodes, reservation.nodes).any():
                return "Requested nodes are busy"
        self._items = (*self._items, reservation)
        return ""

    def unreserve(self, name: str) -> str:
        """Removes a reservation; returns an empty text, or why not."""
        left = tuple(item for item in self._items if item.name != name)
        if len(left) == len(self._items):
            return "Requested reservation is invalid"
        self._items = left
        return ""

    def open(self, now_s: int) -> tuple[Reservation, ...]:
        """Those that end later than now; the others are removed."""
        if any(item.end_s <= now_s for item in self._items):
            self._items = tuple(item for item in self._items if item.end_s > now_s)
        return self._items

    def conflict(self, nodes: NDArray[np.int32], start_s: int, end_s: int) -> str | None:
        """The name of one that has some of these nodes in this time; None if there is none."""
        for item in self._items:
            if item.start_s < end_s and item.end_s > start_s and np.isin(nodes, item.nodes).any():
                return item.name
        return None
