# SPDX-License-Identifier: Apache-2.0
"""Nodes that are alike are swapped; starts, and all that binds jobs, stay as they are."""

import dataclasses
import random

import numpy as np
import pytest

from bridge.model.hop_tree import HopTree, csr
from bridge.model.rules.site import Site
from bridge.model.topology import regular
from bridge.planning.placement.improvement import _named_by_rules
from bridge.planning.placement.node_swap import NodeSwapper, SwapContext, node_types
from bridge.planning.site_rules.lowered_rules import lower, stranded
from bridge.policies.place.compact import Compact
from bridge.policies.place.sequential import Sequential
from bridge.registry import build, parse_policy
from schedbridge_contracts.builders import (
    a_job,
    a_node,
    a_partition,
    a_reservation,
    a_running_job,
    a_snapshot,
)
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import Memory, a_site, check, parse_rules, run

POOLS = {
    "free_pools": [{"name": "mine", "nodes": {"names": "n[1,4]"}, "access": [{"users": ["no"]}]}]
}


def a_world(seed, chunks=False):
    """Two dozen nodes of one type or of two, about half of them busy, and jobs of every sort."""
    dice = random.Random(seed)
    several, n = seed % 3 == 0, 24
    nodes = [a_node(features=("big",) * (several and dice.random() < 0.4)) for _ in range(n)]
    busy = [at for at in range(n) if dice.random() < 0.5]
    running = [
        a_running_job((at,), dice.choice((50, 50, 100, 150)), shared=dice.random() < 0.2, cpus=2)
        for at in busy
    ]
    running += [a_running_job((at,), 50, shared=True, cpus=1) for at in busy if at % 7 == 0]
    jobs = []
    for _ in range(dice.randint(4, 14)):
        array = dice.choice((0, 0, 0, 3))
        job = a_job(
            nodes=dice.choice((1, 1, 2, 3, 4, 6)),
            limit_s=dice.choice((50, 50, 100, 200)),
            shared=dice.random() < 0.3,
            cpus=dice.choice((1, 2, 3)),
            features=dice.choice(("", "", "big")) if several else "",
            licences=(dice.choice((0, 0, 1)),),
            required=(dice.randrange(n),) if dice.random() < 0.1 else (),
            excluded=(dice.randrange(n),) if dice.random() < 0.1 else (),
            array_tasks=array,
            array_startable=array,
        )
        if chunks and several and dice.random() < 0.5:
            place = dice.choice(("free", "scatter:excl", "free:excl"))
            job = a_job(chunks=f"{dice.randint(1, 2)}:big=true+3:ncpus=3,place={place}")
        jobs.append(job)
    reservations = [a_reservation((2, 3), 120, 200)] if seed % 4 == 0 else []
    world = a_snapshot(
        nodes=nodes, jobs=jobs, running=running, reservations=reservations, licences=[("x", 2)]
    )()
    return dataclasses.replace(world, topology=regular(n, 3, 12))


def context(snapshot, rules=None, place=None):
    hop_tree = HopTree.of(snapshot.topology)
    node_type = node_types(snapshot, hop_tree, _named_by_rules(snapshot, a_site(rules)))
    place = place or Compact(budget_ms=0, effort=30)
    return SwapContext(snapshot, hop_tree, node_type, place, np.random.default_rng(0))


def swap_at(context, plan):
    swapper = NodeSwapper(context, plan)
    swapper.swap_all()
    return swapper


def planned(snapshot, plan="conservative", rules=None):
    policy = build(parse_policy({"plan": plan, "place": "sequential"}))
    return run(snapshot, Memory(), policy, site=a_site(rules))


def hops(snapshot, plan, rows):
    costs = HopTree.of(snapshot.topology).costs(csr([plan.nodes_of(row) for row in rows]))
    return costs[np.isfinite(costs)].sum()


@each(seed=range(5))
def test_nodes_are_alike_if_the_same_lists_name_them(seed):
    """Of partitions and reservations, more than fit into a byte; and of the site's rules."""
    dice, n = np.random.default_rng(seed), 40
    odds = dice.choice((0.1, 0.9, 1.0), 14)
    lists = [np.flatnonzero(np.repeat(dice.random(n // 4) < p, 4)) for p in odds]
    lists += lists[:3]
    snapshot = a_snapshot(
        nodes=n,
        jobs=[a_job(2)],
        partitions=[a_partition(f"p{at}", nodes) for at, nodes in enumerate(lists[:9])],
        reservations=[a_reservation(nodes, 10, 20) for nodes in lists[9:]],
    )()
    ruled = np.repeat(dice.random(n // 2) < 0.5, 2)
    hop_tree = HopTree.of(regular(n, 4))
    node_type = node_types(
        dataclasses.replace(snapshot, topology=hop_tree.topology), hop_tree, [ruled]
    )
    naive = [(ruled[at], *(at in nodes for nodes in lists)) for at in range(n)]
    for one in range(n):
        for other in range(one):
            assert (node_type[one] == node_type[other]) == (naive[one] == naive[other])


@pytest.mark.parametrize("rules", [None, POOLS], ids=["free", "pools"])
@pytest.mark.parametrize("chunks", [False, True], ids=["nodes", "chunks"])
@pytest.mark.parametrize("plan", ["easy", "conservative", "openccs"])
@each(seed=range(40))
def test_no_start_changes_and_the_plan_stays_legal(seed, plan, chunks, rules):
    snapshot = a_world(seed, chunks)
    before = planned(snapshot, plan, rules)
    swapped = swap_at(context(snapshot, rules), before)
    after = swapped.plan()
    for column in ("job", "start_s", "end_s", "partition", "indptr"):
        assert np.array_equal(getattr(before, column), getattr(after, column))
    assert after.reasons == before.reasons
    assert check(snapshot, after) == ()
    lowered = lower(Site(parse_rules(rules, "rules"), cron_s=10**6), snapshot)
    assert stranded(lowered, before) == []
    assert stranded(lowered, after) == []
    now = before.starts_now.tolist()
    assert hops(snapshot, after, now) <= hops(snapshot, before, now) + 1e-6
    for row in range(len(before)):
        own = slice(before.indptr[row], before.indptr[row + 1])
        assert sorted(swapped.image[own]) == after.nodes_of(row).tolist()


def test_much_is_swapped():
    """The test above would say little if nothing could move."""
    moved = saved = 0
    for seed in range(60):
        snapshot = a_world(seed, chunks=True)
        before = planned(snapshot)
        after = swap_at(context(snapshot), before).plan()
        rows = np.flatnonzero(np.diff(before.indptr)).tolist()
        moved += not np.array_equal(before.nodes, after.nodes)
        saved += hops(snapshot, after, rows) < hops(snapshot, before, rows)
    assert moved > 40
    assert saved > 40


def a_tree(world, *levels):
    return dataclasses.replace(world, topology=regular(len(world.nodes), *levels))


def switches(plan, row, per_leaf=4):
    return sorted(set((plan.nodes_of(row) // per_leaf).tolist()))


def swapped(snapshot, rules=None):
    return swap_at(context(snapshot, rules), planned(snapshot, rules=rules)).plan()


class TestWhoTrades:
    def test_tasks_of_an_array_get_a_switch_each(self):
        """One node is busy: three nodes and the next one are on two switches."""
        jobs = [a_job(nodes=4, array_tasks=2, array_startable=2)]
        world = a_snapshot(nodes=12, running=[a_running_job((0,), 1000)], jobs=jobs)()
        plan = swapped(a_tree(world, 4))
        assert [switches(plan, row) for row in range(2)] == [[1], [2]]

    def test_a_job_of_one_node_fills_the_smallest_hole(self):
        running = [a_running_job((4, 5, 6), 1000)]
        plan = swapped(a_tree(a_snapshot(nodes=8, running=running, jobs=[a_job()])(), 4))
        assert plan.nodes_of(0).tolist() == [7]

    def test_it_makes_room_for_a_wide_one(self):
        jobs = [a_job(nodes=1), a_job(nodes=4)]
        plan = swapped(a_tree(a_snapshot(nodes=8, jobs=jobs)(), 4))
        assert switches(plan, 1) in ([0], [1])
        assert switches(plan, 0) != switches(plan, 1)

    def test_announced_starts_are_placed_too(self):
        """All nodes are busy until 100; then jobs of 2 and 4 nodes start."""
        running = [a_running_job(tuple(range(8)), 100)]
        jobs = [a_job(nodes=2), a_job(nodes=4)]
        plan = swapped(a_tree(a_snapshot(nodes=8, running=running, jobs=jobs)(), 4))
        assert plan.start_s.tolist() == [100, 100]
        assert [len(switches(plan, row)) for row in range(2)] == [1, 1]

    def test_what_is_announced_on_a_node_moves_with_it(self):
        """Whoever follows the jobs that swapped finds as many nodes as before."""
        jobs = [a_job(nodes=2), a_job(nodes=4), a_job(nodes=8, limit_s=50), a_job(nodes=2)]
        snapshot = a_tree(a_snapshot(nodes=8, jobs=jobs)(), 4)
        before, after = planned(snapshot), swapped(snapshot)
        assert not np.array_equal(before.nodes, after.nodes)
        assert check(snapshot, after) == ()

    def test_chunks_of_two_kinds_move_among_nodes_of_theirs(self):
        """A big node is on every switch; the plain nodes come to the one that it is on."""
        nodes = [a_node(features=("big",) * (at % 4 == 3)) for at in range(12)]
        job = a_job(chunks="1:big=true+3:ncpus=4,place=scatter:excl")
        running = [a_running_job((0, 3), 1000)]
        snapshot = a_tree(a_snapshot(nodes=nodes, running=running, jobs=[job])(), 4)
        before, after = planned(snapshot), swapped(snapshot)
        assert len(switches(before, 0)) > 1
        assert len(switches(after, 0)) == 1
        assert check(snapshot, after) == ()

    def test_a_job_that_names_its_node_keeps_it(self):
        jobs = [a_job(nodes=2, required=(3,)), a_job(nodes=3)]
        snapshot = a_tree(a_snapshot(nodes=8, jobs=jobs)(), 4)
        plan = swapped(snapshot)
        assert 3 in plan.nodes_of(0)
        assert check(snapshot, plan) == ()


class TestWhoDoesNot:
    def test_nodes_that_a_pool_names_are_not_like_others(self):
        world = a_tree(a_snapshot(nodes=6, jobs=[a_job()])(), 2)
        names = list(world.nodes.names)
        rules = {"free_pools": [{"name": "p", "nodes": {"names": names[1]}, "access": []}]}
        node_type = context(world, rules).node_type
        assert len(set(node_type.tolist())) == 2
        assert np.count_nonzero(node_type == node_type[1]) == 1

    @pytest.mark.parametrize(
        "other",
        [
            {"nodes": [a_node(), a_node(cpus=8)]},
            {"nodes": [a_node(), a_node(features=("x",))]},
            {"nodes": [a_node(), a_node(weight=2)]},
            {"nodes": 2, "reservations": [a_reservation((1,), 50, 60)]},
            {"nodes": 2, "jobs": [a_job(excluded=(1,))]},
        ],
        ids=["capacity", "features", "weight", "reservation", "named"],
    )
    def test_nodes_that_differ(self, other):
        node_type = context(a_tree(a_snapshot(**other)(), 2)).node_type
        assert node_type[0] != node_type[1]

    def test_nodes_of_two_fabrics_differ(self):
        world = a_snapshot(nodes=4)()
        one = regular(4, 2)
        apart = dataclasses.replace(one, names=one.names[:2], parent=np.array([-1, -1], np.int32))
        node_type = context(dataclasses.replace(world, topology=apart)).node_type
        assert len(set(node_type.tolist())) == 2


def with_switches(snapshot, *maximum):
    jobs = dataclasses.replace(
        snapshot.jobs,
        switches=np.array(maximum, np.int32),
        switches_wait_s=np.full(len(maximum), 10**6, np.int64),
    )
    return dataclasses.replace(snapshot, jobs=jobs)


class OnePerSwitch(Sequential):
    """Spreads jobs, and says that this is cheap."""

    def place_jobs(self, hop_tree, idle, sizes, rng):
        leaf = hop_tree.topology.leaf_of_node[idle]
        order = np.argsort(np.array([np.sum(leaf[:at] == leaf[at]) for at in range(len(leaf))]))
        nodes = idle[order[: sizes.sum()]]
        return csr([np.sort(part) for part in np.split(nodes, np.cumsum(sizes)[:-1])])


class TestSwitches:
    @each(seed=range(30))
    def test_a_job_never_sits_on_more_than_it_may_or_did(self, seed):
        world = a_world(seed)
        dice = np.random.default_rng(seed)
        snapshot = with_switches(world, *dice.integers(0, 3, len(world.jobs)).tolist())
        before = planned(world)
        after = swap_at(context(snapshot), before).plan()
        leaves = HopTree.of(snapshot.topology).leaves
        for row in np.flatnonzero(np.diff(before.indptr) > 1).tolist():
            maximum = int(snapshot.jobs.switches[before.job[row]])
            if maximum:
                bound = max(maximum, leaves(before.nodes_of(row)))
                assert leaves(after.nodes_of(row)) <= bound

    def test_sets_on_more_switches_are_refused_for_those_who_mind_alone(self):
        """Three levels: two nodes in one pod's two switches cost less than in two pods' one."""
        snapshot = with_switches(a_tree(a_snapshot(nodes=8, jobs=[a_job(nodes=2)])(), 2), 1)
        before = planned(snapshot)
        after = swap_at(context(snapshot, place=OnePerSwitch()), before).plan()
        assert switches(after, 0, 2) == switches(before, 0, 2) == [0]


def test_a_plan_that_is_kept_follows():
    """The same snapshot again: everybody lies where the cycle before put him."""
    running = [a_running_job(tuple(range(8)), 100)]
    jobs = [a_job(nodes=2), a_job(nodes=4), a_job(nodes=3, limit_s=50)]
    snapshot = a_tree(a_snapshot(nodes=8, running=running, jobs=jobs)(), 4)
    place = {"name": "compact", "budget_ms": 0, "effort": 30}
    policy = build(parse_policy({"plan": "openccs", "place": place}))
    memory = Memory()
    first = run(snapshot, memory, policy, np.random.default_rng(0))
    for row in range(3):
        kept = memory.kept_plan.placements[snapshot.jobs.id[first.job[row]]]
        assert kept.nodes.tolist() == first.nodes_of(row).tolist()
    again = run(snapshot, memory, policy, np.random.default_rng(0))
    assert again.start_s.tolist() == first.start_s.tolist()
    assert again.nodes.tolist() == first.nodes.tolist()


@pytest.mark.parametrize(("maximum", "requested"), [(0, False), (1 << 26, True)])
def test_the_core_is_asked_for_exchanges_it_can_hold(monkeypatch, maximum, requested):
    class Noted:
        exchanged = False

        def __init__(self, tree):
            self._tree = tree

        def __getattr__(self, name):
            Noted.exchanged |= name == "exchange"
            return getattr(self._tree, name)

    snapshot = a_world(3, chunks=True)
    before = planned(snapshot)
    monkeypatch.setattr("bridge.planning.placement.node_swap.MAX_COUNTS", maximum)
    land = context(snapshot)
    land = dataclasses.replace(
        land, hop_tree=dataclasses.replace(land.hop_tree, tree=Noted(land.hop_tree.tree))
    )
    after = swap_at(land, before).plan()
    assert Noted.exchanged == requested
    assert np.array_equal(before.start_s, after.start_s)
    assert check(snapshot, after) == ()
