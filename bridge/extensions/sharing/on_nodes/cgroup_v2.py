# SPDX-License-Identifier: Apache-2.0
"""Shares by cgroup v2: `cpu.weight` and `cpu.max` of the cgroup that Slurm makes for a job.

Slurm (24.11) writes neither. No process is moved, and the cgroup ends with the job.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from bridge.agent.processes import is_slurms
from bridge.agent.use.cgroups import NodeCgroups
from bridge.extensions.sharing.on_nodes.method import (
    PERIOD_US,
    pids_below,
    put,
    quota_us,
)
from bridge.extensions.sharing.on_nodes.wanted import USUAL_WEIGHT, Share, ShareKey

NO_QUOTA: Final = f"max {PERIOD_US}"


class CgroupV2:
    """A `bridge.extensions.sharing.on_nodes.method.Method`."""

    name = "cgroup-v2"
    is_weaker = False

    def __init__(self, cgroups: dict[str, NodeCgroups], proc: Path = Path("/proc")) -> None:
        self._cgroups, self._proc = cgroups, proc

    def _folder(self, key: ShareKey) -> Path | None:
        node, job = key
        cgroups = self._cgroups.get(node)
        if cgroups is None or not cgroups.is_v2:
            return None
        return cgroups.folders().get(job)

    def offers(self, key: ShareKey) -> bool:
        """Where the controller `cpu` is enabled for the job's cgroup."""
        folder = self._folder(key)
        return folder is not None and (folder / "cpu.max").exists()

    def apply(self, share: Share) -> bool:
        """Weight first, because it protects the host."""
        folder = self._folder(share.key)
        if folder is None:
            return False
        put(folder / "cpu.weight", str(share.weight))
        quota = share.milli_cpus
        put(folder / "cpu.max", f"{quota_us(quota)} {PERIOD_US}" if quota else NO_QUOTA)
        return True

    def is_complete(self, key: ShareKey) -> bool:
        """Always: Slurm starts all processes in the job's cgroup."""
        return bool(key)

    def restore(self, key: ShareKey) -> bool:
        """Writes the kernel's defaults."""
        folder = self._folder(key)
        if folder is not None:
            put(folder / "cpu.max", NO_QUOTA)
            put(folder / "cpu.weight", str(USUAL_WEIGHT))
        return True

    def processes(self, key: ShareKey) -> Iterator[int]:
        """Processes of all steps, without Slurm's own."""
        folder = self._folder(key)
        for pid in pids_below(folder) if folder is not None else ():
            if not is_slurms(pid, self._proc):
                yield pid
