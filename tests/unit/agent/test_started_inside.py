# SPDX-License-Identifier: Apache-2.0
"""Jobs whose processes start in their cgroup, as the SPANK plugin sees to it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.agent.processes import Processes
from bridge.agent.shares.cgroup_v1 import CgroupV1, own_name
from bridge.agent.shares.keeper import ShareKeeper
from bridge.agent.shares.record import ShareRecord
from bridge.agent.shares.wanted import Share
from tests.unit.agent.trees import REAL, RealJob, real_hierarchies, wait_until

CHAINS = f"""exec 3<&0; {sys.executable} -c '
import os, select, signal
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for chain in range(20):
    if not os.fork():
        while not select.select([3], [], [], 0)[0]:
            if os.fork():
                os._exit(0)
        os._exit(0)
' & true"""
"""Chains of processes each of which starts the next one, and ends; all end with whoever holds the
other end of the pipe, so also when the tests are killed."""


@pytest.fixture
def chains() -> Iterator[RealJob]:
    """A job of processes that fork all the time, and its empty cgroup in `cpu`."""
    if not real_hierarchies():
        pytest.skip("this machine has no writable hierarchies of cgroup v1")
    job = RealJob(1, then=CHAINS)
    try:
        yield job
    finally:
        job.end()


@pytest.mark.parametrize("inside", [True, False])
def test_a_job_is_stopped_only_to_catch_processes_that_started_outside(
    chains: RealJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, inside: bool
) -> None:
    """With the plugin nothing has to be caught, however fast the job forks."""
    key, stops, freeze = (chains.node, chains.job), list[str](), CgroupV1._freeze

    def counted(method: CgroupV1, job: tuple[str, str]) -> None:
        stops.append(job[1])
        freeze(method, job)

    monkeypatch.setattr(CgroupV1, "_freeze", counted)
    own = REAL / "cpu" / own_name(key)
    if inside:
        own.mkdir()
        (own / "cgroup.procs").write_text(str(chains.shell.pid))
    chains.go_on()
    wait_until(lambda: len((chains.folder / "cgroup.procs").read_text().split()) > 20)
    keeper = ShareKeeper([chains.node], ShareRecord(tmp_path / "shares.json"), Processes(), cpus=2)
    found = list[bool]()
    for _ in range(5):
        keeper.order(1, 6, [Share(*key, guest=True, milli_cpus=250, weight=1)])
        (each,) = keeper.look()
        found.append(each.complete)
    assert found[0] is inside
    assert all(found) or not inside
    assert not (inside and stops)
    assert own_name(key) in Path(f"/proc/{chains.shell.pid}/cgroup").read_text()
    chains.end()
    wait_until(lambda: keeper.look() is not None and not own.exists())
