# SPDX-License-Identifier: Apache-2.0
"""A stage of a workflow, and data that is the same on every machine."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Stage:
    """One job of a workflow.

    Attributes:
        work: of the task, the size and the folder; returns a result that does not depend on the
            number of tasks.
        parallel: it has a task on each core; otherwise one.
        expected: of the size; the right result.
    """

    name: str
    work: Callable[..., Any]
    parallel: bool
    expected: Callable[[int], Any]


def noise(kind: str, number: int, count: int) -> bytes:
    """Bytes that look random, and follow from their name."""
    return hashlib.shake_128(f"{kind} {number}".encode()).digest(count)
