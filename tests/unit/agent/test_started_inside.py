# SPDX-License-Identifier: Apache-2.0
"""Jobs whose processes start in their cgroup, as the SPANK plugin sees to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.agent.processes import Processes
from bridge.extensions.sharing.on_nodes.cgroup_v1 import CgroupV1, own_name
from bridge.extensions.sharing.on_nodes.keeper import ShareKeeper
from bridge.extensions.sharing.on_nodes.record import ShareRecord
from bridge.extensions.sharing.on_nodes.wanted import Share
from tests.unit.agent.trees import REAL, Clock, RealJob, real_hierarchies, wait_until

MORE = "for i in $(seq 20); do sleep 600 & done"
"""Processes that start after the job has its cgroup, or not. That none escapes, however fast a job
forks, is tested in C (test_cpu_groups.c), where chains of processes end by themselves."""


@pytest.fixture
def job() -> Iterator[RealJob]:
    """A job that starts more processes later."""
    if not real_hierarchies():
        pytest.skip("this machine has no writable hierarchies of cgroup v1")
    found = RealJob(1, then=MORE)
    try:
        yield found
    finally:
        found.end()


@pytest.mark.parametrize("inside", [True, False])
def test_a_job_is_stopped_only_to_catch_processes_that_started_outside(
    job: RealJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, inside: bool
) -> None:
    """With the plugin nothing has to be caught."""
    key, stops, freeze = (job.node, job.job), list[str](), CgroupV1._freeze

    def counted(method: CgroupV1, stopped: tuple[str, str]) -> None:
        stops.append(stopped[1])
        freeze(method, stopped)

    monkeypatch.setattr(CgroupV1, "_freeze", counted)
    own = REAL / "cpu" / own_name(key)
    if inside:
        own.mkdir()
        (own / "cgroup.procs").write_text(str(job.shell.pid))
    job.go_on()
    wait_until(lambda: len((job.folder / "cgroup.procs").read_text().split()) > 20)
    record = ShareRecord(tmp_path / "shares.json")
    keeper = ShareKeeper([job.node], record, Processes(), cpus=2, clock=Clock())
    found = list[bool]()
    for _ in range(5):
        keeper.order(1, 6, [Share(*key, guest=True, milli_cpus=250, weight=1)])
        (each,) = keeper.look()
        found.append(each.complete)
    assert found[0] is inside
    assert all(found) or not inside
    assert not (inside and stops)
    assert own_name(key) in Path(f"/proc/{job.shell.pid}/cgroup").read_text()
    job.end()
    keeper.order(2, 6, [])
    wait_until(lambda: keeper.look() is not None and not own.exists())
