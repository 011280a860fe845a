# SPDX-License-Identifier: Apache-2.0
"""Whose processes count as a job's: on a made-up /proc, and with processes of other users."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from bridge.agent.cpu_times import CpuTimes
from bridge.agent.pages import BYTES, MAGIC, Pages
from bridge.agent.processes import Processes, is_slurms
from bridge.agent.progress import ProgressFiles
from bridge.agent.use.process_use import ProcessUse
from tests.unit.agent.made_up import in_job, make_folders, make_process

OF_7 = "A=b\0SLURM_JOB_ID=7\0SLURMD_NODENAME=n1\0"
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="starts processes of other users: root")


@pytest.fixture
def proc(tmp_path):
    process = partial(make_process, tmp_path)
    process.path = tmp_path
    return process


def test_another_users_process_that_claims_a_job_does_not_count(proc):
    proc(10, 1000, environment=OF_7)
    proc(11, 1001, environment=OF_7)
    seen = Processes(proc.path)
    assert seen.count("7", "n1", 1000) == 1
    assert list(seen.of("7", "n1", 1001)) == [11]
    assert seen.count("7", "n1", 1002) == 0
    assert seen.count("7", "n1") == 2  # nobody knows whose job it is


def test_what_the_kernel_says_counts_whoever_runs_it(proc):
    proc(10, 1001, cgroups=in_job(7))
    proc(11, 1000, cgroups=in_job(8), environment=OF_7)
    assert list(Processes(proc.path).of("7", "n1", 1000)) == [10]


@pytest.fixture
def two_jobs(proc):
    """Job 7 of this user, and a process of another one that claims it, on a node without cgroups.

    Job 8 is the other user's; nobody knows whose job 9 is.
    """
    own, other = os.geteuid(), 61002
    for pid, uid, job in ((10, own, 7), (11, other, 7), (13, other, 9)):
        proc(pid, uid, environment=f"SLURM_JOB_ID={job}\0SLURMD_NODENAME=n1\0")
    proc(12, other, parent=10)
    proc(14, own, parent=10)
    folders = make_folders(proc.path / "jobs", "7")
    return Processes(proc.path, folders), folders


def test_only_processes_of_the_jobs_user_claim_it(two_jobs):
    """Its user is the owner of its folder, whatever the service believes."""
    seen, _ = two_jobs
    assert list(seen.with_jobs()) == [(10, ("7", "n1"))]
    assert [seen.job_of(pid) for pid in (10, 11, 12, 13)] == [("7", "n1"), None, None, None]
    for uid in (None, os.geteuid(), 61002):
        assert list(seen.of("7", "n1", uid)) == [10]
    assert list(seen.of("9", "n1", 61002)) == [13]
    assert list(seen.of("9", "n1", 61003)) == []


def test_where_any_user_can_make_folders_nobody_claims_a_job(two_jobs, proc):
    seen, folders = two_jobs
    (proc.path / "jobs").chmod(0o1777)
    assert folders.user_of("7") is None
    assert not list(seen.with_jobs())


def test_a_launcher_is_of_the_user_of_its_job(two_jobs):
    """Its number alone does not tell: a process that has ended leaves it to another."""
    seen, _ = two_jobs
    own = os.geteuid()
    assert seen.job_of_family(10, own) == seen.job_of_family(14, own) == ("7", "n1")
    assert seen.job_of_family(10, 61002) is None
    assert seen.job_of_family(11, 61002) is None
    assert seen.job_of_family(12, 61002) is None
    assert seen.job_of_family(12, own) is None


def test_no_reader_books_a_strangers_process_to_a_job(two_jobs, proc):
    """Memory, CPU time, time in MPI and progress of job 7 are those of process 10."""
    seen, folders = two_jobs
    tick, page = os.sysconf("SC_CLK_TCK"), os.sysconf("SC_PAGE_SIZE")

    def work(cpu_s):
        for pid in (10, 11, 13):
            cpu = f"{int(cpu_s * tick)} 0"
            stat = f"{pid} (a) S {'0 ' * 10}{cpu} {'0 ' * 6}1 0 {(1 << 20) // page} 0"
            (proc.path / str(pid) / "stat").write_text(stat)
            raw = MAGIC + (1).to_bytes(4, "little")
            (proc.path / "jobs" / "7" / f"mpi.{pid}").write_bytes(raw.ljust(BYTES, b"\0"))

    (proc.path / "jobs" / "7" / "progress").write_text("0.5")
    use, times, pages = ProcessUse(seen, proc.path), CpuTimes(seen, proc.path), Pages(seen, folders)
    for cpu_s in (1, 2):
        work(cpu_s)
        used, waited = use.read(), times.read(cpu_s * 1_000_000_000)
    assert list(used) == list(waited) == [("7", "n1")]
    assert (used["7", "n1"].cpu_s, used["7", "n1"].memory_bytes) == (1, 1 << 20)
    assert waited["7", "n1"].processes == 1
    assert [use.processes for use in pages.read(1).values()] == [1]
    assert ProgressFiles(seen, folders).read() == {("7", "n1"): 0.5}


@pytest.mark.parametrize("file", ["status", "cgroup", "environ"])
def test_what_cannot_be_read_for_want_of_descriptors_has_not_ended(proc, monkeypatch, file):
    proc(10, 1000, environment=OF_7)

    def no_descriptor(path, *arguments, of=Path.open, **more):
        if path.name == file:
            raise OSError(errno.EMFILE, "Too many open files")
        return of(path, *arguments, **more)

    monkeypatch.setattr(Path, "open", no_descriptor)
    seen = Processes(proc.path)
    assert seen.count("7", "n1", 1000) == 1
    assert seen.count("8", "n1", 1001) == (file == "status")  # it is no process of this user


@pytest.mark.parametrize("file", ["status", "cgroup", "environ"])
def test_what_ends_before_it_is_read_does_not_count(proc, file):
    proc(10, 1000, environment=OF_7)
    (proc.path / "10" / file).unlink()
    assert Processes(proc.path).count("7", "n1", 1000) == 0


def test_only_root_is_slurmstepd(proc):
    """Whatever a process of a user calls itself; two users, and a name that imitates a field."""
    for pid, uid, name in (
        (10, 1000, "slurmstepd"), (11, 1001, "slurmstepd"), (12, 0, "slurmstepd"),
        (13, 1000, "a\rUid:\t0"), (14, 0, "sleep"),
    ):  # fmt: skip
        proc(pid, uid, name=name, cgroups=in_job(7))
    seen = Processes(proc.path)
    assert sorted(seen.of("7", "n1", 1000)) == [10, 11, 13, 14]
    assert dict(seen.with_jobs()) == dict.fromkeys((10, 11, 13, 14), ("7", "n1"))
    assert [pid for pid in range(10, 16) if is_slurms(pid, proc.path)] == [12]


def test_a_cgroup_that_a_user_made_is_none_of_slurms(proc):
    """Below the user's own manager, and the hierarchy of systemd in version 1.

    An agent in a namespace of cgroups sees those outside of it behind `..`.
    """
    below = "/user.slice/user-1001.slice/user@1001.service"
    proc(10, 1001, cgroups=f"0::{below}/n1_slurmstepd.scope/job_7/step_0\n")
    proc(11, 1001, cgroups=f"0::{below}/slurm_n1/uid_1000/job_7\n")
    proc(12, 1001, cgroups=f"1:name=systemd:{below}/slurm_n1/uid_1000/job_7\n4:freezer:/\n")
    proc(13, 1001, cgroups="0::/system.slice/job_7/step_0\n")
    proc(14, cgroups="0::/system.slice/n1_slurmstepd.scope/job_7/step_0/user/task_0\n")
    proc(15, cgroups="0::/slurmstepd.scope/job_8/step_batch/user/task_0\n")
    proc(16, cgroups="1:name=systemd:/\n4:freezer:/docker/x/slurm/uid_1000/job_9/step_0\n0::/\n")
    proc(17, cgroups="0::/n1_slurmstepd.scope/job_7/step_extern/user/task_special\n")
    proc(18, 1001, cgroups=f"0::/../..{below}/n1_slurmstepd.scope/job_7/step_0\n")
    proc(19, 1002, cgroups=f"5:memory:{below}/slurm_n1/uid_1000/job_8\n")
    proc(20, cgroups="0::/../slurmstepd.scope/job_8/user.slice/step_0\n")
    found = {14: ("7", "n1"), 15: ("8", ""), 16: ("9", ""), 20: ("8", "")}
    assert dict(Processes(proc.path).with_jobs()) == found


# ------------------------------------------------------------ real processes of other users


@contextmanager
def running(
    uid: int, *, name: str = "", effective: int | None = None, job: str = ""
) -> Iterator[int]:
    """A busy process of another user; its id.

    Args:
        uid: its real user.
        name: as which it writes itself into its own comm.
        effective: its effective user, as of a setuid program; None: the same.
        job: in its environment.
    """
    code = "import os; os.write(1, b'.')\nwhile True: pass"
    if name:
        code = f"open('/proc/self/comm', 'w').write({name!r})\n{code}"
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.dup2(write, 1)
        os.setgroups([])
        os.setresuid(uid, uid if effective is None else effective, -1)
        environment = {"SLURM_JOB_ID": job, "SLURMD_NODENAME": "n1"} if job else {}
        os.execve("/usr/bin/python3", ["python3", "-I", "-c", code], environment)
    os.close(write)
    try:
        assert os.read(read, 1) == b"."
        yield pid
    finally:
        os.close(read)
        os.kill(pid, 9)
        os.waitpid(pid, 0)


@root_only
def test_processes_named_slurmstepd_and_of_setuid_programs_are_seen(tmp_path):
    """By every reader: one of each of two users. Root owns the folder in /proc of the second."""
    first, second = f"9{os.getpid()}1", f"9{os.getpid()}2"
    with (
        running(61001, name="slurmstepd", job=first) as named,
        running(61002, effective=0, job=second) as setuid,
    ):
        assert Path(f"/proc/{setuid}").stat().st_uid == 0
        make_folders(tmp_path, first, uid=61001)
        seen = Processes(folders=make_folders(tmp_path, second, uid=61002))
        assert [*seen.of(first, "n1", 61001), *seen.of(second, "n1", 61002)] == [named, setuid]
        assert {first, second} <= {job for _, (job, _) in seen.with_jobs()}
        assert not is_slurms(named)
        times, use = CpuTimes(seen), ProcessUse(seen)
        times.read(0), use.read()
        before = _ticks(named), _ticks(setuid)
        while min(_ticks(named) - before[0], _ticks(setuid) - before[1]) < 10:
            os.sched_yield()
        used = use.read()
        waited = times.read(1_000_000_000)
        for job in (first, second):
            assert used[job, "n1"].cpu_s > 0
            assert waited[job, "n1"].processes == 1


def _ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])
