# SPDX-License-Identifier: Apache-2.0
"""Resource use of jobs if Slurm makes no cgroups with counters: sums over processes, from /proc.

Rules
    1. The job of a process is determined once (`bridge.agent.processes`); a process is identified
       by its id and start time. A process without a job is examined `LOOKS` times, because Slurm
       starts processes before it puts them into their job.
    2. CPU time counts from the second time that a process is seen, or from its start if it has
       started since the last reading. Its use after the last reading before its end is lost.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bridge.agent.processes import Processes

LOOKS: Final = 3

_Place = tuple[str, str]
"""Job and node; the node is empty if unknown."""


@dataclass
class ReadUse:
    """By the processes of a job on a node.

    Attributes:
        cpu_s: since the last reading.
        memory_bytes: resident at present; pages that processes share count for each.
    """

    cpu_s: float = 0.0
    memory_bytes: int = 0


@dataclass
class _Process:
    start: int
    place: _Place | None
    cpu_s: float
    looks: int


class ProcessUse:
    """All processes of jobs on this machine."""

    def __init__(self, processes: Processes, proc: Path = Path("/proc")) -> None:
        self._processes, self._proc = processes, proc
        self._tick_s = 1 / os.sysconf("SC_CLK_TCK")
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._known: dict[int, _Process] = {}
        self._first = True

    def read(self) -> dict[_Place, ReadUse]:
        """Use since the last reading; none for processes that are seen for the first time."""
        found: dict[_Place, ReadUse] = {}
        seen: dict[int, _Process] = {}
        for entry in os.scandir(self._proc):
            if not entry.name.isdecimal():
                continue
            pid = int(entry.name)
            try:
                stat = (self._proc / entry.name / "stat").read_bytes().rpartition(b")")[2].split()
                start, rss = int(stat[19]), int(stat[21])
                cpu_s = (int(stat[11]) + int(stat[12])) * self._tick_s
            except (OSError, ValueError, IndexError):
                continue  # it has ended
            process = self._known.get(pid)
            if process is None or process.start != start:
                process = _Process(start, None, cpu_s if self._first else 0.0, 0)
            if process.place is None and process.looks < LOOKS:
                process.place = self._processes.job_of(pid)
                process.looks += 1
            used_s, process.cpu_s = max(cpu_s - process.cpu_s, 0.0), cpu_s
            seen[pid] = process
            if process.place is not None:
                spent = found.setdefault(process.place, ReadUse())
                spent.cpu_s += used_s
                spent.memory_bytes += max(rss, 0) * self._page
        self._known, self._first = seen, False
        return found
