# SPDX-License-Identifier: Apache-2.0
"""The running jobs of a simulation in which jobs may share nodes: ends, readings, and a log.

Jobs are rows of the workload. The rules are those of `progress.py` and `setting.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.sharing.longer_limits import whole_minutes_s
from bridge.lab.sim.sharing.progress import (
    UNLIMITED,
    CpuLimits,
    Meets,
    ResourceUse,
    SharedWork,
)
from bridge.lab.sim.sharing.setting import Sharing

_NOBODY = -1


@dataclass(frozen=True)
class SharingLog:
    """The record of sharing, columns of length n_jobs; of the last run of each job unless noted.

    Attributes:
        host: int64: its host at its start; -1: none.
        cpu_s: float64: CPU time used, s, all runs.
        memory_s: float64: share of the memory of its nodes, over time, s, all runs.
        shared_s: float64: time with another job on its nodes.
        lost_s: float64: the delay by this.
        above_s: float64: time for which it was slowed down by more than `BOUND`.
        killed: bool: at its time limit.
        requeued: int64: how often it was requeued as a guest.
        extended_s: int64: by how much its time limit was lengthened for its guests.
    """

    host: NDArray[np.int64]
    cpu_s: NDArray[np.float64]
    memory_s: NDArray[np.float64]
    shared_s: NDArray[np.float64]
    lost_s: NDArray[np.float64]
    above_s: NDArray[np.float64]
    killed: NDArray[np.bool_]
    requeued: NDArray[np.int64]
    extended_s: NDArray[np.int64]


class SharedRunning:
    """The running jobs.

    Attributes:
        log: complete once no job runs.
    """

    def __init__(
        self, sharing: Sharing, runtime_s: NDArray[np.int64], time_limit_s: NDArray[np.int64]
    ) -> None:
        """Starts with no job running.

        Args:
            runtime_s: (n_jobs,) of each job alone.
            time_limit_s: (n_jobs,).
        """
        self._sharing, self._runtime_s, self._limit_s = sharing, runtime_s, time_limit_s
        self._work = SharedWork()
        self._guest_of: dict[int, int] = {}
        self._limits: dict[int, CpuLimits] = {}
        self._began_s: dict[int, int] = {}
        n_jobs = len(runtime_s)
        self.log = SharingLog(
            host=np.full(n_jobs, _NOBODY, dtype=np.int64),
            cpu_s=np.zeros(n_jobs),
            memory_s=np.zeros(n_jobs),
            shared_s=np.zeros(n_jobs),
            lost_s=np.zeros(n_jobs),
            above_s=np.zeros(n_jobs),
            killed=np.zeros(n_jobs, dtype=bool),
            requeued=np.zeros(n_jobs, dtype=np.int64),
            extended_s=np.zeros(n_jobs, dtype=np.int64),
        )

    def start(self, job: int, cpus: int, nodes: int, now_s: int) -> None:
        """Starts a job on nodes of its own.

        Args:
            job: not running.
            cpus: used by it, on all nodes together.
        """
        kind = self._sharing.interference.applications[self._sharing.application[job]]
        self._work.start(
            job, kind, cpus=cpus, runtime_s=float(self._runtime_s[job]), now_s=now_s, nodes=nodes
        )
        self._began_s[job] = now_s
        self.log.host[job], self.log.extended_s[job] = _NOBODY, 0

    def pair(self, host: int, guest: int, now_s: int, meets: Meets) -> None:
        """A job that has just started is on nodes of another one."""
        self._work.pair(host, guest, now_s, meets)
        self.log.host[guest] = host
        self._guest_of[guest] = host

    def beside(self, job: int) -> tuple[int, ...]:
        """The other jobs whose ends depend on a running one."""
        return self._work.beside(job)

    def stop(self, job: int, now_s: int, *, requeued: bool = False) -> None:
        """Ends a job that has ended, or lost its nodes."""
        self.log.killed[job] = not requeued and self._killed_s(job, now_s) <= now_s
        used = self._work.end(job, now_s)
        self._note(job, used)
        self.log.requeued[job] += requeued and job in self._guest_of
        for one in (job, *(guest for guest, host in self._guest_of.items() if host == job)):
            self._guest_of.pop(one, None)
            self._limits.pop(one, None)
        del self._began_s[job]

    def _note(self, job: int, used: ResourceUse) -> None:
        log = self.log
        log.cpu_s[job] += used.cpu_s
        log.memory_s[job] += used.memory_s
        log.shared_s[job], log.lost_s[job] = used.shared_s, used.lost_s
        log.above_s[job] = used.above_s

    def limit(self, limits: dict[int, CpuLimits], now_s: int) -> Sequence[int]:
        """Puts quotas and weights into force; jobs that are left out have none.

        Returns:
            The jobs whose ends change: those whose limits have changed, and those beside them.
        """
        changed: set[int] = set()
        for job in sorted({*self._guest_of, *self._guest_of.values()}):
            new = limits.get(job, UNLIMITED)
            if new != self._limits.get(job, UNLIMITED):
                self._work.limit(job, new, now_s)
                self._limits[job] = new
                changed |= {job, *self._work.beside(job)}
        return sorted(changed)

    def extend(self, job: int, total_s: int, now_s: int) -> int:
        """Lengthens the time limit of a job, by its time with guests at most.

        Args:
            total_s: the whole extension since its start; rounded up to whole minutes.

        Returns:
            By how much the limit is later now, s; 0: the job is a guest, or has its extension.
        """
        if self.log.host[job] != _NOBODY:
            return 0
        total_s = whole_minutes_s(min(total_s, self.hosted_s(job, now_s)))
        more_s = max(total_s - int(self.log.extended_s[job]), 0)
        self.log.extended_s[job] += more_s
        return more_s

    def hosted_s(self, job: int, now_s: int) -> int:
        """The time with guests of a running job so far, at most its own limit, whole seconds."""
        shared_s = int(self._work.read(job, now_s).used.shared_s)
        return min(shared_s, int(self._limit_s[job]))

    def host_of(self, job: int) -> int | None:
        """The host of a guest; None: it is not a guest."""
        return self._guest_of.get(job)

    @property
    def pairs(self) -> int:
        """How many guests there are."""
        return len(self._guest_of)

    def due_s(self, job: int, now_s: int) -> int:
        """Its end in the present state: its work is done, or it is killed."""
        return min(self._work.end_s(job), max(self._killed_s(job, now_s), now_s))

    def is_due(self, job: int, now_s: int) -> bool:
        """Whether it ends now."""
        return self._work.done(job, now_s) or self._killed_s(job, now_s) <= now_s

    def completed(self, job: int, now_s: int) -> bool:
        """Whether all its work is done."""
        return self._work.done(job, now_s)

    def _killed_s(self, job: int, now_s: int) -> int:
        """When it is killed; later, if its limit is lengthened."""
        if self._sharing.grace_s is None or self._work.done(job, now_s):
            return _LATEST_S
        limit_s = int(self._limit_s[job]) + int(self.log.extended_s[job])
        return self._began_s[job] + limit_s + self._sharing.grace_s

    def readings(self, jobs: Sequence[int], now_s: int) -> dict[str, NDArray[np.float64]]:
        """Measurements of some running jobs: CPU time, busy CPUs, maximum memory as a share."""
        found = [self._work.read(job, now_s) for job in jobs]
        return {
            "cpu_s": np.array([each.used.cpu_s for each in found], dtype=np.float64),
            "busy_cpus": np.array([each.busy for each in found], dtype=np.float64),
            "peak_memory": np.array([each.peak_memory for each in found], dtype=np.float64),
        }


_LATEST_S = 1 << 60


def limits_of(milli_cpus_per_node: int, weight: int, cpus_per_node: int) -> CpuLimits:
    """A quota of a plan, as a share of the CPUs of a node."""
    ceiling = 1.0
    if milli_cpus_per_node > 0:
        ceiling = min(milli_cpus_per_node / (1000 * cpus_per_node), 1.0)
    return CpuLimits(ceiling, float(weight))
