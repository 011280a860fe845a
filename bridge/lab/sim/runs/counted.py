# SPDX-License-Identifier: Apache-2.0
"""A pool that is simulated on counts, decision by decision, with predictions of run times.

The engine's rules for when decisions are made hold (`bridge.lab.sim.runs.engine`), and its results
are given. The predictor learns from jobs that ended since the last decision. Started jobs get their
predicted run time, and jobs that exceeded theirs a longer one
(`bridge.planning.prediction.run_times`). Limits are predicted while the first waiting job has
waited longer than the predictor's patience.
"""

import heapq
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from bridge.dialect import dialect_named
from bridge.lab.sim.cluster.controller import Controller
from bridge.lab.sim.cluster.ended_jobs import EndedJobs
from bridge.lab.sim.runs.backlog import Watch
from bridge.lab.sim.runs.patience import Patience
from bridge.lab.sim.runs.replay import result_of
from bridge.lab.sim.runs.simulation_result import Observe, SimulationProgress, SimulationResult
from bridge.lab.sim.workloads.requests import requests
from bridge.lab.sim.workloads.system import System
from bridge.lab.sim.workloads.workload import Workload
from bridge.model.job import Ending
from bridge.model.layers import Layers
from bridge.model.learnt import Learning, Learnt
from bridge.model.policy import PolicySpec
from bridge.planning.prediction.run_times import EXTENSIONS, Expectation, extended, take_ended
from bridge.registry import build
from bridge.state.accuracy import PROMISE
from bridge.units import NEVER

_ENDS_S, _LIMIT_END_S = attrgetter("ends_s"), attrgetter("limit_end_s")


class Running:
    """A running job: its predicted end, and the basis of the prediction."""

    __slots__ = ("ends_s", "job", "limit_end_s", "predicted_s", "processors", "start_s")

    def __init__(
        self, job: int, start_s: int, *, takes_s: int, limit_s: int, processors: int
    ) -> None:
        self.job, self.start_s, self.processors = job, start_s, processors
        self.ends_s, self.limit_end_s = start_s + takes_s, start_s + limit_s
        self.predicted_s = 0

    def extend(self, now_s: int, extension: str) -> None:
        """Sets the end that is predicted now."""
        if not self.predicted_s:
            self.ends_s = self.limit_end_s
            return
        one = np.array([self.predicted_s]), np.array([now_s - self.start_s])
        self.ends_s = min(self.start_s + int(extended(*one, extension)[0]), self.limit_end_s)


class Counted(ABC):
    """A pool that is simulated on counts, decision by decision; jobs are named by their row.

    Attributes:
        size, free: number of processors, and of free ones.
        waiting: jobs in order of submission.
        start_s: (n_jobs,); NEVER: not yet.
        predicted_s: (n_jobs,) predicted run time of each at its start.
        promised: (n_jobs,) the starts promised to those that have started (`PROMISE`).
        watch: ends the run when the queue is hopeless; None: nothing does.
        observe: called with the progress after every decision.
    """

    def __init__(self, workload: Workload, system: System, spec: PolicySpec) -> None:
        self.workload = workload
        self.jobs = requests(workload, system)
        self.runtime_s: list[int] = workload.runtime_s.tolist()
        self.limit_s: list[int] = workload.time_limit_s.tolist()
        self.processors: list[int] = workload.processors.tolist()
        self.submit_s: list[int] = workload.submit_s.tolist()
        self.free = self.size = system.processors
        self.observe: Observe | None = None
        n_jobs = len(workload)
        self.start_s = np.full(n_jobs, NEVER, dtype=np.int64)
        self.predicted_s = np.zeros(n_jobs, dtype=np.int64)
        self.promised = np.zeros(n_jobs, dtype=PROMISE)
        self.decision_ms: list[float] = []
        self.waiting: list[int] = []
        self.running: dict[int, Running] = {}
        self.watch: Watch | None = None
        self._fresh: list[Running] = []
        self._ended = EndedJobs(self.jobs)
        self._ends: list[tuple[int, int]] = []
        self._submitted = 0
        predictor = build(spec).predict
        self._extension = getattr(predictor, "extension", EXTENSIONS[0])
        self._patience_s = getattr(predictor, "patience_s", None)
        self._only_limits = spec.predict.name == "time-limit"
        self._by_limits = self._only_limits
        self._learnt = Learning(Learnt())
        self._predictor = predictor if isinstance(predictor, Expectation) else None
        if self._predictor is not None:
            controller = Controller(workload, system)
            for job in range(n_jobs):
                controller.submit(job)
            self._traits = self._predictor.waiting(controller.snapshot(0))
            traits = dict(zip(self.jobs.id.tolist(), self._traits, strict=True))
            self._learnt = Learning(Learnt(traits=Layers(traits)))

    @abstractmethod
    def decide(self, now_s: int) -> tuple[list[Running], int]:
        """Starts jobs (`start`), and removes them from `waiting`.

        Returns:
            The started jobs, and the earliest start that was promised for later.
        """

    def result(self, system: System, *, placed: bool) -> SimulationResult:
        """The result of the run, when it has ended.

        Args:
            placed: also determine which nodes each job held.
        """
        return result_of(
            self.workload,
            system,
            start_s=self.start_s,
            promise=self.promised,
            decision_ms=np.array(self.decision_ms, dtype=np.float64),
            predicted_s=self.predicted_s,
            placed=placed,
            stopped=self.watch is not None and self.watch.ended,
        )

    def to_the_end(self) -> None:
        """Runs all jobs, by the engine's rules."""
        patience, wake_s = Patience(), NEVER
        n_jobs = len(self.submit_s)
        while True:
            now_s = min(
                self._ends[0][0] if self._ends else NEVER,
                self.submit_s[self._submitted] if self._submitted < n_jobs else NEVER,
                wake_s,
            )
            if now_s == NEVER or (self.watch is not None and self.watch.hopeless(self.waiting)):
                return
            woken, wake_s, changed = now_s == wake_s, NEVER, 0
            while self._ends and self._ends[0][0] <= now_s:
                self.end(heapq.heappop(self._ends)[1], now_s)
                changed += 1
            while self._submitted < n_jobs and self.submit_s[self._submitted] <= now_s:
                self.waiting.append(self._submitted)
                self._submitted += 1
                changed += 1
            if self.waiting and (changed or woken):
                began = time.perf_counter()
                self._learn(now_s)
                self._fresh, wake_s = self.decide(now_s)
                self.decision_ms.append((time.perf_counter() - began) * 1e3)
                changed += len(self._fresh)
                self._tell(now_s)
            wake_s = patience.wake_s(now_s, wake_s, changed)

    def _tell(self, now_s: int) -> None:
        """Reports the progress."""
        if self.observe is None:
            return
        n_jobs, waiting, running = len(self.submit_s), len(self.waiting), len(self.running)
        finished = self._submitted - waiting - running
        used = self.size - self.free
        took_ms = self.decision_ms[-1]
        self.observe(SimulationProgress(now_s, waiting, running, finished, n_jobs, used, took_ms))

    def end(self, job: int, now_s: int) -> None:
        held = self.running.pop(job)
        self.free += held.processors
        self._ended.add(job, held.start_s, now_s, Ending.COMPLETED)

    def start(self, job: int, now_s: int, takes_s: int) -> Running:
        """Starts a job with this predicted run time."""
        made = Running(
            job, now_s, takes_s=takes_s, limit_s=self.limit_s[job], processors=self.processors[job]
        )
        self.running[job] = made
        self.free -= made.processors
        self.start_s[job], self.predicted_s[job] = now_s, takes_s
        heapq.heappush(self._ends, (now_s + self.runtime_s[job], job))
        return made

    # ------------------------------------------------------------ predictions

    def takes_s(self, job: int) -> int:
        """The predicted run time of a waiting job, now."""
        if self._by_limits:
            return self.limit_s[job]
        if self._predictor is None:
            return self.runtime_s[job]
        expected_s = self._predictor.expect(self._learnt, self._traits[job])
        return min(expected_s or self.limit_s[job], self.limit_s[job])

    def all_take_s(self, jobs: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n,) the same of some."""
        if self._by_limits:
            limit_s: NDArray[np.int64] = self.workload.time_limit_s[jobs]
            return limit_s
        return np.fromiter(map(self.takes_s, jobs.tolist()), np.int64, len(jobs))

    @property
    def end_of(self) -> Callable[[Running], int]:
        """Reads the predicted end of a running job, which may have passed."""
        return _LIMIT_END_S if self._by_limits else _ENDS_S

    def _learn(self, now_s: int) -> None:
        if self._predictor is None:
            return
        ended = self._ended.take()
        if len(ended):
            take_ended(ended, self._learnt, self._predictor, dialect_named(""))
        for one in self._fresh:
            if one.job in self.running:
                one.predicted_s = self._predictor.expect(self._learnt, self._traits[one.job])
                self._learnt.running[self.jobs.id[one.job]] = [one.start_s, one.predicted_s]
                one.extend(now_s, self._extension)
        for one in self.running.values():
            if one.ends_s <= now_s:
                one.extend(now_s, self._extension)
        waits_s = now_s - self.submit_s[self.waiting[0]]
        self._by_limits = self._patience_s is not None and waits_s > self._patience_s
