# SPDX-License-Identifier: Apache-2.0
"""Guests of the simulated controller: their conditions, and the ownership of CPUs.

Rules
    1. A guest starts on nodes of its host, some or all of them. The host runs, holds all CPUs of
       its nodes, is not a guest, and has no guest on these nodes.
    2. Both have consented, neither is exclusive, and the guest may be requeued.
    3. A guest takes memory of its own, but no CPUs. When its host ends before it, it takes its own
       CPUs out of those that become free.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.sharing.rules import Coschedule
from bridge.lab.sim.cluster.allocation import Allocation
from bridge.lab.sim.cluster.occupancy import Occupancy
from bridge.lab.sim.cluster.running_jobs import RunningJobs
from bridge.model.job import JobTable
from bridge.model.node import CPUS
from bridge.model.snapshot import Partition

_HOSTS = (Coschedule.HOST, Coschedule.BOTH)
_GUESTS = (Coschedule.GUEST, Coschedule.BOTH)


class Guests:
    """The guests among the running jobs, and their hosts."""

    def __init__(self, jobs: JobTable, running: RunningJobs, occupancy: Occupancy) -> None:
        """Starts with none."""
        self._jobs, self._running, self._occupancy = jobs, running, occupancy
        self._guests_of: dict[int, list[int]] = {}
        self._row: dict[str, int] | None = None

    def row(self, job_id: str) -> int | None:
        """The job of this id; None: there is none."""
        if self._row is None:
            self._row = {each: row for row, each in enumerate(self._jobs.id.tolist())}
        return self._row.get(job_id)

    def held_by(self, job_id: str) -> Allocation:
        row = self.row(job_id)
        assert row is not None
        return self._running.allocations[row]

    def objection(
        self, job: int, host_id: str, nodes: NDArray[np.int32], partition: Partition
    ) -> str | None:
        """Why a job cannot be this host's guest on these nodes (rules 1 and 2); None if it can."""
        host, jobs = self.row(host_id), self._jobs
        held = None if host is None else self._running.allocations.get(host)
        if host is None or held is None:
            return f"is started as guest of {host_id:.40}, which does not run"
        if not partition.shared:
            return f"is started as a guest in {partition.name}, which shares no nodes"
        if held.host >= 0:
            return f"is started as guest of {host_id}, which is a guest itself"
        if any(
            np.isin(nodes, self._running.allocations[guest].nodes).any()
            for guest in self._guests_of.get(host, ())
        ):
            return f"is started as guest of {host_id}, which shares some of these nodes already"
        if jobs.coschedule[host] not in _HOSTS or jobs.coschedule[job] not in _GUESTS:
            return f"is started as guest of {host_id} without consent of both"
        if held.exclusive or jobs.exclusive[job]:
            return f"is started as guest of {host_id} though one of them is exclusive"
        if not jobs.requeue[job]:
            return f"is started as guest of {host_id} but may not be requeued"
        if not np.isin(nodes, held.nodes).all():
            return f"is started as guest of {host_id} on other nodes than the host's"
        if (held.use[:, CPUS] < self._occupancy.capacity[held.nodes, CPUS]).any():
            return f"is started as guest of {host_id}, which does not hold all CPUs of its nodes"
        return None

    def begin(self, guest: int, host: int) -> None:
        """A guest has started; its allocation names its host."""
        self._guests_of.setdefault(host, []).append(guest)

    def taken(self, held: Allocation) -> NDArray[np.int64]:
        """(n, R) what an allocation takes from its nodes in addition to that of its host."""
        if held.host < 0:
            return held.use
        use = held.use.copy()
        use[:, CPUS] = 0
        return use

    def end(self, job: int, held: Allocation) -> None:
        """A job has released its nodes: its guests continue alone (rule 3)."""
        if held.host >= 0:
            self._guests_of[held.host].remove(job)
            return
        for guest in self._guests_of.pop(job, ()):
            alone = self._running.allocations[guest]
            cpus = alone.use - self.taken(alone)
            self._occupancy.change(alone.nodes, cpus)
            self._running.hold(guest, replace(alone, host=-1))
