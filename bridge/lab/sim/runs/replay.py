# SPDX-License-Identifier: Apache-2.0
"""Replays a whole trace in one call of the C++ kernel, where that gives the engine's results.

It does if only counts matter: a pool of identical one-processor nodes, jobs in order of submission,
backfilling with a depth, by time limits, no faults. The order `slurm` is the order of submission
here, because the simulated controller's priorities fall with it; placement cannot change starts.
`tests/unit/lab/sim/test_replay.py` compares both engines.
"""

import numpy as np
from numpy.typing import NDArray

from bridge.core import UNLIMITED, map_counts, replay_counts
from bridge.lab.sim.runs.simulation_result import SimulationResult
from bridge.lab.sim.workloads.system import System
from bridge.lab.sim.workloads.workload import Workload
from bridge.measures import ExecutedSchedule
from bridge.model.policy import PolicySpec
from bridge.state.accuracy import PROMISE, StartColumns
from bridge.units import NEVER

_DEPTHS = {"easy": 1, "conservative": UNLIMITED}


def replay_depth(spec: PolicySpec, system: System) -> int | None:
    """The depth at which the kernel replays a policy; None if only the cycle can."""
    if (
        not system.pool
        or spec.order.name not in ("fcfs", "slurm")
        or spec.order.parameters
        or spec.plan.name not in _DEPTHS
        or not spec.plan.parameters.keys() <= {"depth"}
        or (spec.predict.name, spec.reshape.name, spec.share.name) != ("time-limit", "none", "none")
    ):
        return None
    if "depth" not in spec.plan.parameters:
        return _DEPTHS[spec.plan.name]
    depth = spec.plan.parameters["depth"]
    return depth if isinstance(depth, int) else UNLIMITED


def replay(
    workload: Workload, system: System, depth: int, *, placed: bool = False
) -> SimulationResult:
    """Replays a workload on a pool.

    Args:
        depth: how many jobs may hold a planned start, see `replay_depth`.
        placed: also find out which nodes each job held.
    """
    found = replay_counts(
        workload.submit_s,
        workload.runtime_s,
        workload.time_limit_s,
        workload.processors,
        system.processors,
        depth,
    )
    return result_of(
        workload,
        system,
        start_s=found.start,
        promise=found.promises.view(PROMISE),
        decision_ms=found.decision_ns / 1e6,
        predicted_s=np.where(found.start == NEVER, 0, workload.time_limit_s),
        placed=placed,
    )


def result_of(
    workload: Workload,
    system: System,
    *,
    start_s: NDArray[np.int64],
    promise: NDArray[np.void],
    decision_ms: NDArray[np.float64],
    predicted_s: NDArray[np.int64],
    placed: bool,
    stopped: bool = False,
) -> SimulationResult:
    """The outcome of a replay on counts.

    Args:
        workload: the jobs; all columns below are of their length.
        promise: see `SimulationResult.promise`.
        decision_ms: (n_decisions,).
        predicted_s: see `SimulationResult.predicted_s`.
        placed: also find out which nodes each job held.
        stopped: see `SimulationResult.stopped`.
    """
    n_jobs = len(workload)
    end_s = np.where(start_s == NEVER, NEVER, start_s + workload.runtime_s)
    indptr, nodes = np.zeros(n_jobs + 1, dtype=np.int64), np.zeros(0, dtype=np.int32)
    if placed:
        nobody = np.zeros(0, dtype=np.int64)
        indptr, nodes = map_counts(
            system.processors,
            start_s,
            end_s,
            workload.processors,
            nobody,
            np.zeros(1, dtype=np.int64),
            np.zeros(0, dtype=np.int32),
        )
    return SimulationResult(
        workload,
        system,
        ExecutedSchedule(system.processors, workload.submit_s, start_s, end_s, workload.processors),
        indptr,
        nodes,
        cancelled=np.zeros(n_jobs, dtype=bool),
        restarts=np.zeros(n_jobs, dtype=np.int64),
        decision_ms=decision_ms,
        refusals=(),
        failures=0,
        starts=_starts(start_s, promise),
        promise=promise,
        predicted_s=predicted_s,
        stopped=stopped,
    )


def _starts(start_s: NDArray[np.int64], promise: NDArray[np.void]) -> StartColumns:
    """Starts in order of time, in the engine's form."""
    order = np.argsort(start_s, kind="stable")
    order = order[start_s[order] != NEVER]
    return StartColumns(start_s[order], promise[order])
