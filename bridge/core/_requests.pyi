# SPDX-License-Identifier: Apache-2.0
"""What waiting jobs ask for, numbered: jobs that ask alike have one number, in every cycle."""

from collections.abc import Callable
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from bridge.core._core import NodePlan

class LoweredRows:
    """The rows of one cycle: which can be planned, and how."""

    @property
    def number(self) -> NDArray[np.int64]:
        """(n_rows,) the request of each; -1: the controller holds it back."""
    @property
    def held(self) -> list[int]:
        """Rows that the controller holds back."""
    @property
    def refused(self) -> list[int]:
        """Rows that cannot run, by their requests."""
    @property
    def plannable(self) -> NDArray[np.int64]:
        """(n_plannable,) the others."""
    @property
    def classes(self) -> list[int]:
        """Classes in use, as `find` named them; those of `alternatives` are positions here."""
    @property
    def names_nodes(self) -> bool:
        """Whether one of the plannable rows must have certain nodes."""
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
        """Of the plannable rows: offsets, class, partition, time limit, fewest and most nodes."""
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

        No start is too late for any of them, none is planned beside the depth, and none must have
        certain nodes.

        Args:
            snapshot: whose jobs were lowered; what runs, nodes and clock are taken by their names.
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
        """The same of a plan of the plannable rows in their order."""
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
    """Remembers what jobs asked for, and what was found for them."""

    def __init__(self) -> None: ...
    def __len__(self) -> int:
        """How many different requests there have been."""
    def unite(self, same: list[int]) -> None:
        """Says which classes have the same nodes now; before `find` tells of a new one.

        Args:
            same: (n_classes,) of each the first that has.
        """
    @property
    def n_reasons(self) -> int:
        """How many different reasons are kept."""
    def tell(
        self,
        lowered: LoweredRows,
        plan: NodePlan,
        order: NDArray[np.int64] | None,
        reasons: list[Any],
        find: Callable[[int, int, int, int], object],
    ) -> None:
        """Fills in why each asked row of a plan waits that does not start now.

        Meant for rows that name no nodes and want no licence, without reservations: of most
        verdicts the words depend on little, and are kept.

        Args:
            lowered: by this table.
            plan: of its plannable rows.
            order: (n_plannable,) in which they were planned; None: as they stand.
            reasons: (n_rows,) to be filled.
            find: says it in words; called with a position among the plannable rows, that of the
                alternative which was judged, the verdict, and how many nodes fit now.
        """
    def lower(
        self,
        jobs: object,
        rows: NDArray[np.int64],
        find: Callable[[int, int], list[tuple[int, int, int, int, int]]],
    ) -> LoweredRows:
        """Lowers rows of waiting jobs; about 0.2 us each.

        Args:
            jobs: a table of waiting jobs; its columns are taken by their names.
            rows: (n_rows,) of it.
            find: called with the number of a request that is new, and a row of `jobs` that has it.
                Returns its alternatives, each a class, a partition, a time limit, and the fewest
                and most nodes. None at all: it cannot run.

        Raises:
            ValueError: the columns do not fit together; the text names one.
        """
