# SPDX-License-Identifier: Apache-2.0
"""The solver for policies outside of the service."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from bridge.lab.sim.recorded.rerun import Rerun, rerun
from bridge.model.decisions.answer import STARTING
from bridge.model.policy import PolicySpec
from bridge.recording.recordings import Recording
from bridge.solver_process import ChildSolver

_MAX_STARTING_S = 60.0


@contextmanager
def a_solver() -> Iterator[ChildSolver]:
    """A killable solver process; it starts with the first model, and ends with the block."""
    solver = ChildSolver()
    try:
        yield solver
    finally:
        solver.close()


def rerun_warm(
    recording: Recording,
    spec: PolicySpec,
    *,
    seed: int | None,
    solver: ChildSolver,
    planning: Mapping[str, object] | None = None,
) -> Rerun:
    """Plans a recorded cycle again; if its solver was not ready, once more when it is."""
    again = rerun(recording, spec, seed=seed, solver=solver, planning=planning)
    done = again.telemetry.dispatched
    if done is not None and done.fallback == STARTING:
        solver.wait_ready(_MAX_STARTING_S)
        again = rerun(recording, spec, seed=seed, solver=solver, planning=planning)
    return again
