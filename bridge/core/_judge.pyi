# SPDX-License-Identifier: Apache-2.0
"""The judge: the part of `bridge.check.legality` that works on columns."""

import enum
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

class Fault(enum.IntEnum):
    """A rule broken by a row; for the first two, by a job."""

    NO_ROW = 0
    TOO_MANY_STARTS = 1
    """With their number, and the number allowed."""
    NODES_WITHOUT_START = 2
    NO_REASON = 3
    IN_THE_PAST = 4
    HELD_BACK = 5
    BEFORE_BEGIN = 6
    NO_PARTITION = 7
    BEFORE_FIXED = 8
    AFTER_FIXED = 9
    AFTER_DEADLINE = 10
    WRONG_LENGTH = 11
    PARTITION_TIME = 12
    WRONG_WIDTH = 13
    WIDTH_RULE = 14
    """With the number of nodes, and its rule."""
    OUT_OF_ORDER = 15
    UNUSABLE = 16
    PARTITION_DOWN = 17
    """With the one concerned; so for the next two."""
    PARTITION_WIDTH = 18
    PARTITION_UNNAMED = 19
    OUTSIDE = 20
    MISSES_REQUIRED = 21
    WRONG_TASKS = 22
    TASKS_ON_NODE = 23
    TOO_LARGE = 24
    NODE_OVERSUBSCRIBED = 25
    LICENCE_OVERSUBSCRIBED = 26

def judge(
    snapshot: object,
    plan: object,
    matching: Callable[[str], list[NDArray[np.bool_]]],
    want: Callable[[], NDArray[np.int64]] | None,
) -> str | list[tuple[Fault, int, int, int]]:
    """Judges every row of a plan, at every second. O(n log n) in nodes planned.

    Columns are read by name, as in `bridge.model`; other types are converted.

    Args:
        snapshot: the cluster.
        plan: for it.
        matching: (n_nodes,) which nodes match, for each alternative of a constraint.
        want: (nnz, R) amounts of each row on each of its nodes; called once the columns are known
            to fit together. None: as in the columns of its job.

    Returns:
        A message if columns do not fit together; else faults, each with its row (or job), the value
        found and the value allowed, by fault and row.

    Raises:
        ValueError: the snapshot's own columns do not fit together; the text names one.
    """
