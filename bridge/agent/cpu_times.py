# SPDX-License-Identifier: Apache-2.0
"""How long the processes of this node's jobs did not compute: an estimate for jobs without pages.

Rules
    1. A process waits while none of its threads uses a CPU.
    2. A process that used less than `MIN_SHARE` of a core is a shell or a launcher, and does not
       count.
    3. A process that polls in MPI seems to compute. So the estimate of the time in MPI may be too
       small.
"""

import os
from pathlib import Path
from typing import Final

from bridge.agent.pages import MpiUse
from bridge.agent.processes import Processes

MIN_SHARE: Final = 0.05


class CpuTimes:
    """The processes of jobs on this machine."""

    def __init__(self, processes: Processes, proc: Path = Path("/proc")) -> None:
        self._processes, self._proc = processes, proc
        self._tick_s = 1 / os.sysconf("SC_CLK_TCK")
        self._before_ns = 0
        self._before: dict[tuple[int, int], float] = {}

    def read(self, now_ns: int) -> dict[tuple[str, str], MpiUse]:
        """Time without computing since the last reading, instead of time in MPI.

        Args:
            now_ns: time of CLOCK_MONOTONIC.
        """
        wall_s, self._before_ns = (now_ns - self._before_ns) / 1e9, now_ns
        found: dict[tuple[str, str], MpiUse] = {}
        seen = {}
        for entry in os.scandir(self._proc):
            try:
                if not entry.name.isdecimal():
                    continue
                key, cpu_s = self._cpu(int(entry.name))
            except (OSError, ValueError, IndexError):
                continue
            seen[key] = cpu_s
            used_s = cpu_s - self._before.get(key, cpu_s)
            if used_s < MIN_SHARE * wall_s or used_s <= 0:
                continue
            where = self._processes.job_of(key[0])
            if where is not None:
                use = found.setdefault(where, MpiUse())
                use.processes += 1
                use.wall_s += wall_s
                use.mpi_s += max(wall_s - used_s, 0.0)
        self._before = seen
        return found

    def _cpu(self, pid: int) -> tuple[tuple[int, int], float]:
        """A process, as its id and its start, and its CPU time in seconds.

        Raises:
            OSError, ValueError, IndexError: it has ended.
        """
        stat = (self._proc / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
        return (pid, int(stat[19])), (int(stat[11]) + int(stat[12])) * self._tick_s
