# SPDX-License-Identifier: Apache-2.0
"""CPU and memory use of each job on each node of this machine.

Rules
    1. Cgroups are read at every reading. On nodes without cgroups, processes are read every
       `PROCESSES_S`, because that costs more; in between, the last values are repeated.
    2. Rates are between two readings. The first reading of a job has its memory only.
    3. A node without its own counter is as busy as its jobs.
    4. Without cgroups a job's CPU time is the observed time of its processes since the agent
       started, and its peak the maximum memory observed.
    5. A job whose memory is being swapped out (`swap.py`) counts as waiting for memory all the
       time.
    6. A process whose node is unknown counts for the first node, as everywhere in the agent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bridge.agent.processes import Processes
from bridge.agent.use.cgroups import ROOT, CgroupUse, NodeCgroups
from bridge.agent.use.process_use import ProcessUse, ReadUse
from bridge.agent.use.swap import Swapping

PROCESSES_S: Final = 5.0


@dataclass(frozen=True)
class Use:
    """Use of a job on a node.

    Attributes:
        cpus: mean number of busy CPUs since the last reading; None: not known yet.
        cpu_s: CPU time since the job began on the node; None: unknown.
        peak_mib: maximum memory so far; 0: unknown.
        pressure: share of the last 10 s in which it waited for memory; 1 while it is swapped out;
            None: unknown.
    """

    cpus: float | None
    memory_mib: int
    cpu_s: float | None = None
    peak_mib: int = 0
    pressure: float | None = None


@dataclass(frozen=True)
class NodeUse:
    """Use of a node.

    Attributes:
        busy_cpus: mean number since the last reading; None: not known yet.
        jobs: by job id on the node.
    """

    busy_cpus: float | None
    jobs: Mapping[str, Use]


class JobUse:
    """All nodes of this machine."""

    def __init__(
        self,
        nodes: Sequence[str],
        processes: Processes,
        root: Path = ROOT,
        proc: Path = Path("/proc"),
    ) -> None:
        """Prepares the readings.

        Args:
            nodes: for which the agent reports, at least one.
        """
        alone = len(nodes) == 1
        self._nodes = {name: _Node(NodeCgroups(name, alone=alone, root=root)) for name in nodes}
        self._first = nodes[0]
        self._processes = ProcessUse(processes, proc)
        self._read_s: float | None = None
        self._sums: dict[tuple[str, str], tuple[float, int]] = {}
        self._by_processes: dict[str, dict[str, Use]] = {}

    def read(self, now_s: float) -> dict[str, NodeUse]:
        """By node.

        Args:
            now_s: time of a monotonic clock.
        """
        found: dict[str, NodeUse] = {}
        without = []
        for name, node in self._nodes.items():
            jobs = node.jobs(now_s)
            if jobs is None:
                without.append(name)
            found[name] = NodeUse(node.busy_cpus(now_s), jobs or {})
        if without:
            self._read_processes(now_s)
        for name in without:
            jobs = self._by_processes.get(name, {})
            busy = found[name].busy_cpus
            if busy is None and not self._nodes[name].has_counter:
                busy = sum(use.cpus or 0.0 for use in jobs.values())
            found[name] = NodeUse(busy, jobs)
        return found

    def _read_processes(self, now_s: float) -> None:
        if self._read_s is not None and now_s - self._read_s < PROCESSES_S:
            return
        since_s = None if self._read_s is None else now_s - self._read_s
        self._read_s = now_s
        spent: dict[str, dict[str, ReadUse]] = {}
        for (job, node), used in self._processes.read().items():
            of_node = spent.setdefault(node or self._first, {})
            before = of_node.get(job, ReadUse())
            of_node[job] = ReadUse(
                before.cpu_s + used.cpu_s, before.memory_bytes + used.memory_bytes
            )
        sums, self._sums = self._sums, {}
        self._by_processes = {node: {} for node in spent}
        for node, jobs in spent.items():
            for job, used in jobs.items():
                cpu_s, peak = sums.get((node, job), (0.0, 0))
                cpu_s, peak = cpu_s + used.cpu_s, max(peak, used.memory_bytes)
                self._sums[node, job] = cpu_s, peak
                self._by_processes[node][job] = Use(
                    used.cpu_s / since_s if since_s else None,
                    used.memory_bytes >> 20,
                    cpu_s,
                    peak >> 20,
                )


class _Node:
    """The counters of one node, and their last values."""

    def __init__(self, cgroups: NodeCgroups) -> None:
        self._cgroups = cgroups
        self._total: tuple[float, float] | None = None
        self._jobs: tuple[float, dict[str, CgroupUse]] | None = None
        self._swapping = Swapping()

    @property
    def has_counter(self) -> bool:
        """Whether the last reading had a counter of the whole node."""
        return self._total is not None

    def busy_cpus(self, now_s: float) -> float | None:
        cpu_s, before = self._cgroups.cpu_s(), self._total
        self._total = None if cpu_s is None else (now_s, cpu_s)
        if cpu_s is None or before is None or now_s <= before[0]:
            return None
        return max(cpu_s - before[1], 0.0) / (now_s - before[0])

    def jobs(self, now_s: float) -> dict[str, Use] | None:
        used, before = self._cgroups.jobs(), self._jobs
        self._jobs = None if used is None else (now_s, used)
        if used is None:
            return None
        found = {}
        for job, now in used.items():
            cpus = None
            if before is not None and job in before[1] and now_s > before[0]:
                cpus = max(now.cpu_s - before[1][job].cpu_s, 0.0) / (now_s - before[0])
            swapping = self._swapping.grows(job, now.swap_bytes, now_s)
            waits = 1.0 if swapping else now.pressure
            found[job] = Use(cpus, now.memory_bytes >> 20, now.cpu_s, now.peak_bytes >> 20, waits)
        self._swapping.forget(used)
        return found
