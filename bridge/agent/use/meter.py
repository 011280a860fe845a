# SPDX-License-Identifier: Apache-2.0
"""Reads the use of this machine's nodes, as one reading for the service.

Rules
    1. Values that cannot be read are left out.
    2. A machine that swaps memory out (`swap.py`) counts as waiting for memory all the time.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from bridge.agent.processes import Processes
from bridge.agent.use.cgroups import ROOT, pressure, usable_cpus
from bridge.agent.use.job_use import JobUse
from bridge.agent.use.swap import Swapping, swapped_out
from bridge.rpc.pb import agent_pb2 as pb

READ_S: Final = 1.0
PROGRESS_S: Final = 2.0


class AgentMeter:
    """The nodes for which an agent reports."""

    def __init__(
        self,
        nodes: Sequence[str],
        processes: Processes,
        root: Path = ROOT,
        *,
        cpus: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        proc: Path = Path("/proc"),
        progress: Callable[[], Mapping[tuple[str, str], float]] = dict,
    ) -> None:
        """Finds cgroups.

        Args:
            nodes: at least one.
            cpus: those of a node; 0: those that this process may use.
            clock: monotonic, s.
            proc: where processes and the machine's pressure are shown.
            progress: reads the jobs' progress, by job and node (empty: unknown).
        """
        self._progress, self._nodes = progress, tuple(nodes)
        self._pressure = proc / "pressure" / "memory"
        self._vmstat, self._swapping = proc / "vmstat", Swapping()
        self._cpus = cpus or usable_cpus(root)
        self._use, self._clock = JobUse(nodes, processes, root), clock
        self._reported_before: tuple[float, Mapping[tuple[str, str], float]] | None = None

    def read(self) -> pb.Use:
        """All nodes and jobs."""
        message, reported, now_s = pb.Use(), self._reported(), self._clock()
        waits = pressure(self._pressure)
        if self._swapping.grows("", swapped_out(self._vmstat), now_s):
            waits = 1.0
        for name, use in self._use.read(now_s).items():
            node = message.nodes.add(node=name, cpus=self._cpus)
            if use.busy_cpus is not None:
                node.busy_cpus = use.busy_cpus
            if waits is not None:
                node.memory_pressure = waits
            for job, used in use.jobs.items():
                message.jobs.add(
                    job=job, node=name, cpus=used.cpus, memory_mib=used.memory_mib,
                    cpu_s=used.cpu_s, peak_memory_mib=used.peak_mib,
                    memory_pressure=used.pressure, progress=reported.get((job, name)),
                )  # fmt: skip
        return message

    def _reported(self) -> Mapping[tuple[str, str], float]:
        """Progress by job and node; read every `PROGRESS_S`."""
        now_s = self._clock()
        if self._reported_before is None or now_s - self._reported_before[0] >= PROGRESS_S:
            found = self._progress().items()
            reported = {(job, node or self._nodes[0]): done for (job, node), done in found}
            self._reported_before = now_s, reported
        return self._reported_before[1]
