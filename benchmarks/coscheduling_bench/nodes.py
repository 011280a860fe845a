# SPDX-License-Identifier: Apache-2.0
"""The nodes of the cluster on this machine: each on a core of its own, and what their jobs use."""

import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

CGROUPS: Final = Path("/sys/fs/cgroup")
OUTWEIGHS: Final = 32
"""How often a node outweighs any other container, and Docker any other process."""
_USUAL: Final = 1024
_SAMPLE_S: Final = 2.0


@contextmanager
def outweighing() -> Iterator[None]:
    """Gives Docker's cgroup, in which all containers are, a larger weight than other processes."""
    shares = CGROUPS / "cpu" / "docker" / "cpu.shares"
    shares.parent.mkdir(exist_ok=True)  # Docker makes it with its first container
    before = shares.read_text()
    shares.write_text(str(_USUAL * OUTWEIGHS))
    try:
        yield
    finally:
        shares.write_text(before)


class Nodes:
    """Pins the containers of nodes, and samples their memory; a context manager. Only cgroup v1."""

    def __init__(self, cluster: str, count: int) -> None:
        self._containers = [f"{cluster}-n{number}" for number in range(1, count + 1)]
        self._names = [f"n{number}" for number in range(1, count + 1)]
        self._stop = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._memory_mib: list[float] = []

    def __enter__(self) -> "Nodes":
        for core, container in enumerate(self._containers):
            words = ["docker", "update", "--cpuset-cpus", str(core)]
            words += ["--cpu-shares", str(_USUAL * OUTWEIGHS), container]
            subprocess.run(words, capture_output=True, check=True)
        self._sampler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._sampler.join()

    def cpu_s(self) -> float:
        """CPU seconds of all jobs so far, from the cgroups that Slurm makes for them."""
        files = (CGROUPS / "cpuacct" / f"slurm_{node}" / "cpuacct.usage" for node in self._names)
        return sum(int(each.read_text()) for each in files if each.exists()) / 1e9

    def memory_mib(self) -> Sequence[float]:
        """Memory of all jobs, without caches, sampled since the last call."""
        found, self._memory_mib = self._memory_mib, []
        return found

    def _sample(self) -> None:
        while not self._stop.wait(_SAMPLE_S):
            total = 0
            for node in self._names:
                stat = CGROUPS / "memory" / f"slurm_{node}" / "memory.stat"
                with suppress(OSError):  # before its first job
                    lines = dict(line.split() for line in stat.read_text().splitlines())
                    total += int(lines["total_rss"])
            self._memory_mib.append(total / (1 << 20))
