# SPDX-License-Identifier: Apache-2.0
"""Where a row of a cycle is placed, and why it waits: in this plan, and in the one before."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.core import Blocked
from bridge.model.reasons import Reason
from bridge.planning.queue.layouts import Layout


@dataclass(frozen=True, slots=True)
class WaitingRow:
    """A row that does not start now, and why.

    Attributes:
        start_s: its start in the plan; NEVER: none.
        blocked: why it does not start now.
        constraint: of the book, for `Blocked.COUNTER` and `NEVER_COUNTER`; -1: none.
        partition: of the candidate that was judged.
        nodes: that it wants there.
        reason: its limits refuse it; otherwise None.
        passed_over: it is beyond the depth: only a start now was looked for.
    """

    start_s: int
    blocked: int
    constraint: int
    partition: int
    nodes: int
    reason: Reason | None = None
    passed_over: bool = False


@dataclass(frozen=True, slots=True)
class Placement:
    """A row's placement in a former plan.

    Attributes:
        start_s: announced.
        alternative: which of the job's own.
        layout_index: which of the alternative's layouts, and the layout.
        nodes, groups, chunks: as the book has them.
        late: it is its latest start.
        blocked, constraint_key: why it could not start when it was placed here.
    """

    start_s: int
    alternative: int
    layout_index: int
    layout: Layout
    nodes: NDArray[np.int32]
    groups: NDArray[np.int32]
    chunks: NDArray[np.int32]
    late: bool = False
    blocked: int = int(Blocked.NODES_BUSY)
    constraint_key: str = ""
