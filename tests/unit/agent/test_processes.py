# SPDX-License-Identifier: Apache-2.0
"""Whose processes count as a job's, on a made-up /proc."""

import errno
from pathlib import Path

import pytest

from bridge.agent.processes import Processes


@pytest.fixture
def proc(tmp_path):
    def process(pid, uid, *, environment="", cgroup="/"):
        folder = tmp_path / str(pid)
        folder.mkdir()
        (folder / "stat").write_text(f"{pid} (a) S 1 0")
        (folder / "comm").write_text("a\n")
        (folder / "status").write_text(f"Name:\ta\nUid:\t{uid}\t0\t0\t0\n")
        (folder / "cgroup").write_text(f"0::{cgroup}\n")
        (folder / "environ").write_text(environment)

    process.path = tmp_path
    return process


OF_7 = "A=b\0SLURM_JOB_ID=7\0SLURMD_NODENAME=n1\0"


def test_another_users_process_that_claims_a_job_does_not_count(proc):
    proc(10, 1000, environment=OF_7)
    proc(11, 1001, environment=OF_7)
    seen = Processes(proc.path)
    assert seen.count("7", "n1", 1000) == 1
    assert list(seen.of("7", "n1", 1001)) == [11]
    assert seen.count("7", "n1", 1002) == 0
    assert seen.count("7", "n1") == 2  # nobody knows whose job it is


def test_what_the_kernel_says_counts_whoever_runs_it(proc):
    proc(10, 1001, cgroup="/slurm_n1/uid_1000/job_7/step_0")
    proc(11, 1000, cgroup="/slurm_n1/uid_1000/job_8/step_0", environment=OF_7)
    assert list(Processes(proc.path).of("7", "n1", 1000)) == [10]


def test_a_process_that_ends_while_it_is_looked_at_is_not_taken_for_another_users(proc):
    proc(10, 1000, environment=OF_7)
    (proc.path / "10" / "status").unlink()
    assert Processes(proc.path).count("7", "n1", 1000) == 1


@pytest.mark.parametrize("file", ["stat", "cgroup", "environ"])
def test_what_cannot_be_read_for_want_of_descriptors_has_not_ended(proc, monkeypatch, file):
    proc(10, 1000, environment=OF_7)

    def no_descriptor(path, *arguments, of=Path.open, **more):
        if path.name == file:
            raise OSError(errno.EMFILE, "Too many open files")
        return of(path, *arguments, **more)

    monkeypatch.setattr(Path, "open", no_descriptor)
    assert Processes(proc.path).count("7", "n1", 1000) == 1
    assert Processes(proc.path).count("8", "n1", 1001) == 0  # it is no process of this user


def test_what_ends_before_it_is_read_does_not_count(proc):
    proc(10, 1000, environment=OF_7)
    (proc.path / "10" / "stat").unlink()
    assert Processes(proc.path).count("7", "n1", 1000) == 0
