# SPDX-License-Identifier: Apache-2.0
"""CP-SAT in this process: a model in, the best solution out.

Rules
    1. One worker, so that the same model, effort and seed give the same answer anywhere.
    2. `effort` is CP-SAT's deterministic time, about a second per unit on a machine of 2020. The
       search ends when `effort` or `budget_s` is spent.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from bridge.model.decisions.answer import INFEASIBLE, TIMEOUT, Answer
from bridge.ports import SolverRequest

Incumbent = Callable[[NDArray[np.int64], float, float], None]
"""Called with each better solution: its values, its objective, the bound."""


class InProcess:
    """A solver in this process, bounded by effort only: for tests and replays."""

    def warm_up(self) -> None:
        """There is nothing to wait for."""

    def begin(self) -> None:
        """There is no clock here."""

    def elapsed_s(self) -> float:
        """No time passes."""
        return 0.0

    def alarm(self, left_s: float) -> None:
        """There is no clock here."""

    def solve(self, request: SolverRequest) -> Answer:
        """See `bridge.ports.Solver`."""
        return run(
            request.model,
            effort=request.effort,
            budget_s=request.budget_s,
            seed=request.seed,
            search=request.search,
        )


class _Told(cp_model.CpSolverSolutionCallback):
    def __init__(self, incumbent: Incumbent) -> None:
        super().__init__()
        self._incumbent = incumbent

    def on_solution_callback(self) -> None:
        values = np.array(self.response_proto.solution, dtype=np.int64)
        self._incumbent(values, self.objective_value, self.best_objective_bound)


def run(
    model: cp_model.CpModel,
    *,
    effort: float,
    budget_s: float,
    seed: int,
    search: str = "",
    incumbent: Incumbent | None = None,
) -> Answer:
    """Minimises a model.

    Args:
        effort: deterministic time; 0: no bound.
        budget_s: wall-clock time; 0: no bound.
        search: further parameters of CP-SAT, in their text form.
        incumbent: see `Incumbent`.
    """
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed % (1 << 31)
    if effort:
        solver.parameters.max_deterministic_time = effort
    if budget_s:
        solver.parameters.max_time_in_seconds = budget_s
    if search:
        solver.parameters.merge_text_format(search)
    status = solver.solve(model, _Told(incumbent) if incumbent else None)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Answer(None, problem=INFEASIBLE if status == cp_model.INFEASIBLE else TIMEOUT)
    return Answer(
        np.array(solver.response_proto.solution, dtype=np.int64),
        solver.objective_value,
        solver.best_objective_bound,
        proved=status == cp_model.OPTIMAL,
    )
