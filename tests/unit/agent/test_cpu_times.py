# SPDX-License-Identifier: Apache-2.0
"""The estimate of waiting by CPU time."""

import os

import pytest

from bridge.agent.cpu_times import CpuTimes
from bridge.agent.processes import Processes
from tests.unit.agent.made_up import in_job, make_process

S = 1_000_000_000


@pytest.fixture
def proc(tmp_path):
    tick = os.sysconf("SC_CLK_TCK")

    def process(pid, cpu_s, start=1, user=1000, name="a"):
        folder = make_process(tmp_path, pid, user, name=name, cgroups=in_job(7))
        middle = "0 " * 10
        cpu = f"{int(cpu_s * tick)} 0"
        (folder / "stat").write_text(f"{pid} (a) b) S {middle}{cpu} {'0 ' * 6}{start} 0")

    process.times = CpuTimes(Processes(tmp_path), tmp_path)
    return process


def test_waiting_is_the_time_without_cpu_of_processes_that_compute(proc):
    for pid in (11, 12, 13, 14):
        proc(pid, 5)
    proc(15, 5, user=0, name="slurmstepd")
    assert proc.times.read(100 * S) == {}
    proc(11, 13)  # waits for 2 s of 10
    proc(12, 45)  # four threads
    proc(13, 5.1)  # a shell
    proc(14, 13, start=2)  # another process
    proc(15, 13, user=0, name="slurmstepd")
    found = proc.times.read(110 * S)
    assert list(found) == [("7", "n1")]
    use = found["7", "n1"]
    assert (use.mpi_s, use.wall_s, use.processes) == pytest.approx((2, 20, 2))
