# SPDX-License-Identifier: Apache-2.0
"""Shares after restarts, the whole way: from plans of the service to the cgroups of two nodes."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from bridge.agent.processes import Processes
from bridge.extensions.sharing.on_nodes.cgroup_v1 import own_name
from bridge.extensions.sharing.on_nodes.keeper import ShareKeeper
from bridge.extensions.sharing.on_nodes.record import ShareRecord
from bridge.extensions.sharing.on_nodes.wanted import Share
from bridge.rpc.agents.hub import Hub
from bridge.rpc.pb import agent_pb2 as pb
from tests.unit.agent.made_up import make_process
from tests.unit.agent.trees import NODE, Clock, OldTree, Tree, ends, guest, run

NODES = "n1", "n2"
FULL, FLOOR = ("100", "max 100000"), ("1", "20000 100000")


class Site:
    """Two nodes, each with a host and a guest, their agents, and the service."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.clock = folder, Clock()
        run(folder / "proc", 70, 80)
        self.trees = [Tree(folder / node, node) for node in NODES]
        for tree in self.trees:
            tree.job("7", 70), tree.job("8", 80)
        self.restart_agents()
        self.restart_service()

    def restart_agents(self) -> None:
        """The next agents go on from the records of those before."""
        self.keepers = [
            ShareKeeper(
                [node], ShareRecord(self.folder / f"{node}.json"),
                Processes(self.folder / "proc"), root=tree.root, proc=self.folder / "proc", cpus=4,
                clock=self.clock,
            )
            for node, tree in zip(NODES, self.trees, strict=True)
        ]  # fmt: skip

    def restart_service(self) -> None:
        """The next service, to which all agents connect before its first plan."""
        self.hub = Hub(self.clock)
        self.connect()

    def connect(self) -> None:
        """The agents connect."""
        for node, keeper in zip(NODES, self.keepers, strict=True):
            keeper.begin()
            self.hub.arrived((node,), self.taker(keeper), takes_shares=True)

    def taker(self, keeper: ShareKeeper) -> Callable[[pb.AgentOrder], None]:
        def take(order: pb.AgentOrder) -> None:
            if order.HasField("shares"):
                shares = (
                    Share(each.node, each.job, each.guest, each.milli_cpus, each.weight)
                    for each in order.shares.shares
                )
                keeper.order(order.shares.sequence, order.shares.lease_ms / 1000, shares)

        return take

    def plan(self, milli_cpus: int) -> None:
        """A plan with this quota for both guests; 0: without quotas."""
        self.hub.extensions.get("sharing").orders.planned({
            node: (pb.Share(job="7", node=node, milli_cpus=milli_cpus, weight=50, guest=True),)
            for node in NODES
            if milli_cpus
        })  # fmt: skip

    def shown(self) -> list[tuple[str, str]]:
        """Weight and quota of both guests, after the agents have looked."""
        for keeper in self.keepers:
            keeper.look()
        return [tree.shows("7") for tree in self.trees]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    site = Site(tmp_path)
    site.plan(2000)
    assert site.shown() == [("50", "200000 100000")] * 2
    return site


def restart_service(site: Site) -> None:
    site.restart_service()


def restart_agents(site: Site) -> None:
    site.restart_agents()
    site.connect()


def restart_both(site: Site) -> None:
    site.restart_agents()
    site.restart_service()


def lose_the_controller(site: Site) -> None:
    """Plans cease until slurmctld is back: leases are no longer renewed."""
    site.clock.now_s += 60


@pytest.mark.parametrize(
    "restart", [restart_service, restart_agents, restart_both, lose_the_controller]
)
def test_after_a_restart_weights_and_quotas_are_those_of_the_next_plan(
    site: Site, restart: Callable[[Site], None]
) -> None:
    """Also if it has none: then they are lifted, not kept at the floor for ever."""
    restart(site)
    site.plan(0)
    assert site.shown() == [FULL] * 2
    site.plan(1000)
    assert site.shown() == [("50", "100000 100000")] * 2


@pytest.mark.parametrize("restart", [restart_service, restart_both, lose_the_controller])
def test_until_the_next_plan_guests_are_at_the_floor(
    site: Site, restart: Callable[[Site], None]
) -> None:
    restart(site)
    for _ in range(5):
        site.clock.now_s += 2
        site.hub.extensions.get("sharing").orders.renew()
    assert site.shown() == [FLOOR] * 2


@pytest.mark.parametrize("restart", [restart_service, restart_agents, lose_the_controller])
def test_until_the_next_plan_the_end_of_a_host_frees_its_own_guest_alone(
    site: Site, restart: Callable[[Site], None]
) -> None:
    restart(site)
    site.clock.now_s += 10
    ends(site.trees[0].scope / "job_8")
    assert site.shown() == [("1", FULL[1]), FLOOR]
    ends(site.trees[1].scope / "job_8")
    assert site.shown() == [("1", FULL[1])] * 2


def test_a_guest_between_two_steps_keeps_its_quota_over_a_restart_of_the_agent(
    tmp_path: Path, proc: Path, clock: Clock
) -> None:
    """Its processes start in a cgroup that is there already; the other guest has no pause."""
    tree, own = OldTree(tmp_path / "old", proc), dict[str, Path]()

    def keeper() -> ShareKeeper:
        return ShareKeeper(
            [NODE], ShareRecord(tmp_path / "shares.json"), Processes(proc),
            root=tree.root, proc=proc, cpus=4, clock=clock,
        )  # fmt: skip

    def step(job: str, pid: int) -> Path:
        folder, name = tree.job(job, pid), own_name((NODE, job))
        make_process(proc, pid, 1000, cgroups=f"5:cpu:/{name}\n")
        own[job] = tree.root / "cpu" / name
        if not own[job].exists():
            tree.group(own[job])
        (own[job] / "cgroup.procs").write_text(f"{pid}\n")
        return folder.parent

    def quotas() -> list[str]:
        return [(own[job] / "cpu.cfs_quota_us").read_text().strip() for job in "78"]

    first, _ = step("7", 11), step("8", 12)
    before = keeper()
    before.order(1, 6, [guest("7", 250), guest("8", 500)])
    before.look()
    shutil.rmtree(first)
    (own["7"] / "cgroup.procs").write_text("")
    before.look()
    after = keeper()
    after.order(1, 6, [guest("7", 250), guest("8", 500)])
    after.look()
    step("7", 13)
    assert quotas() == ["25000", "50000"]
    after.order(2, 6, [guest("8", 500)])
    after.look()
    assert quotas() == ["-1", "50000"]
