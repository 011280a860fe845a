# SPDX-License-Identifier: Apache-2.0
"""The static contiguous strategy (SCAS) as the paper's 0-1 program, solved by CP-SAT or by SCIP.

An oracle for the dynamic programme of `contiguous-exact`, and a way to reproduce the paper's times.

Terms
    run       consecutive idle nodes by number, wrapping round at the end; run (j, i) has as many
              nodes as job j wants, from the i-th idle node on.
    y(j, i)   1 if job j is placed on run (j, i).
    x(j, k)   1 if job j has the k-th idle node.

Rules
    1. Minimise the total cost (2); one run for each job (3); a run's nodes belong to the job (4).
       A node belongs to at most one job, which the paper states without an equation.
    2. A job may be left out, at a cost above that of all placements. So there is a solution even if
       the solver is stopped early or the jobs do not fit.
    3. SCIP gets the equations as they are. CP-SAT gets no x, but the equivalent constraint that at
       most one of the runs over a node is taken.
    4. There are no runs across fabrics.

Source: Lan et al. (see `bridge.model.hop_tree`), equations 2 to 5. Leaving jobs out is
    what the public code counts as "Cancel" in table IV.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.model.hop_tree import HopTree, NodeSets


@dataclass(frozen=True)
class Program:
    """The data of one window.

    Attributes:
        idle: (n,) ascending.
        sizes: (n_jobs,) as requested.
        costs: (n_jobs, n) of each run; infinite: there is none.
    """

    idle: NDArray[np.int32]
    sizes: NDArray[np.int32]
    costs: NDArray[np.float64]

    @staticmethod
    def of(hop_tree: HopTree, idle: NDArray[np.int32], sizes: NDArray[np.int32]) -> "Program":
        """Costs all runs of all jobs."""
        n = len(idle)
        costs = np.full((len(sizes), n), np.inf)
        for job, size in enumerate(sizes.tolist()):
            if 0 < size <= n:
                # Consecutive runs differ in one node.
                starts = n if size < n else 1
                runs = (np.arange(starts)[:, np.newaxis] + np.arange(size)) % n
                indptr = np.arange(0, starts * size + 1, size, dtype=np.int64)
                nodes = np.sort(idle[runs], axis=1).ravel()
                costs[job, :starts] = hop_tree.costs((indptr, np.ascontiguousarray(nodes)))
        return Program(idle, sizes, costs)

    @property
    def runs(self) -> list[tuple[int, int]]:
        """All (j, i) that exist."""
        jobs, firsts = np.nonzero(np.isfinite(self.costs))
        return list(zip(jobs.tolist(), firsts.tolist(), strict=True))

    @property
    def price(self) -> int:
        """The cost of leaving a job out: more than the costliest placement of all jobs."""
        dearest = np.where(np.isfinite(self.costs), self.costs, 0.0).max(axis=1, initial=0.0)
        return int(np.ceil(dearest.sum())) + 1

    def places(self, job: int, first: int) -> list[int]:
        """Positions in `idle` of a run's nodes."""
        return [(first + step) % len(self.idle) for step in range(int(self.sizes[job]))]

    def sets(self, chosen: list[tuple[int, int]]) -> NodeSets:
        """The node sets of some runs; jobs without one have none."""
        first = dict(chosen)
        taken = [
            np.sort(self.idle[self.places(job, first[job])]) if job in first else self.idle[:0]
            for job in range(len(self.sizes))
        ]
        indptr = np.cumsum([0, *map(len, taken)], dtype=np.int64)
        return indptr, np.concatenate([self.idle[:0], *taken])


Solve = Callable[[Program, float], list[tuple[int, int]]]
"""Given a program and a time limit, s (0: none), gives the runs taken."""


def by_cp_sat(program: Program, limit_s: float = 0.0) -> list[tuple[int, int]]:
    """Solves a program by CP-SAT with one worker; costs are rounded to thousandths."""
    from ortools.sat.python import cp_model  # noqa: PLC0415 (a second to load)

    model = cp_model.CpModel()
    y = {run: model.new_bool_var("") for run in program.runs}
    over: list[list[Any]] = [[] for _ in program.idle]
    of: list[list[Any]] = [[] for _ in program.sizes]
    for (job, first), taken in y.items():
        of[job].append(taken)
        for place in program.places(job, first):
            over[place].append(taken)
    for several in [*of, *over]:
        model.add_at_most_one(several)
    gain = {run: round(1000 * (program.price - float(program.costs[run]))) for run in program.runs}
    model.maximize(sum(gain[run] * taken for run, taken in y.items()))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    if limit_s:
        solver.parameters.max_time_in_seconds = limit_s
    if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return []
    return [run for run, taken in y.items() if solver.boolean_value(taken)]


def by_scip(program: Program, limit_s: float = 0.0) -> list[tuple[int, int]]:
    """Solves a program by SCIP, equation by equation.

    Raises:
        ConfigError: PySCIPOpt is not installed.
    """
    try:
        from pyscipopt import Model, quicksum  # noqa: PLC0415 (for cross-checks alone)
    except ImportError:
        raise ConfigError("SCIP", "needs the package pyscipopt: pip install pyscipopt") from None
    model = Model()
    model.hideOutput()
    jobs, places = range(len(program.sizes)), range(len(program.idle))
    y = {run: model.addVar(vtype="B", obj=float(program.costs[run])) for run in program.runs}
    x = {(job, place): model.addVar(vtype="B") for job in jobs for place in places}
    left_out = [model.addVar(vtype="B", obj=float(program.price)) for _ in jobs]
    of: list[list[Any]] = [[] for _ in jobs]
    for (job, first), taken in y.items():
        of[job].append(taken)
        for place in program.places(job, first):
            model.addCons(taken <= x[job, place])
    for job in jobs:
        model.addCons(quicksum([*of[job], left_out[job]]) == 1)
    for place in places:
        model.addCons(quicksum(x[job, place] for job in jobs) <= 1)
    if limit_s:
        model.setParam("limits/time", limit_s)
    model.optimize()
    best = model.getBestSol() if model.getNSols() else None
    return [] if best is None else [run for run, taken in y.items() if best[taken] > 0.5]


@dataclass(frozen=True)
class BySolver:
    """A placer that calls a solver.

    Attributes:
        solve: `by_cp_sat` or `by_scip`.
        limit_s: its time limit, without the construction of the program; 0: none.
    """

    solve: Solve
    limit_s: float = 0.0

    def place_jobs(
        self,
        hop_tree: HopTree,
        idle: NDArray[np.int32],
        sizes: NDArray[np.int32],
        rng: np.random.Generator,
    ) -> NodeSets:
        """Returns node sets for jobs that start together, as a `JointPlacer` does."""
        del rng  # exact
        program = Program.of(hop_tree, idle, sizes)
        return program.sets(self.solve(program, self.limit_s))
