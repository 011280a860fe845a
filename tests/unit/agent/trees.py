# SPDX-License-Identifier: Apache-2.0
"""Cgroups with the jobs of Slurm: as files, and real ones."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from bridge.extensions.sharing.on_nodes.wanted import Share
from tests.unit.agent.made_up import make_process

NODE = "n1"
REAL = Path("/sys/fs/cgroup")


class Clock:
    """A clock that a test sets."""

    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


class Tree:
    """A cgroup tree of version 2 with Slurm's jobs, as files."""

    def __init__(self, root: Path, node: str = NODE) -> None:
        self.root, self.scope = root, root / "system.slice" / f"{node}_slurmstepd.scope"
        self.scope.mkdir(parents=True)
        (root / "cgroup.controllers").write_text("cpuset cpu memory\n")

    def job(self, job: str, *pids: int) -> Path:
        folder = self.scope / f"job_{job}"
        step = folder / "step_0" / "user"
        step.mkdir(parents=True)
        (folder / "cpu.weight").write_text("100\n")
        (folder / "cpu.max").write_text("max 100000\n")
        (folder / "cgroup.procs").write_text("")
        (step / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))
        return folder

    def shows(self, job: str) -> tuple[str, str]:
        folder = self.scope / f"job_{job}"
        return (folder / "cpu.weight").read_text().strip(), (folder / "cpu.max").read_text().strip()


class OldTree:
    """A tree of version 1 as files: `freezer` lists the jobs, `cpu` has none of them."""

    def __init__(self, root: Path, proc: Path) -> None:
        self.root, self.proc = root, proc
        self.group(root / "cpu" / "docker" / "x")
        self.group(root / "cpu")

    @staticmethod
    def group(folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        return OldTree.fill(folder)

    @staticmethod
    def fill(folder: Path) -> Path:
        for name, text in (
            ("cpu.shares", "1024"), ("cpu.cfs_quota_us", "-1"), ("cpu.cfs_period_us", "100000"),
            ("cgroup.procs", ""),
        ):  # fmt: skip
            (folder / name).write_text(text + "\n")
        return folder

    def job(self, job: str, *pids: int) -> Path:
        folder = self.root / "freezer" / "slurm_n1" / "uid_1000" / f"job_{job}" / "step_batch"
        folder.mkdir(parents=True)
        (folder / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in (*pids, 99)))
        for pid in (*pids, 99):
            name, uid = ("slurmstepd", 0) if pid == 99 else ("job", 1000)
            cgroups = "5:cpu:/docker/x\n4:freezer:/a\n"
            make_process(self.proc, pid, uid, name=name, cgroups=cgroups)
        return folder

    def attach(self, pid: int, folder: Path) -> None:
        """What the kernel does."""
        for group in (self.root / "cpu").rglob("cgroup.procs"):
            left = [line for line in group.read_text().split() if line != str(pid)]
            group.write_text("".join(f"{line}\n" for line in left))
        if pid == 13:
            raise OSError(22, "a real-time process")
        if not (folder / "cpu.shares").exists():
            self.group(folder)
        with (folder / "cgroup.procs").open("a") as file:
            file.write(f"{pid}\n")
        named = folder.relative_to(self.root / "cpu")
        (self.proc / str(pid)).mkdir(exist_ok=True)
        (self.proc / str(pid) / "cgroup").write_text(f"5:cpu:/{named}\n4:freezer:/a\n")


def guest(job: str, milli: int = 1000, weight: int = 1) -> Share:
    return Share(NODE, job, guest=True, milli_cpus=milli, weight=weight)


def run(proc: Path, *pids: int) -> None:
    """Shows processes of a user that nobody kills."""
    for pid in pids:
        make_process(proc, pid)


def ends(folder: Path) -> None:
    """The processes of a job, as Slurm ends them; its cgroup may remain."""
    for procs in folder.rglob("cgroup.procs"):
        procs.write_text("")


def real_hierarchies() -> bool:
    return all(os.access(REAL / kind / "cgroup.procs", os.W_OK) for kind in ("cpu", "freezer"))


def wait_until(fact: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not fact():
        assert time.monotonic() < deadline
        time.sleep(0.02)


class RealJob:
    """Processes that fork, in a real cgroup as Slurm makes it."""

    def __init__(self, processes: int, job: str = "7", then: str = ":") -> None:
        """Starts them; `then` is run after `go_on`."""
        self.node, self.job = f"t{os.getpid()}", job
        self.folder = REAL / "freezer" / f"slurm_{self.node}" / "uid_0" / f"job_{self.job}"
        self.folder.mkdir(parents=True)
        procs = self.folder / "cgroup.procs"
        sleep = f"for i in $(seq {processes - 1}); do sleep 600 & done"
        self.shell = subprocess.Popen(
            ["sh", "-c", f"echo $$ >{procs}; {sleep}; read line; {then}; wait"],
            stdin=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        wait_until(lambda: len(procs.read_text().split()) == processes)

    def go_on(self) -> None:
        """Lets the shell run its second part."""
        assert self.shell.stdin is not None
        self.shell.stdin.write(b"\n")
        self.shell.stdin.flush()

    def end(self) -> None:
        """As Slurm does it: no process is left, and then no directory."""
        if self.shell.poll() is not None:
            return
        os.killpg(self.shell.pid, 9)
        self.shell.wait()
        wait_until(lambda: not (self.folder / "cgroup.procs").read_text())
        self.folder.rmdir()
        for each in (self.folder.parent, self.folder.parent.parent):
            if not any(at.is_dir() for at in each.iterdir()):
                each.rmdir()
