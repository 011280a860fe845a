# SPDX-License-Identifier: Apache-2.0
"""How simulated jobs run from their start to their end: work, changes of width, time in MPI."""

import heapq
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bridge.lab.sim.cluster.allocation import Allocation
from bridge.lab.sim.cluster.controller import Controller
from bridge.lab.sim.runs.mpi_reports import MpiReports
from bridge.lab.sim.runs.work import Work
from bridge.lab.sim.sharing.running import SharingLog
from bridge.lab.sim.workloads.workload import Workload
from bridge.measures import Spells
from bridge.model.node import CPUS
from bridge.model.plan import Plan
from bridge.units import NEVER


class Execution:
    """The running jobs of a simulated controller.

    Attributes:
        held_s: (n_jobs,) int64, processor seconds that each job held up to the last change of its
            allocation; None: no job changes its width.
    """

    def __init__(self, controller: Controller, workload: Workload) -> None:
        self._controller, self._workload = controller, workload
        self._work = Work(workload)
        self._reports = MpiReports(workload.malleable, self._work)
        self._ends: list[tuple[int, int, int, Allocation]] = []
        self._pushed = 0
        self.held_s = (
            None if workload.malleable is None else np.zeros(len(workload), dtype=np.int64)
        )
        self._holds: dict[int, tuple[int, int, NDArray[np.int32]]] = {}
        self._spells: list[tuple[int, int, int, NDArray[np.int32]]] = []
        self._changes: list[tuple[int, int]] = []

    def next_s(self) -> int:
        """When a job ends, has completed a change of width, or is in another phase."""
        return min(
            self._ends[0][0] if self._ends else NEVER,
            NEVER if self._workload.malleable is None else self._controller.adaptations.next_s(),
            self._reports.next_s(),
        )

    def start(self, job: int, now_s: int) -> None:
        """Starts a job that has started in the controller."""
        if self._workload.malleable is None:
            self._expect_end(job, now_s + int(self._workload.runtime_s[job]))
            return
        width = len(self._controller.running[job].nodes)
        self._work.start(job, width, now_s)
        if width != self._workload.malleable.nominal[job]:
            self._controller.set_limit(job, self._work.limit_s(job))
        self._account(job, now_s)
        self._expect_end(job, self._work.end_s(job))
        self._follow(job, now_s)

    def resize(self, job: int, now_s: int) -> None:
        """A job has begun to change its width; it stands still for some of the change."""
        held = self._controller.running[job]
        change = held.adaptation
        assert change is not None
        self._account(job, now_s)
        self._work.resize(job, len(held.nodes), now_s, change.goes_on_s, change.still_s)
        self._controller.set_limit(job, self._work.limit_s(job))
        self._expect_end(job, self._work.end_s(job))
        self._follow(job, now_s)

    @property
    def sharing(self) -> SharingLog | None:
        """The record of sharing; None: no job may share its nodes."""
        return None

    @property
    def pairs(self) -> int:
        """How many hosts have a guest."""
        return 0

    def share(self, plan: Plan, now_s: int) -> int:
        """Puts the quotas of a plan into force; returns how many jobs they change."""
        del plan, now_s
        return 0

    def completed(self, job: int, now_s: int) -> bool:
        """Whether a job that ends has done its work; by the trace it was killed at its limit."""
        del now_s
        return bool(self._workload.runtime_s[job] < self._workload.time_limit_s[job])

    def stop(self, job: int, now_s: int, *, requeued: bool = False) -> None:
        """Ends a job that has ended or lost its nodes in the controller."""
        del requeued
        self._reports.forget(job)
        self._account(job, now_s)

    def take_ended(self, now_s: int) -> Iterator[int]:
        """Yields the jobs that have done their work by now; the caller ends each in turn."""
        while self._ends and self._ends[0][0] <= now_s:
            _, job, _, held = heapq.heappop(self._ends)
            # An end is obsolete if that run is over already: cancelled, ended early, requeued.
            if self._controller.running.get(job) is held:
                yield job

    def go_on(self, now_s: int) -> int:
        """Completes changes of width, and tells the controller significantly new times in MPI.

        Returns:
            How many of both there were.
        """
        return self._finish_adaptations(now_s) + self._measure(now_s)

    def _finish_adaptations(self, now_s: int) -> int:
        if self._workload.malleable is None:
            return 0
        done = self._controller.adaptations.finish(now_s)
        for job in done:
            self._account(job, now_s)
            self._expect_end(job, self._work.end_s(job))
        return len(done)

    def _account(self, job: int, now_s: int) -> None:
        """Adds what a job has held so far to its sum, as its allocation changes."""
        if self.held_s is None:
            return
        before = self._holds.pop(job, None)
        if before is not None:
            since_s, processors, nodes = before
            self.held_s[job] += processors * (now_s - since_s)
            self._changes.append((now_s, -processors))
            self._spells.append((job, since_s, now_s, nodes))
        if (held := self._controller.running.get(job)) is not None:
            use = int(self._controller.guests.taken(held)[:, CPUS].sum())
            if held.adaptation is not None:
                use += int(held.adaptation.use[:, CPUS].sum())
            self._holds[job] = now_s, use, _nodes_of(held)
            self._changes.append((now_s, use))

    @property
    def spells(self) -> Spells | None:
        """The nodes that each job held over time; None: no job changes its width."""
        return None if self.held_s is None else Spells.of(self._spells)

    @property
    def busy(self) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
        """Instants and the processors held from each on; None: no job changes its width."""
        if self.held_s is None:
            return None
        at_s, change = np.array(self._changes, dtype=np.int64).reshape(-1, 2).T
        instants, of = np.unique(at_s, return_inverse=True)
        used = np.zeros(len(instants), dtype=np.int64)
        np.add.at(used, of.reshape(-1), change)
        return instants, np.cumsum(used)

    def _expect_end(self, job: int, end_s: int) -> None:
        """Schedules the end of a job, unless its allocation changes before."""
        self._pushed += 1
        heapq.heappush(self._ends, (end_s, job, self._pushed, self._controller.running[job]))

    def _follow(self, job: int, now_s: int) -> None:
        """Tells the controller the time in MPI of a job with phases."""
        mtct = self._reports.follow(job, len(self._controller.running[job].nodes), now_s)
        if mtct is not None:
            self._controller.measure(job, mtct)

    def _measure(self, now_s: int) -> int:
        renewed = self._reports.renewed(now_s)
        for job, mtct in renewed.items():
            self._controller.measure(job, mtct)
        return len(renewed)


def _nodes_of(held: Allocation) -> NDArray[np.int32]:
    """All nodes of a job, with those that it is giving back."""
    if held.adaptation is None:
        return held.nodes
    return np.sort(np.concatenate((held.nodes, held.adaptation.nodes)))
