# SPDX-License-Identifier: Apache-2.0
"""What every place policy must do, and one that places jobs jointly on a tree of switches."""

import dataclasses

import numpy as np
import pytest

from bridge.model.hop_tree import HopTree
from bridge.model.topology import Topology, fat_tree, regular
from bridge.policies.place.sequential import rank_by_weight
from bridge.ports import JointPlacer, Selection, ranks_by_size
from bridge.registry import build, parse_policy
from schedbridge_contracts import subject
from schedbridge_contracts.builders import a_node, a_snapshot
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import Memory, check, run
from schedbridge_contracts.worlds import random_world


def a_policy(place, plan="conservative"):
    return build(parse_policy({"plan": plan, "place": place}))


PLACERS = subject.tried("place")
JOINT_PLACERS = {
    name: place for name, place in PLACERS.items() if isinstance(a_policy(place).place, JointPlacer)
}
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


@pytest.mark.parametrize("place", PLACERS.values(), ids=PLACERS)
@each(seed=range(10))
def test_every_node_has_a_rank(place, seed):
    world = random_world(seed)
    preference = a_policy(place).place.preference(world)
    assert isinstance(preference.selection, Selection)
    assert preference.rank.dtype == np.int32
    assert preference.rank.shape == (len(world.nodes),)


@pytest.mark.parametrize("place", PLACERS.values(), ids=PLACERS)
def test_what_fits_best_by_size_alone_is_stated(place):
    """By every policy whose ranks are those of the weights, and by no other one."""
    snapshot = a_snapshot(nodes=[a_node(cpus) for cpus in (4, 8, 8, 4)])()
    policy = a_policy(place).place
    found = policy.preference(snapshot)
    of_weight = found.rank.tolist() == rank_by_weight(snapshot).tolist()
    best_fit = found.selection is Selection.BEST_FIT
    assert ranks_by_size(policy) == (of_weight and best_fit)


@pytest.mark.parametrize("tree", TREES.values(), ids=TREES)
@pytest.mark.parametrize("place", JOINT_PLACERS.values(), ids=JOINT_PLACERS)
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
PLANS = subject.crossed("plan")["plan"]


@pytest.mark.parametrize("place", JOINT_PLACERS.values(), ids=JOINT_PLACERS)
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
@each(seed=range(20))
def test_cycles_are_legal_and_nobody_waits_for_hops(place, plan, seed):
    if seed >= 4 and subject.name_of(plan) not in GREEDY:
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
