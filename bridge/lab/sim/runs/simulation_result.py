# SPDX-License-Identifier: Apache-2.0
"""The result of a simulation, and the progress that is reported during it."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.lab.sim.cluster.plan_application import PlanRefusal
from bridge.lab.sim.corridor.power import PowerLog
from bridge.lab.sim.sharing.running import SharingLog
from bridge.lab.sim.workloads.system import System
from bridge.lab.sim.workloads.workload import Workload
from bridge.measures import ExecutedSchedule, Spells
from bridge.state.accuracy import StartColumns


@dataclass(frozen=True)
class SimulationProgress:
    """The progress of a simulation, reported after every decision."""

    now_s: int
    waiting: int
    running: int
    finished: int
    jobs: int
    used_processors: int
    decision_ms: float


Observe = Callable[[SimulationProgress], None]


@dataclass(frozen=True)
class SimulationResult:
    """The result of a simulation; columns are of length n_jobs, in the workload's order.

    Attributes:
        schedule: starts and ends; of a job that was requeued, those of its last run.
        indptr, nodes: job i held nodes[indptr[i]:indptr[i + 1]]; empty if it never started.
        cancelled: bool: cancelled by a fault, waiting or running.
        restarts: int64: how often it lost a node and was restarted.
        decision_ms: (n_decisions,) float64.
        refusals: starts and plans that the controller did not apply.
        failures: decisions that the decider failed to make and the fallback made.
        starts: every start, in order of time, with the announced one.
        predicted_s: int64: predicted run time of each job at its last start; 0: it never started.
        promise: `PROMISE`: the promise to each job at its last start; zeros: none.
        power: system power over time; None: it was not computed.
        sharing: the effects of shared nodes; None: no job may share.
        spells: the nodes that each job held over time; None: no job changed them while it ran.
        stopped: its backlog was hopeless (`bridge.lab.sim.runs.backlog`), and it was ended early.
    """

    workload: Workload
    system: System
    schedule: ExecutedSchedule
    indptr: NDArray[np.int64]
    nodes: NDArray[np.int32]
    cancelled: NDArray[np.bool_]
    restarts: NDArray[np.int64]
    decision_ms: NDArray[np.float64]
    refusals: tuple[PlanRefusal, ...]
    failures: int
    starts: StartColumns
    promise: NDArray[np.void]
    predicted_s: NDArray[np.int64]
    power: PowerLog | None = None
    sharing: SharingLog | None = None
    spells: Spells | None = None
    stopped: bool = False
