# SPDX-License-Identifier: Apache-2.0
"""A guest that is alone on its node, while nobody renews its lease."""

import errno
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bridge.agent.processes import Processes
from bridge.extensions.sharing.on_nodes.keeper import ShareKeeper
from bridge.extensions.sharing.on_nodes.record import ShareRecord
from bridge.extensions.sharing.on_nodes.wanted import Share
from tests.unit.agent.trees import NODE, Clock, RealJob, Tree, ends, guest, run


def test_without_a_service_a_guest_that_is_alone_on_its_node_has_no_quota(
    tmp_path: Path, tree: Tree, clock: Clock, proc: Path
) -> None:
    """Two pairs on two nodes: the end of one host frees its own guest alone."""
    other = Tree(tmp_path / "cgroup", "n2")
    keeper = ShareKeeper(
        [NODE, "n2"], ShareRecord(tmp_path / "shares.json"), Processes(proc),
        root=tree.root, proc=proc, cpus=4, clock=clock,
    )  # fmt: skip
    run(proc, 70, 80, 90, 170, 180)
    host = tree.job("8", 80)
    tree.job("7", 70), other.job("17", 170), other.job("18", 180)
    keeper.order(1, 6, [guest("7", 2000, 50), replace(guest("17", 2000, 50), node="n2")])
    clock.now_s += 7
    keeper.look()
    assert tree.shows("7") == other.shows("17") == ("1", "20000 100000")
    ends(host)
    keeper.look()
    assert tree.shows("7") == ("1", "max 100000")
    assert other.shows("17") == ("1", "20000 100000")
    # Slurm's own scheduler starts the next job there, which is protected as the host was.
    tree.job("9", 90)
    keeper.look()
    assert tree.shows("7") == ("1", "20000 100000")


def test_the_next_agent_lifts_the_quota_of_a_guest_that_is_alone(
    tree: Tree, make: Callable[[], ShareKeeper], proc: Path
) -> None:
    run(proc, 70, 80)
    tree.job("7", 70)
    host, before = tree.job("8", 80), make()
    before.order(1, 6, [guest("7", 2000, 50)])
    before.look()
    ends(host)
    make().look()
    assert tree.shows("7") == ("1", "max 100000")


def test_a_job_that_cannot_be_read_is_no_job_that_has_ended(
    tree: Tree, make: Callable[[], ShareKeeper], clock: Clock, proc: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    run(proc, 70, 80)
    tree.job("7", 70)
    host, keeper, scandir = tree.job("8", 80), make(), os.scandir

    def without_files(path: str) -> object:
        if Path(path).is_relative_to(unread):
            raise OSError(errno.EMFILE, "too many open files")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", without_files)
    keeper.order(1, 6, [guest("7", 2000, 50)])
    clock.now_s += 7
    for unread in (host / "step_0", host, tree.scope):
        keeper.look()
        assert tree.shows("7") == ("1", "20000 100000"), unread


def test_the_kernel_no_longer_throttles_a_guest_that_is_alone(
    real_job: RealJob, tmp_path: Path, clock: Clock
) -> None:
    node, host = real_job.node, RealJob(2, "8")
    keeper = ShareKeeper(
        [node], ShareRecord(tmp_path / "shares.json"), Processes(), cpus=2, clock=clock
    )
    quotas = list[str]()
    try:
        keeper.order(1, 6, [Share(node, "7", guest=True, milli_cpus=500, weight=1)])
        clock.now_s += 7
        for ends in (lambda: None, host.end):
            ends()
            keeper.look()
            quotas.append((keeper.cgroups[node, "7"] / "cpu.cfs_quota_us").read_text())
        assert quotas == ["10000\n", "-1\n"]
    finally:
        host.end()
        real_job.end()
        keeper.look()
