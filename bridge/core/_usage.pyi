# SPDX-License-Identifier: Apache-2.0
"""The usage vector of ``bridge.core._core``; this file is not a module."""

import enum
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bridge.core._core import NEVER

class Stores(enum.IntEnum):
    """What the slots of a ``UsageVector`` hold."""

    USED = 0
    """Used items; seconds without a slot have none used."""
    FREE = 1
    """Free items; seconds without a slot have all available ones free."""

class UsageVector:
    """Used or free items of one resource over time: the resource usage vector (RUSV) of OpenCCS.

    A slot is ``[start, end)`` with so many items; ``end`` NEVER is without end. Slots are sorted
    and disjoint; a second that is completely free (USED: no items, FREE: ``available`` or more) has
    none. Consecutive slots of equal items less than ``min_distance_s`` apart are one, and what lay
    between counts like them: with a distance above 1 s small gaps are lost, never invented. Times
    lie in [0, NEVER).

    Operations work second by second, then slots are dropped and joined as above; items below zero
    (USED) or above ``available`` (FREE) are cut off there. Free items may be negative: more is in
    use than is available.

    ==============================  ======================================================
    paper, section 4                here
    ==============================  ======================================================
    R + slot in a circle, R - slot  ``increment``, ``decrement`` of what is stored
    R1 + R2, R1 - R2                ``+``, ``-``
    mf(R1, R2)                      ``r1.min_free(r2)``
    intersection                    ``&``
    getFreeSlots(R, F, D, T1, T2)   ``r.free_slots(F, D, T1, T2)``; its begin: ``earliest``
    cronToRUSV(R, I, T1, T2, P)     ``r.repeat(I, T1, T2, P)``
    ==============================  ======================================================

    Source: A. Keller, A Data Structure for Planning Based Workload Management of Heterogeneous
    HPC Systems (JSSPP 2017), sections 4.1 and 5.4.

    Deviates: intervals are half-open, the paper's are closed: its minimal distance of 1 s between
    closed slots is 0 s between these. Its formula of mf, max(R2, avl - R2), names R2 twice; read is
    max(R1's used, R1's avl - R2's free): free is the lesser of what the system has and what the
    limit leaves, also where R2 has no slot. Adding two vectors of free items makes one system of
    two: maximum and defect add up.
    """

    def __init__(self, maximum: int, *, stores: int = Stores.USED, min_distance_s: int = 1) -> None:
        """Make a vector without slots.

        Args:
            maximum: items there are when nothing is defect, 0 to 2**48.
            stores: a ``Stores`` code.
            min_distance_s: least time between two slots of equal items, >= 1.

        Raises:
            ValueError: a value is out of range; the text names it.
        """
    @property
    def maximum(self) -> int:
        """Items there are when nothing is defect."""
    @property
    def defect(self) -> int:
        """Items that are not there at present."""
    @property
    def available(self) -> int:
        """``maximum - defect``."""
    @property
    def min_distance_s(self) -> int:
        """Least time between two slots of equal items."""
    @property
    def stores(self) -> Stores:
        """What the slots hold."""
    def __len__(self) -> int:
        """Count the slots."""
    def __eq__(self, other: object) -> bool:
        """Tell whether the slots and all else are the same."""
    __hash__: ClassVar[None]  # type: ignore[assignment]
    def copy(self) -> UsageVector:
        """Return a vector that changes on its own."""
    def slots(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return (n_slots,) starts, ends (s) and items."""
    def set_defect(self, defect: int) -> None:
        """Lose or return items; what is used stays used. From 0 to ``maximum``."""
    def increment(self, start: int, end: int, items: int) -> None:
        """Add a slot to what is stored. O(slots behind it, moved) as one memory move.

        Args:
            start: s, >= 0.
            end: s, > start.
            items: 0 to 2**48.

        Raises:
            ValueError: a value is out of range, or a second would have more than 2**60 items.
        """
    def decrement(self, start: int, end: int, items: int) -> None:
        """Take a slot off what is stored; arguments as ``increment``."""
    def book(self, start: int, end: int, items: int) -> None:
        """Use items: ``increment`` of used ones, ``decrement`` of free ones."""
    def revoke(self, start: int, end: int, items: int) -> None:
        """Give items back: the inverse of ``book``."""
    def used_at(self, time: int) -> int:
        """Return what is used at one second; O(log slots)."""
    def free_at(self, time: int) -> int:
        """Return what is free at one second, perhaps negative; O(log slots)."""
    def least_free(self, start: int, end: int) -> int:
        """Return the least that is free at any second of [start, end)."""
    def earliest(self, items: int, length: int, start: int = 0, end: int = NEVER) -> int:
        """Find the first time from which ``items`` are free for ``length`` s within [start, end).

        Returns:
            The time, or NEVER. What lasts to NEVER lasts for any length.
        """
    def free_slots(self, items: int, length: int, start: int = 0, end: int = NEVER) -> UsageVector:
        """Find where ``items`` are free for ``length`` s at a stretch within [start, end).

        Args:
            items: F, >= 1.
            length: D, s, >= 1.
            start: T1, s.
            end: T2, s; NEVER is no bound.

        Returns:
            Free items: what is free in such stretches, 0 at all other seconds.
        """
    def free_steps(
        self, start: int = 0, end: int = NEVER
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return (n_steps,) instants in [start, end) at which what is free changes, and to what.

        The first is ``start``. This is the form in which the book takes constraints.
        """
    def __add__(self, other: UsageVector) -> UsageVector:
        """Add other's used items to what is stored; or make one system of two that store free ones.

        Raises:
            ValueError: used + free, or more than 2**60 items at one second.
        """
    def __sub__(self, other: UsageVector) -> UsageVector:
        """Take other's used items off what is stored; or take a part out of a system (free items).

        Raises:
            ValueError: used - free, or other has more maximum, defect or available items.
        """
    def __and__(self, other: UsageVector) -> UsageVector:
        """Return the lesser of what both have free, with the lesser ``available`` of both.

        Raises:
            ValueError: one of them stores used items.
        """
    def min_free(self, limit: UsageVector) -> UsageVector:
        """Return this vector with no more free than ``limit`` leaves (mf)."""
    def in_units_of(self, items: int) -> UsageVector:
        """Return how many times ``items`` are free: free chunks instead of free items."""
    def as_used(self) -> UsageVector:
        """Return the same, storing used items."""
    def as_free(self) -> UsageVector:
        """Return the same, storing free items."""
    def repeat(self, items: int, start: int, end: int, period: int) -> UsageVector:
        """Repeat this vector's slots each ``period`` in [start, end), each with ``items``.

        Args:
            items: I, what every slot holds.
            start: T1, s.
            end: T2, s, before NEVER.
            period: P, s; the template's slots lie in [0, P), and period k begins at k * P.

        Raises:
            ValueError: a slot lies outside [0, period), or there would be more than 2**24 slots.
        """
