# SPDX-License-Identifier: Apache-2.0
"""Resource use of jobs on their nodes, as reported by agents: the last reading for each.

Rules
    1. Agents are not trusted: values for nodes of other agents, values that are not finite or out
       of bounds, and jobs beyond the maximum of a node are dropped.
    2. A reading older than `STALE_S` is ignored.
    3. CPU time never decreases while a job stays: after a restart of an agent without cgroups it
       continues from the last value.
    4. A job's progress is the least that it tells on any of its nodes. It counts as told: a false
       one speaks of its own job only (`bridge.agent.progress`).
"""

import math
import threading
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

from bridge.model.readings import JobReading
from bridge.rpc.pb import agent_pb2 as pb

STALE_S: Final = 30.0
MOST_JOBS: Final = 1024
"""Of one node."""
_MOST_CPUS: Final = 1e6
_MOST_CPU_S: Final = 1e12
_MOST_MIB: Final = 1 << 40


@dataclass(frozen=True, slots=True)
class _Read:
    at_s: float
    cpu_s: float
    before_s: float
    cpus: float
    memory_mib: int
    peak_mib: int
    pressure: float
    progress: float


class JobReadings:
    """All nodes; methods may be called by any thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Starts without any.

        Args:
            clock: monotonic, s.
        """
        self._clock = clock
        self._lock = threading.Lock()
        self._nodes: dict[str, dict[str, _Read]] = {}
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
                found: dict[str, dict[str, _Read]] = {
                    node.node: {} for node in use.nodes if node.node in mine
                }
                for job in use.jobs:
                    of_node = found.get(job.node)
                    if of_node is not None and len(of_node) < MOST_JOBS:
                        before = self._nodes.get(job.node, {}).get(job.job)
                        read = _read(job, at_s, before, waits.get(job.node, -1.0))
                        if read is not None:
                            of_node[job.job] = read
                self._nodes |= found

    def kept(self, mine: Collection[str], shares: pb.SharesInForce) -> None:
        """Takes in how shares are kept on an agent's nodes."""
        found: dict[str, dict[str, str]] = {node: {} for node in mine}
        for each in shares.shares[:MOST_JOBS]:
            if each.share.node in found and each.method:
                found[each.share.node][each.share.job] = each.method[:20]
        with self._lock:
            self._methods |= found

    def of(self, job: str, nodes: Sequence[str]) -> JobReading | None:
        """The use of a job; None: unknown.

        Args:
            job: its id on the nodes.
            nodes: that it holds.
        """
        now_s = self._clock()
        with self._lock:
            reads = [self._nodes.get(node, {}).get(job) for node in nodes]
            methods = {self._methods.get(node, {}).get(job, "") for node in nodes}
        known = [read for read in reads if read is not None and now_s - read.at_s <= STALE_S]
        if not known:
            return None
        times = [read.cpu_s for read in known if read.cpu_s >= 0]
        rates = [read.cpus for read in known if read.cpus >= 0]
        told = [read.progress for read in known if read.progress >= 0]
        return JobReading(
            cpu_s=sum(times) if times else -1.0,
            cpus=sum(rates) if rates else -1.0,
            memory_mib=max(read.memory_mib for read in known),
            peak_mib=max(read.peak_mib for read in known),
            pressure=max(read.pressure for read in known),
            progress=min(told, default=-1.0),
            age_s=now_s - min(read.at_s for read in known),
            nodes=len(known),
            method="priorities" if "priorities" in methods else min(methods),
        )

    def forget(self, node: str) -> None:
        """Forgets a node whose agent is gone."""
        with self._lock:
            self._methods.pop(node, None)


def _read(job: pb.JobUse, at_s: float, before: _Read | None, waits: float) -> _Read | None:
    if before is not None and at_s < before.at_s:
        return before
    cpu_s = job.cpu_s if job.HasField("cpu_s") else -1.0
    cpus = job.cpus if job.HasField("cpus") else -1.0
    pressure = job.memory_pressure if job.HasField("memory_pressure") else waits
    progress = job.progress if job.HasField("progress") else -1.0
    if not 0 <= progress <= 1:
        progress = -1.0  # also what is not a number: it is no reason to refuse the rest
    numbers = cpu_s, cpus, pressure
    if not all(map(math.isfinite, numbers)) or not (cpu_s <= _MOST_CPU_S and cpus <= _MOST_CPUS):
        return before
    if max(job.memory_mib, job.peak_memory_mib) > _MOST_MIB or pressure > 1:
        return before
    read = _Read(at_s, cpu_s, 0.0, cpus, job.memory_mib, job.peak_memory_mib, pressure, progress)
    if before is None or cpu_s < 0:
        return read
    # Rule 3: an agent that counts processes begins anew when it starts.
    lost_s = before.before_s
    if before.cpu_s >= 0 and cpu_s + lost_s < before.cpu_s:
        lost_s = before.cpu_s
    return replace(read, cpu_s=cpu_s + lost_s, before_s=lost_s)
