# SPDX-License-Identifier: Apache-2.0
"""Use and shares of a job in a real hierarchy of cgroup v2, with Slurm's directories.

Where the controller `cpu` belongs to version 1, as on machines with both, the kernel has no
`cpu.max` in version 2: then use is read from version 2, and shares are kept by priorities. To test
`cpu.max` there: stop all containers, remove the cgroups below version 1's `cpu` and unmount it.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from bridge.agent.processes import Processes
from bridge.agent.use.job_use import JobUse
from bridge.extensions.sharing.on_nodes.keeper import ShareKeeper
from bridge.extensions.sharing.on_nodes.record import ShareRecord
from bridge.extensions.sharing.on_nodes.wanted import Share

NODE = f"sbtest{os.getpid()}"
USER = 65534
"""Root's processes are nobody's job."""
BUSY = ["/bin/sh", "-c", "while :; do :; done"]


def mounted() -> Path | None:
    """Where version 2 is mounted."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, where, kind, *_ = line.split()
        if kind == "cgroup2":
            return Path(where)
    return None


@pytest.fixture
def job() -> Iterator[tuple[Path, Path, int]]:
    """The hierarchy, the cgroup of job 7, and a busy process in its step."""
    root = mounted()
    if root is None or not os.access(root, os.W_OK) or os.geteuid():
        pytest.skip("needs root and a writable hierarchy of cgroup v2")
    scope = root / f"{NODE}_slurmstepd.scope"
    folder = scope / "job_7"
    step = folder / "step_0" / "user" / "task_0"
    process = None
    try:
        scope.mkdir()
        for above in (root, scope):
            if "cpu" in (above / "cgroup.controllers").read_text().split():
                (above / "cgroup.subtree_control").write_text("+cpu")
        step.mkdir(parents=True)
        process = subprocess.Popen(BUSY, user=USER, cwd="/")
        (step / "cgroup.procs").write_text(str(process.pid))
        yield root, folder, process.pid
    finally:
        if process is not None:
            process.kill()
            process.wait()
        for each in (step, step.parent, step.parent.parent, folder, scope):
            with suppress(FileNotFoundError):
                each.rmdir()


def test_use_is_read(job: tuple[Path, Path, int]) -> None:
    root, folder, pid = job
    use = JobUse((NODE,), Processes(), root)
    use.read(0.0)
    ran = Path(f"/proc/{pid}/stat")
    before = ran.read_text().split()[13]
    while int(ran.read_text().split()[13]) < int(before) + 5:  # ticks: it has run
        os.sched_yield()
    found = use.read(1.0)[NODE].jobs["7"]
    assert found.cpus is not None
    assert found.cpus > 0
    assert found.cpu_s is not None
    lines = (line.split() for line in (folder / "cpu.stat").read_text().splitlines())
    assert 0 < found.cpu_s <= int(dict(lines)["usage_usec"]) / 1e6
    if (folder / "memory.pressure").exists():
        assert found.pressure is not None
        assert 0 <= found.pressure <= 1
    else:  # a kernel without PSI
        assert found.pressure is None


def test_a_share_is_kept_and_given_back(job: tuple[Path, Path, int], tmp_path: Path) -> None:
    root, folder, pid = job
    has_cpu = (folder / "cpu.max").exists()
    keeper = ShareKeeper(
        (NODE,), ShareRecord(tmp_path / "shares.json"), Processes(), root=root, cpus=2
    )
    keeper.order(1, 60, [Share(NODE, "7", True, 500, 1)])
    (kept,) = keeper.look()
    if has_cpu:
        assert kept.method == "cgroup-v2"
        assert (folder / "cpu.max").read_text() == "50000 100000\n"
        assert (folder / "cpu.weight").read_text() == "1\n"
    else:
        assert kept.method == "priorities"
        assert os.sched_getscheduler(pid) == os.SCHED_IDLE
    keeper.order(2, 60, [])
    keeper.look()
    if has_cpu:
        assert (folder / "cpu.max").read_text() == "max 100000\n"
        assert (folder / "cpu.weight").read_text() == "100\n"
    else:
        assert os.sched_getscheduler(pid) == os.SCHED_OTHER
        assert os.getpriority(os.PRIO_PROCESS, pid) == 0
