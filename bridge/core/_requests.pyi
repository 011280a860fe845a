# SPDX-License-Identifier: Apache-2.0
"""What waiting jobs ask for, numbered: jobs that ask alike have one number, in every cycle."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    def asked(self) -> NDArray[np.int64]:
        """(n_asked,) the others."""
    @property
    def classes(self) -> list[int]:
        """Classes in use, as `find` named them; those of `alternatives` are positions here."""
    @property
    def names_nodes(self) -> bool:
        """Whether one of the asked rows must have certain nodes."""
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
        """Of the asked rows: offsets, class, partition, time limit, fewest and most nodes."""
    def columns(self) -> dict[str, Any]:
        """What ``plan_nodes`` takes of them, but for the nodes they must have.

        No start is too late for any of them, and none is planned beside the depth.
        """
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
            start: (n_asked,) s; NEVER and UNPLANNED are none.
            alternative: (n_asked,) which of the row's own; -1: its first.
            indptr: (n_asked + 1,) offsets of their nodes.
        """

class RequestTable:
    """Remembers what jobs asked for, and what was found for them."""

    def __init__(self) -> None: ...
    def __len__(self) -> int:
        """How many different requests there have been."""
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
