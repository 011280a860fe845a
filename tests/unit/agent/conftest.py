# SPDX-License-Identifier: Apache-2.0
"""Jobs in cgroups, for the tests of their shares."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bridge.agent.processes import Processes
from bridge.extensions.sharing.on_nodes.keeper import ShareKeeper
from bridge.extensions.sharing.on_nodes.record import ShareRecord
from tests.unit.agent.trees import NODE, Clock, RealJob, Tree, real_hierarchies


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return Tree(tmp_path / "cgroup")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    folder = tmp_path / "proc"
    folder.mkdir()
    return folder


@pytest.fixture
def make(tmp_path: Path, tree: Tree, clock: Clock, proc: Path) -> Callable[[], ShareKeeper]:
    def keeper() -> ShareKeeper:
        return ShareKeeper(
            [NODE], ShareRecord(tmp_path / "shares.json"), Processes(proc),
            root=tree.root, proc=proc, cpus=4, clock=clock,
        )  # fmt: skip

    return keeper


@pytest.fixture
def real_job() -> Iterator[RealJob]:
    if not real_hierarchies():
        pytest.skip("this machine has no writable hierarchies of cgroup v1")
    job = RealJob(201)
    try:
        yield job
    finally:
        job.end()
