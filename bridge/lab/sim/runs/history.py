# SPDX-License-Identifier: Apache-2.0
"""What has happened to each job of a simulation, and the outcome made of it."""

import numpy as np
from numpy.typing import NDArray

from bridge.lab.sim.cluster.allocation import Allocation
from bridge.lab.sim.cluster.plan_application import PlanRefusal
from bridge.lab.sim.corridor.power import PowerLog
from bridge.lab.sim.runs.execution import Execution
from bridge.lab.sim.runs.simulation_result import SimulationResult
from bridge.lab.sim.workloads.system import System
from bridge.lab.sim.workloads.workload import Workload
from bridge.measures import ExecutedSchedule
from bridge.state.accuracy import PROMISE, PromiseColumns, StartColumns
from bridge.units import NEVER


class RunHistory:
    """Starts, ends, allocations and announced starts; columns are in the workload's order.

    Attributes:
        start_s: int64: the last start; NEVER: the job waits.
        cancelled: bool.
        finished: how many jobs ended after a start.
        failures: decisions that the fallback made.
    """

    def __init__(self, workload: Workload, system: System, lags: bool) -> None:
        """Starts with no job submitted.

        Args:
            lags: whether decisions take time.
        """
        self._workload, self._system = workload, system
        n_jobs = len(workload)
        self.start_s = np.full(n_jobs, NEVER, dtype=np.int64)
        self._submit_s = workload.submit_s.copy()
        self._end_s = np.full(n_jobs, NEVER, dtype=np.int64)
        self.cancelled = np.zeros(n_jobs, dtype=bool)
        self._restarts = np.zeros(n_jobs, dtype=np.int64)
        self._allocations: list[NDArray[np.int32]] = [np.zeros(0, dtype=np.int32)] * n_jobs
        self._predicted_s = np.zeros(n_jobs, dtype=np.int64)
        self._lag_s = np.zeros(n_jobs) if lags else None
        self._promises = PromiseColumns(n_jobs)
        self._promised = np.zeros(n_jobs, dtype=PROMISE)
        self._began: list[tuple[int, NDArray[np.void]]] = []
        self._gone = self.finished = self.failures = 0
        self.decision_ms: list[float] = []

    def release(self, job: int, now_s: int) -> None:
        """A job that waited for others is submitted."""
        self._submit_s[job] = max(self._submit_s[job], now_s)

    def start(self, job: int, held: Allocation, now_s: int) -> None:
        self.start_s[job] = now_s
        self._allocations[job] = held.nodes
        self._predicted_s[job] = held.predicted_s

    def resize(self, job: int, held: Allocation) -> None:
        """A running job has other nodes."""
        self._allocations[job] = held.nodes

    def end(self, job: int, now_s: int) -> None:
        self._end_s[job] = now_s
        self.finished += 1

    def restart(self, job: int) -> None:
        """A running job is requeued."""
        self.start_s[job] = NEVER
        self._restarts[job] += 1

    def leave(self, job: int) -> None:
        """A waiting job is cancelled."""
        promise = self._promises.take(np.array([job]))
        self._gone += int((promise["first_start_s"] != 0).sum())

    def carry_out(self, started: list[int], now_s: int, lag_s: float) -> None:
        """A plan was applied: records for each started job its delay and its announced start.

        Args:
            lag_s: delay of the decision beyond whole seconds.
        """
        if self._lag_s is not None:
            self._lag_s[started] = lag_s
        if started:
            taken = self._promises.take(np.array(started))
            self._promised[started] = taken
            self._began.append((now_s, taken))

    def announce(self, jobs: NDArray[np.intp], start_s: NDArray[np.int64], now_s: int) -> None:
        """Records the starts announced to those of the jobs that wait."""
        if not len(jobs):
            return
        waits = self.start_s.take(jobs) == NEVER
        if np.count_nonzero(waits) == len(jobs):
            self._promises.announce(jobs, start_s, now_s)
        elif np.count_nonzero(waits):
            self._promises.announce(jobs[waits], start_s[waits], now_s)

    def result(
        self, execution: Execution, refusals: list[PlanRefusal], power: PowerLog | None
    ) -> SimulationResult:
        """The result of the simulation.

        Args:
            power: system power over time; None: it was not computed.
        """
        workload, allocations = self._workload, self._allocations
        widths = np.fromiter(map(len, allocations), dtype=np.int64, count=len(workload))
        return SimulationResult(
            workload,
            self._system,
            ExecutedSchedule(
                self._system.processors,
                self._submit_s,
                self.start_s,
                self._end_s,
                workload.processors,
                self._lag_s,
                execution.held_s,
                execution.busy,
            ),
            np.concatenate(([0], np.cumsum(widths))).astype(np.int64),
            np.concatenate(allocations),
            self.cancelled,
            self._restarts,
            np.array(self.decision_ms, dtype=np.float64),
            tuple(refusals),
            self.failures,
            self._starts(),
            self._promised,
            self._predicted_s,
            power,
            execution.sharing,
            execution.spells,
        )

    def _starts(self) -> StartColumns:
        kept = [np.zeros(0, dtype=PROMISE), *(promise for _, promise in self._began)]
        at_s = np.array([at_s for at_s, _ in self._began], dtype=np.int64)
        starts = at_s.repeat([len(promise) for _, promise in self._began])
        return StartColumns(starts, np.concatenate(kept, dtype=PROMISE), self._gone)
