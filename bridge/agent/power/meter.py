# SPDX-License-Identifier: Apache-2.0
"""Reads power and use of this machine's nodes, as one reading for the service.

Rules
    1. Values that cannot be read are left out: a node without a value has no `watts`. A meter that
       has lost its value is named, with the last one.
    2. A machine that swaps memory out (`swap.py`) counts as waiting for memory all the time.
    3. The watts are the node's. The service, which knows the idle power, divides them among jobs.
"""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from bridge.agent.power.cgroups import ROOT, pressure, usable_cpus
from bridge.agent.power.choice import NodeSensors, PowerSettings
from bridge.agent.power.job_use import JobUse
from bridge.agent.power.model import NodeLoad
from bridge.agent.power.swap import Swapping, swapped_out
from bridge.agent.processes import Processes
from bridge.rpc.pb import agent_pb2 as pb

READ_S: Final = 1.0
PROGRESS_S: Final = 2.0


class AgentMeter:
    """The nodes for which an agent reports."""

    def __init__(
        self,
        nodes: Sequence[str],
        settings: PowerSettings,
        processes: Processes,
        root: Path = ROOT,
        *,
        clock: Callable[[], float] = time.monotonic,
        proc: Path = Path("/proc"),
        progress: Callable[[], Mapping[tuple[str, str], float]] = dict,
    ) -> None:
        """Finds sensors and cgroups.

        Args:
            nodes: at least one.
            clock: monotonic, s.
            proc: where processes and the machine's pressure are shown.
            progress: reads the jobs' progress, by job and node (empty: unknown).
        """
        self._progress, self._nodes = progress, tuple(nodes)
        self._pressure = proc / "pressure" / "memory"
        self._vmstat, self._swapping = proc / "vmstat", Swapping()
        cpus = settings.cpus or usable_cpus(root)
        self._sensors = {
            name: NodeSensors(name, settings, NodeLoad(cpus), of=len(nodes)) for name in nodes
        }
        self._stated = settings.model is not None
        self._use, self._clock = JobUse(nodes, processes, root), clock
        self._reported_before: tuple[float, Mapping[tuple[str, str], float]] | None = None

    def read(self) -> pb.Use:
        """All nodes and jobs."""
        message, reported, now_s = pb.Use(), self._reported(), self._clock()
        waits = pressure(self._pressure)
        if self._swapping.grows("", swapped_out(self._vmstat), now_s):
            waits = 1.0
        for name, use in self._use.read(now_s).items():
            sensors = self._sensors[name]
            sensors.load.busy_cpus = use.busy_cpus
            node = message.nodes.add(node=name, cpus=sensors.load.cpus)
            if use.busy_cpus is not None:
                node.busy_cpus = use.busy_cpus
            value = sensors.read()
            if value is not None and math.isfinite(value.watts):
                node.watts, node.source = value.watts, value.source
                node.age_ms = min(round(value.age_s * 1000), (1 << 32) - 1)
            if sensors.lost is not None:
                node.lost_source, node.lost_watts = sensors.lost.source, sensors.lost.watts
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

    def state_model(self, node: str, idle_w: float, max_w: float) -> None:
        """Sets the bounds of the model by the service; the agent's own options prevail."""
        sensors = self._sensors.get(node)
        if sensors is not None and not self._stated and 0 <= idle_w <= max_w:
            sensors.model.bounds = idle_w, max_w
