# SPDX-License-Identifier: Apache-2.0
"""Resource use of jobs on their nodes, as reported by agents: the last reading for each.

Rules
    1. Agents are not trusted: values for nodes of other agents, values that are not finite or out
       of bounds, and jobs beyond the maximum of a node are dropped.
    2. A reading older than `STALE_S` is ignored.
    3. CPU time never decreases while a job stays: after a restart of an agent without cgroups it
       continues from the last value.
    4. A job's progress is the least that it reports on any of its nodes. It is used as reported: a
       false value affects its own job only (`bridge.agent.progress`).
    5. A job that has processes on some of its nodes uses nothing on the others if their agents have
       reported since it was first seen, without it: a sequential stage leaves nodes idle. Its CPU
       time and its peak there are kept until it has ended. A node whose agent is silent is unknown.
       So is a job without any process, as it may only be invisible.
"""

import math
import threading
import time
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from bridge.rpc.pb import agent_pb2 as pb

STALE_S: Final = 30.0
MAX_JOBS: Final = 1024
"""Of one node."""
_MAX_CPUS: Final = 1e6
_MAX_CPU_S: Final = 1e12
_MAX_MIB: Final = 1 << 40


@dataclass(frozen=True)
class JobReading:
    """The last readings of a job, over all its nodes.

    Attributes:
        cpu_s: CPU time since its start, over all nodes that are known, s; -1: not known.
        cpus: CPUs in use, the mean since the reading before, over those nodes; -1: not known.
        memory_mib: in use, the largest of its nodes.
        peak_mib: the most it has used on any node; 0: not known.
        pressure: share of the last 10 s in which some task waited for memory, in [0, 1], the
            largest of its nodes: of the job where the kernel counts it, else of the machine; -1:
            not known.
        age_s: the age of the oldest of these readings.
        nodes: the number of its nodes with readings, those on which it uses nothing included.
        unused: nodes on which it has no process.
        progress: share of its work that is done, in [0, 1], as the job tells it; -1: it does not.
        method: how its CPU share is kept: cgroup-v1, cgroup-v2, priorities (which keep no quota);
            empty: it is not.
    """

    cpu_s: float
    cpus: float
    memory_mib: int
    peak_mib: int
    pressure: float
    age_s: float
    nodes: int
    progress: float = -1.0
    method: str = ""
    unused: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _Read:
    """A reading of a job on a node; `here`: it has processes there; `since_s`: first seen."""

    at_s: float
    since_s: float
    cpu_s: float
    before_s: float
    cpus: float
    memory_mib: int
    peak_mib: int
    pressure: float
    progress: float
    here: bool = True


@dataclass(frozen=True, slots=True)
class _Node:
    """The last reading of a node, and its jobs."""

    at_s: float
    jobs: dict[str, _Read]


_NEVER_READ: Final = _Node(-math.inf, {})


class JobReadings:
    """All nodes; methods may be called by any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Starts without any.

        Args:
            clock: monotonic, s.
        """
        self._clock = clock
        self._lock = threading.Lock()
        self._nodes: dict[str, _Node] = {}
        self._methods: dict[str, dict[str, str]] = {}

    @property
    def some(self) -> bool:
        """Whether there was ever a reading."""
        return bool(self._nodes)

    def took(self, mine: Collection[str], uses: pb.Uses) -> None:
        """Records the readings of a message.

        Args:
            mine: the nodes that its agent reports for.
            uses: its contents, the oldest first.
        """
        now_s = self._clock()
        with self._lock:
            for use in uses.uses:
                at_s = now_s - use.ago_ms / 1000
                waits = {
                    node.node: node.memory_pressure
                    for node in use.nodes
                    if node.HasField("memory_pressure")
                }
                found = {node.node: _Node(at_s, {}) for node in use.nodes if node.node in mine}
                for job in use.jobs:
                    node = found.get(job.node)
                    if node is not None and len(node.jobs) < MAX_JOBS:
                        before = self._nodes.get(job.node, _NEVER_READ).jobs.get(job.job)
                        read = _read(job, at_s, before, waits.get(job.node, -1.0))
                        if read is not None:
                            node.jobs[job.job] = read
                for name, node in found.items():
                    _keep_gone(self._nodes.get(name, _NEVER_READ), node)
                self._nodes |= found

    def forget_ended(self, running: Container[str]) -> None:
        """Forgets the use of jobs on nodes that they have left.

        Args:
            running: the jobs that run, by their ids on the nodes.
        """
        with self._lock:
            for node in self._nodes.values():
                for job in [job for job, read in node.jobs.items() if not read.here]:
                    if job not in running:
                        del node.jobs[job]

    def kept(self, mine: Collection[str], shares: pb.SharesInForce) -> None:
        """Records how shares are kept on an agent's nodes."""
        found: dict[str, dict[str, str]] = {node: {} for node in mine}
        for each in shares.shares[:MAX_JOBS]:
            if each.share.node in found and each.method:
                found[each.share.node][each.share.job] = each.method[:20]
        with self._lock:
            self._methods |= found

    def of(self, job: str, nodes: Sequence[str]) -> JobReading | None:
        """The use of a job; None: unknown.

        Args:
            job: its id on the nodes.
        """
        now_s = self._clock()
        with self._lock:
            held = {node: self._nodes.get(node, _NEVER_READ) for node in nodes}
            last = {name: node.jobs.get(job) for name, node in held.items()}
            here = {name: read for name, read in last.items() if read is not None and read.here}
            methods = {self._methods.get(name, {}).get(job, "") for name in here}
        fresh = {name for name, node in held.items() if now_s - node.at_s <= STALE_S}
        reads = [read for name, read in here.items() if name in fresh]
        if not reads:
            return None
        since_s = min(read.since_s for read in reads)
        unused = {name for name in fresh - here.keys() if held[name].at_s >= since_s}  # rule 5
        left = [read for name in unused if (read := last[name]) is not None]
        return JobReading(
            cpu_s=_sum_known(read.cpu_s for read in (*reads, *left)),
            cpus=_sum_known(read.cpus for read in reads),
            memory_mib=max(read.memory_mib for read in reads),
            peak_mib=max(read.peak_mib for read in (*reads, *left)),
            pressure=max(read.pressure for read in reads),
            progress=min((read.progress for read in reads if read.progress >= 0), default=-1.0),
            age_s=now_s - min([read.at_s for read in reads] + [held[name].at_s for name in unused]),
            nodes=len(reads) + len(unused),
            method="priorities" if "priorities" in methods else min(methods),
            unused=frozenset(unused),
        )

    def forget(self, node: str) -> None:
        """Forgets a node whose agent is gone."""
        with self._lock:
            self._methods.pop(node, None)


def _sum_known(values: Iterable[float]) -> float:
    """The sum of what is known; -1: nothing is."""
    known = [value for value in values if value >= 0]
    return sum(known) if known else -1.0


def _read(job: pb.JobUse, at_s: float, before: _Read | None, waits: float) -> _Read | None:
    if before is not None and at_s < before.at_s:
        return before
    cpu_s = job.cpu_s if job.HasField("cpu_s") else -1.0
    cpus = job.cpus if job.HasField("cpus") else -1.0
    pressure = job.memory_pressure if job.HasField("memory_pressure") else waits
    progress = job.progress if job.HasField("progress") else -1.0
    if not 0 <= progress <= 1:
        progress = -1.0  # also NaN, which is no reason to refuse the rest
    numbers = cpu_s, cpus, pressure
    if not all(map(math.isfinite, numbers)) or not (cpu_s <= _MAX_CPU_S and cpus <= _MAX_CPUS):
        return before
    if max(job.memory_mib, job.peak_memory_mib) > _MAX_MIB or pressure > 1:
        return before
    since_s = at_s if before is None else before.since_s
    memory_mib = job.memory_mib
    peak_mib = max(job.peak_memory_mib, before.peak_mib if before is not None else 0)
    read = _Read(at_s, since_s, cpu_s, 0.0, cpus, memory_mib, peak_mib, pressure, progress)
    if before is None or cpu_s < 0:
        return read
    # Rule 3: an agent that counts processes begins anew when it starts.
    lost_s = before.before_s
    if before.cpu_s >= 0 and cpu_s + lost_s < before.cpu_s:
        lost_s = before.cpu_s
    return replace(read, cpu_s=cpu_s + lost_s, before_s=lost_s)


def _keep_gone(before: _Node, now: _Node) -> None:
    """Keeps what jobs have used on a node on which they have no process any more (rule 5)."""
    for job, read in before.jobs.items():
        if job not in now.jobs and len(now.jobs) < MAX_JOBS:
            gone = replace(read, at_s=now.at_s, cpus=0.0, memory_mib=0, here=False)
            now.jobs[job] = replace(gone, pressure=-1.0, progress=-1.0)
