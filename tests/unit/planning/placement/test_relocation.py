# SPDX-License-Identifier: Apache-2.0
"""Jobs are relocated across types of nodes where nobody else needs them; nothing else changes."""

import dataclasses

import numpy as np
import pytest

from bridge.extensions.power.rules import Corridor, NodePower, PowerRules, with_power
from bridge.model.hop_tree import HopTree
from bridge.model.rules.node_set import NodeSet
from bridge.model.topology import regular
from bridge.planning.site_rules.lowered_rules import lower, stranded
from bridge.registry import build, parse_policy
from schedbridge_contracts.builders import a_job, a_node, a_reservation, a_running_job, a_snapshot
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import Memory, a_site, check, run
from tests.unit.planning.placement.test_node_swap import (
    a_tree,
    a_world,
    hops,
    switches,
    with_switches,
)

RULES = {
    "limits": [{"user": "*", "resource": "cpus", "items": 60}],
    "free_pools": [
        {"name": "named", "nodes": {"names": ["n3", "n9"]}, "access": [{"users": ["nobody"]}]},
        {"name": "big", "nodes": {"features": "big"}, "access": [{"time": "< 90s"}]},
    ],
}
POWER = PowerRules(
    Corridor((0,), (0,), (3000,)),
    (
        NodePower("big", NodeSet(features="big"), 100, 900),
        NodePower("odd", NodeSet(names=("n1", "n3", "n5", "n7", "n9")), 50, 400),
        NodePower("rest", NodeSet(), 71, 250),
    ),
)


def site_of(rules=None, protect=None, power=None):
    site = a_site(rules, protect)
    return with_power(site, power)


def decided(
    snapshot,
    place="compact",
    plan="conservative",
    memory=None,
    rules=None,
    protect=None,
    power=None,
    **parameters,
):
    places = {"compact": {"name": "compact", "budget_ms": 0, "effort": 30}}
    spec = {"plan": {"name": plan, **parameters}, "place": places.get(place, place)}
    policy = build(parse_policy(spec))
    return run(snapshot, memory or Memory(), policy, site=site_of(rules, protect, power))


@pytest.mark.parametrize(
    "parameters", [{}, {"rules": RULES}, {"power": POWER}], ids=["free", "rules", "power"]
)
@pytest.mark.parametrize("plan", ["conservative", "openccs", "search"])
@each(seed=range(40))
def test_no_start_changes_and_the_plan_stays_legal(seed, plan, parameters):
    if plan == "search":
        parameters = {**parameters, "budget_ms": 0, "effort": 300}
    snapshot = a_world(3 * seed, chunks=seed % 2 == 0)
    before = decided(snapshot, "sequential", plan, **parameters)
    memory = Memory()
    after = decided(snapshot, "compact", plan, memory, **parameters)
    for column in ("job", "start_s", "end_s", "partition", "indptr"):
        assert np.array_equal(getattr(before, column), getattr(after, column))
    assert before.reasons == after.reasons
    site = site_of(parameters.get("rules"), power=parameters.get("power"))
    assert check(snapshot, after, site) == ()
    lowered = lower(site, snapshot)
    assert stranded(lowered, after) == []
    now = before.starts_now.tolist()
    assert memory.placement.before == pytest.approx(hops(snapshot, before, now))
    assert memory.placement.after == pytest.approx(hops(snapshot, after, now))
    assert memory.placement.after <= memory.placement.before


@each(seed=range(30))
def test_nodes_keep_what_is_protected(seed):
    """A world in which protection lets as much start as before is left as it was."""
    nodes = [a_node(gpus=1 if at % 3 == 0 else 0) for at in range(12)]
    dice = np.random.default_rng(seed)
    jobs = [
        a_job(nodes=int(dice.integers(1, 5)), shared=True, cpus=int(dice.integers(1, 5)))
        for _ in range(6)
    ]
    snapshot = a_tree(a_snapshot(nodes=nodes, jobs=jobs)(), 4)
    parameters = {"protect": {"gpu": {"cpus": 2}}}
    after = decided(snapshot, **parameters)
    assert check(snapshot, after) == ()
    used = np.zeros(12, dtype=np.int64)
    for row in after.starts_now.tolist():
        used[after.nodes_of(row)] += snapshot.jobs.per_node[after.job[row], 0]
    assert (used[::3] <= 2).all()


class TestWhoMoves:
    def test_to_a_switch_with_nodes_of_another_type(self):
        """Plain nodes are left on two switches; with a large one they are enough on one."""
        nodes = [a_node(cpus=8 if at == 4 else 4) for at in range(8)]
        running = [a_running_job((0, 1, 2), 1000)]
        jobs = [a_job(nodes=4)]
        snapshot = a_tree(a_snapshot(nodes=nodes, running=running, jobs=jobs)(), 4)
        assert switches(decided(snapshot, "sequential"), 0) == [0, 1]
        assert switches(decided(snapshot), 0) == [1]

    def test_not_where_somebody_is_to_start_meanwhile(self):
        """The large node is announced to the job that needs it."""
        nodes = [a_node(cpus=8 if at == 4 else 4) for at in range(9)]
        running = [a_running_job((0, 1, 2), 1000), a_running_job((8,), 50)]
        jobs = [a_job(nodes=4), a_job(nodes=2, cpus=8, limit_s=10, shared=True)]
        nodes[8] = a_node(cpus=8)
        snapshot = a_tree(a_snapshot(nodes=nodes, running=running, jobs=jobs)(), 4)
        before = decided(snapshot, "sequential")
        after = decided(snapshot)
        assert before.start_s.tolist() == after.start_s.tolist()
        assert check(snapshot, after) == ()

    def test_jobs_that_share_nodes(self):
        """Two of four cores are free on nodes 0, 2, 4 and 5: the last two share a switch."""
        running = [a_running_job((1, 3), 1000, shared=True, cpus=3)]
        job = a_job(nodes=2, shared=True, cpus=2)
        snapshot = a_tree(a_snapshot(nodes=6, running=running, jobs=[job])(), 2)
        assert decided(snapshot).nodes_of(0).tolist() in ([4, 5], [2, 4], [0, 2])
        assert len(switches(decided(snapshot), 0, 2)) == 1

    def test_onto_nodes_that_others_share(self):
        """Half of each of 2 and 3 is used; 0 is full: the switch of 2 and 3 has room for both."""
        running = [
            a_running_job((0,), 1000, shared=True, cpus=4),
            a_running_job((2, 3), 1000, shared=True, cpus=2),
        ]
        job = a_job(nodes=2, shared=True, cpus=2)
        snapshot = a_tree(a_snapshot(nodes=4, running=running, jobs=[job])(), 2)
        assert decided(snapshot, "sequential").nodes_of(0).tolist() == [1, 2]
        assert decided(snapshot).nodes_of(0).tolist() == [2, 3]

    def test_not_to_nodes_of_more_weight(self):
        nodes = [a_node(weight=2 if at == 4 else 1) for at in range(8)]
        running = [a_running_job((0, 1, 2), 1000)]
        snapshot = a_tree(a_snapshot(nodes=nodes, running=running, jobs=[a_job(nodes=4)])(), 4)
        assert 4 not in decided(snapshot).nodes_of(0).tolist()

    @pytest.mark.parametrize(("wanted", "others", "nodes"), [(0, 0, 2), (1, 0, 4), (0, 4, 4)])
    def test_not_to_gpus_that_it_does_not_want(self, wanted, others, nodes):
        """Four GPUs on each of 4 to 7, all idle; of the rest, with as many or none, 0 and 1 run."""
        cluster = [a_node(gpus=4 if 4 <= at < 8 else others, cpus=8 - at // 4) for at in range(12)]
        running = [a_running_job((at,), 1000) for at in (0, 1)]
        job = a_job(nodes=2 if wanted else 4, gpus=wanted)
        snapshot = a_tree(a_snapshot(nodes=cluster, running=running, jobs=[job])(), 4)
        held = decided(snapshot, "sequential").nodes_of(0)
        assert held.tolist() == ([4, 5] if wanted else [2, 3, 4, 5])
        moved = decided(snapshot).nodes_of(0)
        assert len(switches(decided(snapshot), 0)) == 1
        assert np.isin(moved, range(4, 8)).sum() <= nodes

    def test_not_from_used_nodes_to_idle_ones(self):
        """One CPU is left on 0 and on 2; 4 and 5 are idle and on one switch."""
        running = [
            a_running_job((0, 2), 1000, shared=True, cpus=3),
            a_running_job((1, 3), 1000, shared=True, cpus=4),
        ]
        job = a_job(nodes=2, shared=True, cpus=1)
        snapshot = a_tree(a_snapshot(nodes=6, running=running, jobs=[job])(), 2)
        assert decided(snapshot).nodes_of(0).tolist() == [0, 2]

    def test_tasks_of_an_array(self):
        nodes = [a_node(cpus=8 if at in (4, 11) else 4) for at in range(12)]
        jobs = [a_job(nodes=4, array_tasks=2, array_startable=2)]
        running = [a_running_job((0, 1, 2), 1000)]
        snapshot = a_tree(a_snapshot(nodes=nodes, running=running, jobs=jobs)(), 4)
        plan = decided(snapshot)
        assert sorted(switches(plan, row)[0] for row in range(2)) == [1, 2]

    def test_nobody_enters_reserved_nodes_that_begin_before_its_end(self):
        nodes = [a_node() for _ in range(8)]
        running = [a_running_job((0, 1, 2), 1000)]
        kept = [a_reservation((7,), 50, 60)]
        world = a_snapshot(nodes=nodes, running=running, jobs=[a_job(nodes=4)], reservations=kept)
        plan = decided(a_tree(world(), 4))
        assert plan.nodes_of(0).tolist() == [3, 4, 5, 6]

    def test_it_enters_them_if_they_begin_after_it(self):
        nodes = [a_node() for _ in range(8)]
        running = [a_running_job((0, 1, 2), 1000)]
        kept = [a_reservation((7,), 100, 160)]
        world = a_snapshot(nodes=nodes, running=running, jobs=[a_job(nodes=4)], reservations=kept)
        plan = decided(a_tree(world(), 4))
        assert plan.nodes_of(0).tolist() == [4, 5, 6, 7]


def test_a_job_moves_to_no_more_switches_than_it_may():
    """Two switches under one pod pay less than two far apart; a third would pay less still."""
    for seed in range(30):
        world = a_world(3 * seed)
        dice = np.random.default_rng(seed)
        snapshot = with_switches(world, *dice.integers(0, 3, len(world.jobs)).tolist())
        before, after = decided(snapshot, "sequential"), decided(snapshot)
        leaves = HopTree.of(snapshot.topology).leaves
        for row in before.starts_now.tolist():
            maximum = int(snapshot.jobs.switches[before.job[row]])
            if maximum and len(before.nodes_of(row)) > 1:
                assert leaves(after.nodes_of(row)) <= max(maximum, leaves(before.nodes_of(row)))


def test_a_job_across_two_fabrics_is_brought_together():
    world = a_snapshot(nodes=8, running=[a_running_job((0, 1, 2), 1000)], jobs=[a_job(nodes=4)])()
    one = regular(8, 4)
    apart = dataclasses.replace(one, names=one.names[:2], parent=np.array([-1, -1], np.int32))
    plan = decided(dataclasses.replace(world, topology=apart))
    assert switches(plan, 0) == [1]
