# SPDX-License-Identifier: Apache-2.0
"""The solver that policies are run with outside of the service."""

from collections.abc import Iterator
from contextlib import contextmanager

from bridge.ports import Solver
from bridge.solving import ChildSolver


@contextmanager
def a_solver() -> Iterator[Solver]:
    """A killable solver; its process starts when the first model comes, and ends with the block."""
    solver = ChildSolver()
    try:
        yield solver
    finally:
        solver.close()
