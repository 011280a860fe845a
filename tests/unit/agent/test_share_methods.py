# SPDX-License-Identifier: Apache-2.0
"""How shares get into force without version 2 of cgroups: by version 1, and by priorities."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bridge.agent.processes import Processes
from bridge.agent.use.cgroups import NodeCgroups
from bridge.extensions.sharing.on_nodes.cgroup_v1 import CgroupV1, own_name, shares_of
from bridge.extensions.sharing.on_nodes.keeper import ShareKeeper
from bridge.extensions.sharing.on_nodes.mounts import cgroup_of
from bridge.extensions.sharing.on_nodes.priorities import PriorityMethod, priority_of
from bridge.extensions.sharing.on_nodes.record import ShareRecord
from bridge.extensions.sharing.on_nodes.wanted import Share
from tests.unit.agent.made_up import make_folders, make_process
from tests.unit.agent.trees import NODE, Clock, OldTree, RealJob, ends, guest

# ---------------------------------------------------------------- version 1


@pytest.fixture
def old(tmp_path: Path, proc: Path) -> OldTree:
    return OldTree(tmp_path / "old", proc)


@pytest.fixture
def method(old: OldTree, proc: Path, monkeypatch: pytest.MonkeyPatch) -> CgroupV1:
    mkdir = Path.mkdir

    def kernel(folder: Path, *args: int, **how: bool) -> None:
        mkdir(folder, *args, **how)
        if folder.is_relative_to(old.root / "cpu") and not (folder / "cpu.shares").exists():
            OldTree.fill(folder)

    monkeypatch.setattr(Path, "mkdir", kernel)
    rmdir = Path.rmdir

    def remove(folder: Path) -> None:
        if folder.is_relative_to(old.root / "cpu"):
            for file in folder.iterdir():
                file.unlink()
        rmdir(folder)

    monkeypatch.setattr(Path, "rmdir", remove)
    cgroups = {NODE: NodeCgroups(NODE, alone=True, root=old.root)}
    return CgroupV1(cgroups, old.root, proc, attach=old.attach)


def test_between_its_steps_a_guest_keeps_its_quota(
    old: OldTree, method: CgroupV1, tmp_path: Path, clock: Clock
) -> None:
    """Slurm has no cgroup of a job of several nodes where it has no step; the other goes on."""
    steps = [old.job(job, pid) for job, pid in (("7", 11), ("8", 12))]
    keeper = ShareKeeper(
        [NODE], ShareRecord(tmp_path / "shares.json"), Processes(old.proc),
        root=old.root, proc=old.proc, cpus=4, clock=clock,
    )  # fmt: skip
    keeper.order(1, 6, [guest("7", 250), guest("8", 500)])
    keeper.look()
    own = [keeper.cgroups[NODE, job] for job in "78"]
    for folder in (own[0], steps[0]):
        (folder / "cgroup.procs").write_text("")
    shutil.rmtree(steps[0].parent)
    keeper.look()
    assert [(each / "cpu.cfs_quota_us").read_text().strip() for each in own] == ["25000", "50000"]
    assert [each.method for each in keeper.in_force] == ["", method.name]
    keeper.order(2, 6, [guest("8", 500)])
    keeper.look()
    assert [each.exists() for each in own] == [False, True]
    assert keeper.cgroups.keys() == {(NODE, "8")}


def test_processes_are_moved_into_a_cgroup_below_their_own(old: OldTree, method: CgroupV1) -> None:
    folder = old.job("7", 11, 12, 13)
    make_process(old.proc, 12, name="slurmstepd")
    assert method.offers((NODE, "7"))
    assert method.apply(guest("7", 250))
    own = old.root / "cpu" / "docker" / "x" / own_name((NODE, "7"))
    assert (own / "cgroup.procs").read_text().split() == ["11", "12"]
    assert (own / "cpu.shares").read_text().strip() == "10"
    assert (own / "cpu.cfs_quota_us").read_text().strip() == "25000"
    # A new process that was born outside comes in with the next look.
    (folder / "cgroup.procs").write_text("11\n12\n14\nodd\n0\n")
    assert method.apply(guest("7", 250))
    assert (own / "cgroup.procs").read_text().split() == ["11", "12", "14"]
    # With its full share the job stays in it, and the cgroup ends with the job.
    assert not method.restore((NODE, "7"))
    assert (own / "cpu.shares").read_text().strip() == "1024"
    assert (own / "cpu.cfs_quota_us").read_text().strip() == "-1"
    ends(own)
    assert method.restore((NODE, "7"))
    assert not own.exists()
    assert not method.own


def test_the_cgroup_in_which_a_job_has_started_is_found(old: OldTree, method: CgroupV1) -> None:
    """Beside a process that Slurm has adopted, which is in the cgroup of a login."""
    old.job("7", 11, 12)
    started = old.root / "cpu" / "docker" / "x" / own_name((NODE, "7"))
    old.group(started)
    old.group(old.root / "cpu" / "user.slice")
    make_process(old.proc, 11, cgroups="5:cpu:/user.slice\n")
    make_process(old.proc, 12, cgroups=f"5:cpu:/docker/x/{started.name}\n")
    (started / "cgroup.procs").write_text("12\n")
    assert method.apply(guest("7", 250))
    assert method.own == {(NODE, "7"): started}
    assert (started / "cgroup.procs").read_text().split() == ["12", "11"]
    assert not method.is_complete((NODE, "7"))


def test_a_job_that_forks_faster_than_it_is_moved_is_frozen_meanwhile(
    old: OldTree, method: CgroupV1
) -> None:
    folder = old.job("7", 11)
    state = folder.parent / "freezer.state"
    state.write_text("THAWED\n")
    moves, recorded = list[tuple[int, str]](), list[set[tuple[str, str]]]()

    def attach(pid: int, own: Path) -> None:
        """Each process has a child before it is moved, unless it is frozen."""
        moves.append((pid, state.read_text().strip()))
        old.attach(pid, own)
        if moves[-1][1] == "THAWED":
            with (folder / "cgroup.procs").open("a") as file:
                file.write(f"{pid + 10}\n")

    method._attach, method._freezes = attach, lambda: recorded.append(set(method.frozen))
    assert method.apply(guest("7", 250))
    assert moves == [(11, "THAWED"), (21, "THAWED"), (31, "THAWED"), (41, "FROZEN")]
    assert recorded == [{(NODE, "7")}]
    assert state.read_text() == "THAWED"
    assert not method.frozen
    # What an agent had frozen when it died, the next one thaws; what Slurm has suspended, nobody.
    state.write_text("FROZEN\n")
    method.thaw()
    assert state.read_text() == "FROZEN\n"
    method.frozen = {(NODE, "7"), (NODE, "8")}
    method.thaw()
    assert state.read_text() == "THAWED"


def test_a_number_that_was_given_out_again_bounds_nobody_else(
    old: OldTree, method: CgroupV1
) -> None:
    """Process 12 ends before it is moved, and a process of others gets its number."""
    folder, outside = old.job("7", 11, 12), old.root / "cpu" / "docker" / "x"
    seen = list[list[str]]()

    def attach(pid: int, own: Path) -> None:
        if pid == 12:
            (folder / "cgroup.procs").write_text("11\n")
        old.attach(pid, own)
        seen.append((outside / own_name((NODE, "7")) / "cgroup.procs").read_text().split())

    method._attach = attach
    assert method.apply(guest("7", 250))
    assert ["12"] in [[pid for pid in each if pid == "12"] for each in seen]
    assert (outside / own_name((NODE, "7")) / "cgroup.procs").read_text().split() == ["11"]
    assert "12" in (outside / "cgroup.procs").read_text().split()


def test_a_hierarchy_shared_with_cpuacct_is_written_in_place(tmp_path: Path, proc: Path) -> None:
    root = tmp_path / "both"
    user = OldTree.group(root / "cpu,cpuacct" / "slurm_n1" / "uid_1000")
    OldTree.group(root / "cpu,cpuacct")
    job, other = OldTree.group(user / "job_7"), OldTree.group(user / "job_8")
    method = CgroupV1({NODE: NodeCgroups(NODE, alone=True, root=root)}, root, proc)
    assert method.apply(guest("7", 500))
    assert (job / "cpu.shares").read_text() == "10"
    assert (job / "cpu.cfs_quota_us").read_text() == "50000"
    assert (user / "cpu.shares").read_text().strip() == "1024"  # its other job is no guest
    assert method.apply(guest("8", 500))
    assert (user / "cpu.shares").read_text().strip() == "10"
    assert method.restore((NODE, "7"))
    assert method.restore((NODE, "8"))
    assert (other / "cpu.cfs_quota_us").read_text() == "-1"
    assert (user / "cpu.shares").read_text().strip() == "1024"


def test_weights_become_shares() -> None:
    assert [shares_of(weight) for weight in (1, 100, 10_000)] == [10, 1024, 102_400]


def test_a_cgroup_is_found_below_what_is_mounted(tmp_path: Path) -> None:
    proc, cpu = tmp_path / "proc", tmp_path / "cpu"
    (proc / "self").mkdir(parents=True), (proc / "5").mkdir(), (cpu / "job").mkdir(parents=True)
    (proc / "5" / "cgroup").write_text("3:cpuacct:/no\n2:cpu:/docker/x/job\n")
    (proc / "self" / "mountinfo").write_text(f"29 25 0:26 /docker/x {cpu} rw - cgroup cgroup rw\n")
    assert cgroup_of(5, cpu, proc) == cpu / "job"
    (proc / "5" / "cgroup").write_text("2:cpu:/elsewhere/../..\n")
    assert cgroup_of(5, cpu, proc) == cpu


@pytest.mark.parametrize("ends", [False, True])
def test_a_real_cgroup_holds_every_process_and_leaves_no_trace(
    real_job: RealJob, tmp_path: Path, *, ends: bool
) -> None:
    record = tmp_path / "shares.json"
    node, job = real_job.node, real_job.job
    keeper = ShareKeeper([node], ShareRecord(record), Processes(), cpus=2, clock=Clock())
    keeper.order(1, 6, [Share(node, job, guest=True, milli_cpus=250, weight=1)])
    assert [each.method for each in keeper.look()] == ["cgroup-v1"]
    own = keeper.cgroups[node, job]
    assert len((own / "cgroup.procs").read_text().split()) == 201
    assert (own / "cpu.cfs_quota_us").read_text() == "25000\n"
    assert (own / "cpu.shares").read_text() == "10\n"
    assert own.stat().st_uid == 0
    assert not own.stat().st_mode & 0o022
    if ends:  # as the service learns a moment later; until then it may be between two steps
        real_job.end()
        keeper.look()
        assert (own / "cpu.cfs_quota_us").read_text() == "25000\n"
        keeper.order(2, 6, [])
    else:
        # An agent that died before it had recorded the cgroup is followed by one that finds it.
        record.unlink()
        keeper = ShareKeeper([node], ShareRecord(record), Processes(), cpus=2, clock=Clock())
        keeper.order(1, 6, [Share(node, job, guest=True, milli_cpus=250, weight=1)])
        keeper.look()
        assert keeper.cgroups[node, job] == own
        keeper.order(2, 6, [])
        keeper.look()
        assert (own / "cpu.cfs_quota_us").read_text() == "-1\n"
        assert (own / "cpu.shares").read_text() == "1024\n"
        assert not keeper.is_idle
        real_job.end()
    keeper.look()
    assert not own.exists()
    assert not json.loads(record.read_text())["own"]


# ---------------------------------------------------------------- priorities


def test_weights_become_priorities() -> None:
    assert priority_of(1) == (os.SCHED_IDLE, 19)
    assert priority_of(100) == (os.SCHED_OTHER, 0)
    assert priority_of(10_000) == (os.SCHED_OTHER, 0)
    assert priority_of(33) == (os.SCHED_OTHER, 5)


class Known(Processes):
    """One process, found for a job on a node."""

    def __init__(self, pid: int, job: str, node: str, folder: Path) -> None:
        super().__init__(folders=make_folders(folder, "7", "8"))
        self._found = pid, (job, node)

    def with_jobs(self) -> Iterator[tuple[int, tuple[str, str]]]:
        return iter([self._found])


@contextmanager
def sleeping(environment: dict[str, str]) -> Iterator[int]:
    """A process that sleeps; its id.

    `Popen` returns a moment before the kernel shows the environment of the new program: whoever
    reads it at once finds it empty.
    """
    asleep = subprocess.Popen(["sleep", "600"], env=environment)
    try:
        while asleep.poll() is None and not Path(f"/proc/{asleep.pid}/environ").read_bytes():
            time.sleep(0.001)
        yield asleep.pid
    finally:
        asleep.kill()
        asleep.wait()


def test_without_cgroups_processes_get_a_priority(tmp_path: Path) -> None:
    """Own processes may be lowered by anybody; what root may raise again is left to the cluster."""
    with sleeping({"SLURM_JOB_ID": "7", "SLURMD_NODENAME": NODE}) as pid:
        method = PriorityMethod(Known(pid, "7", NODE, tmp_path))
        assert method.is_weaker
        assert method.apply(guest("7"))
        assert os.sched_getscheduler(pid) == os.SCHED_IDLE
        assert os.getpriority(os.PRIO_PROCESS, pid) == 19
        assert not method.apply(guest("8"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may raise a priority again")
def test_priorities_are_given_back(tmp_path: Path) -> None:
    with sleeping({"SLURM_JOB_ID": "7"}) as pid:
        method = PriorityMethod(Known(pid, "7", "", tmp_path))
        assert method.apply(guest("7", weight=33))
        assert os.getpriority(os.PRIO_PROCESS, pid) == 5
        assert method.apply(guest("7"))
        assert os.sched_getscheduler(pid) == os.SCHED_IDLE
        assert method.restore((NODE, "7"))
        assert os.sched_getscheduler(pid) == os.SCHED_OTHER
        assert os.getpriority(os.PRIO_PROCESS, pid) == 0


def test_a_process_that_got_the_number_of_a_jobs_keeps_its_priority(tmp_path: Path) -> None:
    """The processes of job 7 were looked up a moment ago; this one is of another job by now."""
    with sleeping({"SLURM_JOB_ID": "8"}) as pid:
        method = PriorityMethod(Known(pid, "7", NODE, tmp_path))
        assert not method.apply(guest("7"))
        assert os.sched_getscheduler(pid) == os.SCHED_OTHER
        assert os.getpriority(os.PRIO_PROCESS, pid) == os.getpriority(os.PRIO_PROCESS, 0)
