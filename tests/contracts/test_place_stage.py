# SPDX-License-Identifier: Apache-2.0
"""What every place policy must do that places jobs jointly on a tree of switches."""

import dataclasses

import numpy as np
import pytest

from bridge.model.hop_tree import HopTree
from bridge.model.topology import Topology, fat_tree, regular
from bridge.policies.place.sequential import rank_by_weight
from bridge.ports import JointPlacer, Selection, ranks_by_size
from bridge.registry import build, choices, parse_policy
from tests.builders import a_job, a_node, a_running_job, a_snapshot
from tests.crosses import each
from tests.cycles import Memory, check, run
from tests.worlds import random_world

PARAMETERS = {
    "compact": {"budget_ms": 0, "effort": 50},
    "search": {"budget_ms": 0, "effort": 2000},
}
"""Bounds that do not depend on the clock."""


def a_policy(place, plan="conservative"):
    spec = {
        stage: {"name": name, **PARAMETERS.get(name, {})}
        for stage, name in (("plan", plan), ("place", place))
    }
    return build(parse_policy(spec))


JOINT_PLACERS = [
    name for name in choices()["place"] if isinstance(a_policy(name).place, JointPlacer)
]
TREES = {
    "fat tree": fat_tree(4),
    "unequal": Topology(
        ("a", "b", "c", "top"),
        np.array([3, 3, 3, -1], np.int32),
        np.array([0] * 9 + [1] * 2 + [2] * 5, np.int32),
    ),
    "two fabrics": Topology(
        ("a", "b"), np.array([-1, -1], np.int32), np.array([0] * 8 + [1] * 8, np.int32)
    ),
}


def test_what_fits_best_by_size_alone_is_stated():
    """By every policy whose ranks are those of the weights, and by no other one."""
    snapshot = a_snapshot(nodes=[a_node(cpus) for cpus in (4, 8, 8, 4)])()
    for name in choices()["place"]:
        place = a_policy(name).place
        found = place.preference(snapshot)
        of_weight = found.rank.tolist() == rank_by_weight(snapshot).tolist()
        best_fit = found.selection is Selection.BEST_FIT
        assert ranks_by_size(place) == (of_weight and best_fit), name


def test_there_are_some():
    assert set(JOINT_PLACERS) == {"compact", "contiguous-exact", "annealing", "neural"}


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
@pytest.mark.parametrize("place", JOINT_PLACERS)
class TestEveryJointPlacer:
    @each(seed=range(10))
    def test_sets_are_disjoint_idle_whole_and_of_one_fabric(self, place, tree, seed):
        rng = np.random.default_rng(seed)
        idle = np.flatnonzero(rng.random(16) < 0.8).astype(np.int32)
        sizes = rng.integers(1, 6, rng.integers(1, 12)).astype(np.int32)
        hop_tree = HopTree.of(tree)
        indptr, nodes = a_policy(place).place.place_jobs(hop_tree, idle, sizes, rng)
        assert len(set(nodes.tolist())) == len(nodes)
        assert set(nodes.tolist()) <= set(idle.tolist())
        assert all(w in (0, size) for w, size in zip(np.diff(indptr), sizes, strict=True))
        assert np.isfinite(hop_tree.costs((indptr, nodes))).all()

    def test_the_same_seed_gives_the_same_sets(self, place, tree):
        hop_tree, idle = HopTree.of(tree), np.arange(16, dtype=np.int32)
        sizes = np.array([3, 2, 4, 2], dtype=np.int32)
        first, again = (
            a_policy(place).place.place_jobs(hop_tree, idle, sizes, np.random.default_rng(4))
            for _ in range(2)
        )
        assert np.array_equal(first[0], again[0])
        assert np.array_equal(first[1], again[1])


GREEDY = ("easy", "conservative", "openccs")


@pytest.mark.parametrize("plan", choices()["plan"])
@each(place=JOINT_PLACERS, seed=range(20))
def test_cycles_are_legal_and_nobody_waits_for_hops(place, plan, seed):
    if seed >= 4 and plan not in GREEDY:
        pytest.skip("few worlds for those that take long")
    world = random_world(seed)
    topology = regular(max(len(world.nodes), 1), 2, 4)
    before = run(world, Memory(), a_policy("sequential", plan), np.random.default_rng(0))
    memory = Memory()
    snapshot = dataclasses.replace(world, topology=topology)
    after = run(snapshot, memory, a_policy(place, plan), np.random.default_rng(0))
    assert check(snapshot, after) == ()
    for column in ("job", "start_s", "end_s", "partition", "indptr"):
        assert np.array_equal(getattr(before, column), getattr(after, column))
    assert before.reasons == after.reasons
    assert memory.placement is not None
    assert memory.placement.after <= memory.placement.before
    widths, costs = np.diff(after.indptr), HopTree.of(topology).costs((after.indptr, after.nodes))
    now = after.starts_now
    assert costs[now[widths[now] > 1]].sum() >= memory.placement.after - 1e-6


def test_two_jobs_get_a_switch_each():
    """One after the other takes nodes 0 and 1, then 2 to 5 across both switches."""
    world = a_snapshot(nodes=8, jobs=[a_job(nodes=2), a_job(nodes=4)])()
    snapshot = dataclasses.replace(world, topology=regular(8, 4))
    memory = Memory()
    plan = run(snapshot, memory, a_policy("compact"), np.random.default_rng(0))
    assert [len(set((plan.nodes_of(row) // 4).tolist())) for row in range(2)] == [1, 1]
    assert memory.placement is not None
    assert memory.placement.after < memory.placement.before
    assert (plan.start_s == snapshot.now_s).all()


def test_shared_nodes_are_taken_where_there_is_room():
    """Two of four cores are free on nodes 0, 2, 4 and 5: the last two share a switch."""
    running = [a_running_job((1, 3), 1000, shared=True, cpus=3)]
    job = a_job(nodes=2, shared=True, cpus=2)
    world = a_snapshot(nodes=6, running=running, jobs=[job])()
    snapshot = dataclasses.replace(world, topology=regular(6, 2))
    plan = run(snapshot, Memory(), a_policy("compact"), np.random.default_rng(0))
    assert plan.nodes_of(0).tolist() == [4, 5]
