# SPDX-License-Identifier: Apache-2.0
"""Cgroups of a host and its guest, v1 or v2, below one that outweighs the rest of the machine."""

import os
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
NAME = f"schedbridge-interference-{os.getpid()}"
PERIOD_US = 100_000
USUAL_WEIGHT, MIN_WEIGHT = 100.0, 0.2
"""As in cgroup v2; the minimum is that of v1 (`cpu.shares` 2 of 1024)."""
_OUTWEIGHS = 32


class Groups:
    """The two groups; a context manager, which removes them."""

    def __init__(self) -> None:
        self.version = 2 if (ROOT / "cgroup.controllers").exists() else 1
        self._tops = (
            [ROOT / NAME] if self.version == 2 else [ROOT / "cpu" / NAME, ROOT / "cpuacct" / NAME]
        )

    def __enter__(self) -> "Groups":
        for top in self._tops:
            top.mkdir()
            if self.version == 2:
                (top / "cgroup.subtree_control").write_text("+cpu")
            for job in ("host", "guest"):
                (top / job).mkdir()
        if self.version == 1:
            (self._tops[0] / "cpu.shares").write_text(str(1024 * _OUTWEIGHS))
        else:
            (self._tops[0] / "cpu.weight").write_text(str(100 * _OUTWEIGHS))
        return self

    def __exit__(self, *_: object) -> None:
        for job in ("host", "guest"):
            self.limit(job, None, USUAL_WEIGHT)  # throttled processes end slowly
            self.kill(job)
        for top in self._tops:
            for folder in (top / "host", top / "guest", top):
                folder.rmdir()

    def enter(self, job: str) -> None:
        """Moves the calling process into a group."""
        for top in self._tops:
            (top / job / "cgroup.procs").write_text(str(os.getpid()))

    def limit(self, job: str, cpus: float | None, weight: float) -> None:
        """Sets the quota of a group in CPUs (None: none), and its weight."""
        folder = self._tops[0] / job
        quota_us = -1 if cpus is None else round(cpus * PERIOD_US)
        if self.version == 1:
            (folder / "cpu.shares").write_text(str(max(2, round(weight * 1024 / USUAL_WEIGHT))))
            (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (folder / "cpu.cfs_quota_us").write_text(str(quota_us))
        else:
            (folder / "cpu.weight").write_text(str(max(1, round(weight))))
            (folder / "cpu.max").write_text(f"{'max' if cpus is None else quota_us} {PERIOD_US}")

    def cpu_s(self, job: str) -> float:
        """CPU time that a group has used so far."""
        folder = self._tops[-1] / job
        if self.version == 1:
            return int((folder / "cpuacct.usage").read_text()) / 1e9
        lines = dict(line.split() for line in (folder / "cpu.stat").read_text().splitlines())
        return int(lines["usage_usec"]) / 1e6

    def kill(self, job: str) -> None:
        """Ends all processes of a group, and waits until they are gone."""
        folder, deadline_s = self._tops[0] / job, time.monotonic() + 20
        while found := (folder / "cgroup.procs").read_text().split():
            for pid in found:
                try:
                    os.kill(int(pid), 9)
                except ProcessLookupError:
                    continue
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"{len(found)} processes of the {job} do not end")
            time.sleep(0.01)
