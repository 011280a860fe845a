# SPDX-License-Identifier: Apache-2.0
"""The execution of simulated jobs that may share nodes: speeds, limits, ends, and measurements.

Rules
    1. An end is recomputed when a pairing begins or ends, or its quotas change.
    2. Quotas and weights are those of the last plan; a job that it does not name has none. Time
       limits are lengthened as it says.
    3. Policies see exact CPU time, busy CPUs and maximum memory of running jobs, at each decision.
"""

import heapq
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.sharing.part import shared_of
from bridge.lab.sim.cluster.controller import Controller
from bridge.lab.sim.runs.execution import Execution
from bridge.lab.sim.sharing.progress import CpuLimits, Meets
from bridge.lab.sim.sharing.running import SharedRunning, SharingLog, limits_of
from bridge.lab.sim.workloads.workload import Workload
from bridge.model.node import CPUS, MEMORY_MIB
from bridge.model.plan import Plan
from bridge.units import NEVER


class SharedExecution(Execution):
    """The running jobs of a simulated controller, some of which share their nodes."""

    def __init__(self, controller: Controller, workload: Workload) -> None:
        """Lets the controller report the measurements.

        Args:
            workload: with `Workload.sharing`, and without malleable jobs.
        """
        super().__init__(controller, workload)
        assert workload.sharing is not None
        self._running = SharedRunning(workload.sharing, workload.runtime_s, workload.time_limit_s)
        self._due: list[tuple[int, int, int]] = []
        self._latest: dict[int, int] = {}
        self.held_s = np.zeros(len(workload), dtype=np.int64)
        controller.readings = self._read

    @property
    def sharing(self) -> SharingLog | None:
        return self._running.log

    @property
    def pairs(self) -> int:
        """How many guests there are."""
        return self._running.pairs

    def next_s(self) -> int:
        """When a job may end."""
        return self._due[0][0] if self._due else NEVER

    def start(self, job: int, now_s: int) -> None:
        """Starts a job that has started in the controller."""
        held = self._controller.running[job]
        host = held.host if held.host >= 0 else None
        self._running.start(job, int(held.use[:, CPUS].sum()), len(held.nodes), now_s)
        if host is not None:
            nodes, head = held.nodes, int(self._controller.running[host].nodes[0])
            meets = Meets(bool((nodes == head).any()), int(nodes[0]) == head)
            self._running.pair(host, job, now_s, meets)
        self._account(job, now_s)
        for each in (job, *self._running.beside(job)):
            self._expect(each, now_s)

    def stop(self, job: int, now_s: int, *, requeued: bool = False) -> None:
        """Ends a job that has ended or lost its nodes in the controller."""
        beside = self._running.beside(job)
        self._running.stop(job, now_s, requeued=requeued)
        self._latest.pop(job, None)
        self._account(job, now_s)
        for each in beside:
            if each in self._controller.running:
                self._account(each, now_s)
                self._expect(each, now_s)

    def take_ended(self, now_s: int) -> Iterator[int]:
        """Yields the jobs that end now; the caller ends each in turn."""
        while self._due and self._due[0][0] <= now_s:
            _, job, number = heapq.heappop(self._due)
            if self._latest.get(job) != number:
                continue
            if self._running.is_due(job, now_s):
                yield job
            else:
                self._expect(job, now_s)

    def completed(self, job: int, now_s: int) -> bool:
        """Whether a job that ends has done its work."""
        return self._running.completed(job, now_s)

    def share(self, plan: Plan, now_s: int) -> int:
        """Puts quotas and extensions of a plan into force; returns how many jobs they change."""
        limits: dict[int, CpuLimits] = {}
        quotas, controller = shared_of(plan).quotas, self._controller
        for job_id, milli, weight in zip(
            quotas.id.tolist(),
            quotas.milli_cpus_per_node.tolist(),
            quotas.weight.tolist(),
            strict=True,
        ):
            job = controller.guests.row(job_id)
            held = None if job is None else controller.running.get(job)
            if job is not None and held is not None:
                node = held.nodes[0]
                limits[job] = limits_of(
                    milli, weight, int(controller.nodes.occupancy.capacity[node, CPUS])
                )
        changed = self._running.limit(limits, now_s)
        extended = self._extend(plan, now_s)
        for job in sorted({*changed, *extended}):
            self._expect(job, now_s)
        return len(changed) + len(extended)

    def _extend(self, plan: Plan, now_s: int) -> list[int]:
        """Lengthens time limits; returns the jobs."""
        found, controller, extensions = [], self._controller, shared_of(plan).extensions
        for job_id, total_s in zip(
            extensions.id.tolist(), extensions.total_s.tolist(), strict=True
        ):
            job = controller.guests.row(job_id)
            held = None if job is None else controller.running.get(job)
            if job is None or held is None:
                continue
            if more_s := self._running.extend(job, total_s, now_s):
                controller.set_limit(job, held.limit_s + more_s)
                found.append(job)
        return found

    def _expect(self, job: int, now_s: int) -> None:
        """Schedules the end of a job instead of its former one."""
        self._pushed += 1
        self._latest[job] = self._pushed
        due_s = max(self._running.due_s(job, now_s), now_s)
        heapq.heappush(self._due, (due_s, job, self._pushed))

    def _read(self, jobs: Sequence[int], now_s: int) -> dict[str, NDArray[Any]]:
        """Measurements of running jobs, as columns of their table."""
        found = self._running.readings(jobs, now_s)
        controller, share, log = self._controller, found.pop("peak_memory"), self._running.log
        capacity = controller.nodes.occupancy.capacity
        node_mib = [int(capacity[controller.running[job].nodes, MEMORY_MIB].max()) for job in jobs]
        peak_mib = np.rint(share * np.array(node_mib, dtype=np.int64)).astype(np.int64)
        measured_s = np.full(len(jobs), now_s, dtype=np.int64)
        hosted = [self._running.hosted_s(job, now_s) for job in jobs]
        return {
            **found,
            "peak_mib": peak_mib,
            "measured_s": measured_s,
            "hosted_s": np.array(hosted, dtype=np.int64),
            "extended_s": log.extended_s[list(jobs)],
            "extendable": log.host[list(jobs)] < 0,
        }
