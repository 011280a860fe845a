# SPDX-License-Identifier: Apache-2.0
"""The requests of pending jobs, numbered: equal requests have one number, in every cycle."""

from collections.abc import Callable
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from bridge.core._core import NodePlan

class LoweredRows:
    """The rows of one cycle: which can be planned, and their alternatives."""

    @property
    def number(self) -> NDArray[np.int64]:
        """(n_rows,) the request of each; -1: held by the controller."""
    @property
    def held(self) -> list[int]:
        """Rows held by the controller."""
    @property
    def refused(self) -> list[int]:
        """Rows that cannot run, by their requests."""
    @property
    def plannable(self) -> NDArray[np.int64]:
        """(n_plannable,) the other rows."""
    @property
    def classes(self) -> list[int]:
        """Classes in use, as numbered by `find`; `alternatives` has positions in this list."""
    @property
    def names_nodes(self) -> bool:
        """Whether one of the plannable rows requires certain nodes."""
    def alternatives(
        self,
    ) -> tuple[
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.int64],
    ]:
        """For the plannable rows: offsets, class, partition, time limit, fewest and most nodes."""
    def plan(
        self,
        *,
        snapshot: object,
        depth: int,
        select: int,
        rank: NDArray[np.int32],
        class_nodes: NDArray[np.uint64],
        blackouts: tuple[
            NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], NDArray[np.uint64]
        ],
    ) -> NodePlan:
        """Plans the plannable rows in their order, as ``plan_nodes`` does.

        The rows have no latest starts, no row is planned beside the depth, and none requires
        certain nodes.

        Args:
            snapshot: of the lowered jobs; its running jobs, nodes and clock are read by name.
            depth: how many rows may hold a planned start.
            select: a ``Select``.
            rank: (n_nodes,) ``node_rank`` of ``plan_nodes``.
            class_nodes: (n_classes, n_words) bitsets of nodes.
            blackouts: class, start, end and nodes of each.

        Raises:
            ValueError: the columns do not fit together; the text names one.
        """
    @overload
    def planned(
        self, plan: NodePlan
    ) -> tuple[
        NDArray[np.int32],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.int32],
        NDArray[np.int64],
    ]:
        """The same for a plan of the plannable rows in their order."""
    @overload
    def planned(
        self,
        start: NDArray[np.int64],
        alternative: NDArray[np.int32],
        indptr: NDArray[np.int64],
    ) -> tuple[
        NDArray[np.int32],
        NDArray[np.int64],
        NDArray[np.int64],
        NDArray[np.int32],
        NDArray[np.int64],
    ]:
        """The columns of a plan of all rows: job, start, end, partition and offsets.

        Args:
            start: (n_plannable,) s; NEVER and UNPLANNED are none.
            alternative: (n_plannable,) which of the row's own; -1: its first.
            indptr: (n_plannable + 1,) offsets of their nodes.
        """

class RequestTable:
    """The numbered requests of jobs, with their alternatives."""

    def __init__(self) -> None: ...
    def __len__(self) -> int:
        """The number of distinct requests so far."""
    def unite(self, same: list[int]) -> None:
        """Sets which classes have the same nodes now; to be called before `find` returns a new one.

        Args:
            same: (n_classes,) for each the first class with the same nodes.
        """
    @property
    def n_reasons(self) -> int:
        """The number of distinct reasons kept."""
    def tell(
        self,
        lowered: LoweredRows,
        plan: NodePlan,
        order: NDArray[np.int64] | None,
        reasons: list[Any],
        find: Callable[[int, int, int, int], object],
    ) -> None:
        """Fills in why each plannable row waits, for those that do not start now.

        Only for rows that name no nodes and request no licence, without reservations. Most reasons
        depend on few values and are cached.

        Args:
            lowered: by this table.
            plan: of its plannable rows.
            order: (n_plannable,) in which they were planned; None: their own order.
            reasons: (n_rows,) to be filled.
            find: returns a reason; called with a position among the plannable rows, that of the
                alternative judged, the verdict, and how many nodes fit now.
        """
    def lower(
        self,
        jobs: object,
        rows: NDArray[np.int64],
        find: Callable[[int, int], list[tuple[int, int, int, int, int]]],
    ) -> LoweredRows:
        """Lowers rows of pending jobs; about 0.2 us each.

        Args:
            jobs: a table of pending jobs; its columns are read by name.
            rows: (n_rows,) of it.
            find: called with the number of a new request, and a row of `jobs` that has it. Returns
                its alternatives, each a class, a partition, a time limit, and the fewest and most
                nodes. Empty: it cannot run.

        Raises:
            ValueError: the columns do not fit together; the text names one.
        """
