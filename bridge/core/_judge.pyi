# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a plan: the part of `bridge.check.legality` that goes through columns."""

import enum
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

class Fault(enum.IntEnum):
    """A rule broken by a row; by a job, the first two."""

    NO_ROW = 0
    TOO_MANY_STARTS = 1
    """And how many there are, and may be."""
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
    """And how many nodes it has, and its rule."""
    OUT_OF_ORDER = 15
    UNUSABLE = 16
    PARTITION_DOWN = 17
    """And which one; so with the next two."""
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

    Columns are taken by their names, as `bridge.model` has them; another type is converted.

    Args:
        snapshot: the world.
        plan: for it.
        matching: (n_nodes,) which nodes match, for each alternative of a constraint.
        want: (nnz, R) what each row takes of each of its nodes; asked for once the columns are
            known to fit together. None: what the columns of its job say.

    Returns:
        What does not even fit together, in words; else faults, each with its row (or job) and what
        is found there and allowed, by fault and row.

    Raises:
        ValueError: the snapshot's own columns do not fit together; the text names one.
    """
