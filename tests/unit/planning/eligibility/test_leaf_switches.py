# SPDX-License-Identifier: Apache-2.0
"""Leaf switches: which of them can hold a job together, first and best, and what sites imply."""

import dataclasses
import itertools

import numpy as np
import pytest

from bridge.model.topology import Topology, regular
from bridge.planning.eligibility.alternatives import Eligibility
from bridge.planning.eligibility.leaf_switches import (
    MAX_UNIONS,
    Leaves,
    SwitchLoad,
    next_change_s,
    waits_until_s,
)
from bridge.planning.queue.implied_switches import imply
from schedbridge_contracts.builders import (
    a_job,
    a_node,
    a_partition,
    a_reservation,
    a_running_job,
    a_snapshot,
)


def on(topology, *jobs, nodes=12, **world):
    snapshot = a_snapshot(nodes=nodes, jobs=jobs, **world)()
    return dataclasses.replace(snapshot, topology=topology)


def ways(snapshot, row=0):
    """Nodes and opening of each alternative of a job."""
    eligibility = Eligibility(snapshot)
    answer = eligibility.alternatives(np.array([row]))[0]
    return [
        (
            np.flatnonzero(eligibility.classes.mask(a.class_)).tolist(),
            eligibility.classes.opens_s(a.class_),
        )
        for a in answer
    ]


def a_wish(nodes, switches=1, wait_s=60, **settings):
    return a_job(nodes, switches=switches, switches_wait_s=wait_s, **settings)


class TestUnions:
    def test_each_leaf_switch_and_later_anything(self):
        world = on(regular(12, 4), a_wish(3))
        first, *others, last = ways(world)
        assert first == ([0, 1, 2, 3], 0)
        assert [nodes for nodes, opens_s in others if not opens_s] == [[4, 5, 6, 7], [8, 9, 10, 11]]
        assert last == (list(range(12)), 60)

    def test_the_one_that_is_free_first_and_then_the_tightest(self):
        running = [a_running_job((0, 1), 50), a_running_job((4,), 900)]
        world = on(regular(12, 4), a_wish(3), running=running)
        assert [nodes[0] for nodes, _ in ways(world)[:3]] == [4, 8, 0]

    def test_neighbours_are_joined_where_they_have_room(self):
        topology = regular(16, 2, 8)
        world = on(topology, a_wish(4, switches=2), nodes=16)
        for nodes, opens_s in ways(world):
            if not opens_s:
                assert len({topology.leaf_of_node[node] for node in nodes}) == 2
                assert len({node // 8 for node in nodes}) == 1

    def test_two_are_found_wherever_any_two_are_enough(self):
        """Against all pairs: the first union has room as soon as any pair has."""
        for seed in range(40):
            rng = np.random.default_rng(seed)
            leaf = rng.integers(0, 5, 14).astype(np.int32)
            topology = Topology(tuple("abcdet"), np.array([5] * 5 + [-1], np.int32), leaf)
            busy = rng.choice(14, 8, replace=False).tolist()
            ends = rng.choice([20, 40, 60], 8).tolist()
            running = [a_running_job((n,), e) for n, e in zip(busy, ends, strict=True)]
            world = on(topology, a_wish(4, 2), nodes=14, running=running)
            free_s = np.zeros(14)
            free_s[busy] = ends
            best = min(
                (np.sort(free_s[np.isin(leaf, pair)])[3], pair)
                if np.isin(leaf, pair).sum() >= 4
                else (np.inf, pair)
                for pair in itertools.combinations(range(5), 2)
            )[0]
            first, opens_s = ways(world)[0]
            assert not opens_s
            assert np.sort(free_s[first])[3] == best

    def test_what_is_closed_meanwhile_comes_last(self):
        world = on(regular(12, 4), a_wish(3), reservations=[a_reservation((0, 1), 50, 500)])
        assert [nodes[0] for nodes, _ in ways(world)[:3]] == [4, 8, 0]

    def test_required_nodes_are_on_it(self):
        world = on(regular(12, 4), a_wish(3, required=(5,)))
        assert [nodes for nodes, opens_s in ways(world) if not opens_s] == [[4, 5, 6, 7]]
        world = on(regular(12, 4), a_wish(3, required=(0, 5)))
        assert [opens_s for _, opens_s in ways(world)] == [60]

    def test_tasks_are_counted_where_nodes_are_shared(self):
        nodes = [a_node(cpus=1)] * 4 + [a_node(cpus=8)] * 4
        job = a_wish(1, max_nodes=8, shared=True, tasks=8)
        world = on(regular(8, 4), job, nodes=nodes)
        assert [first for first, opens_s in ways(world) if not opens_s] == [[4, 5, 6, 7]]

    def test_few_of_many_are_tried(self):
        world = on(regular(100, 2), a_wish(2), nodes=100)
        assert len(ways(world)) == MAX_UNIONS + 1

    def test_as_many_as_there_are_is_no_wish(self):
        assert ways(on(regular(12, 4), a_wish(3, switches=3))) == [(list(range(12)), 0)]

    def test_one_node_is_on_one_switch(self):
        assert ways(on(regular(12, 4), a_wish(1))) == [(list(range(12)), 0)]


class TestFabrics:
    APART = Topology(
        tuple("ab"), np.array([-1, -1], np.int32), np.array([0] * 6 + [1] * 4 + [-1] * 2, np.int32)
    )

    def test_a_job_has_one_of_them_the_smallest_first(self):
        assert [nodes for nodes, _ in ways(on(self.APART, a_job(2)))] == [
            [6, 7, 8, 9],
            [0, 1, 2, 3, 4, 5],
        ]

    def test_one_node_may_hang_nowhere(self):
        assert ways(on(self.APART, a_job(1))) == [(list(range(12)), 0)]
        job = a_job(1, max_nodes=4, shared=True, tasks=4)
        assert [nodes for nodes, _ in ways(on(self.APART, job))][-1] == [10, 11]

    def test_who_can_only_have_nodes_on_no_switch_has_nothing(self):
        assert ways(on(self.APART, a_job(2, excluded=tuple(range(10))))) == [([], 0)]

    def test_nodes_and_fabrics(self):
        leaves = Leaves.of(self.APART)
        assert (leaves.n_fabrics, leaves.whole) == (2, False)
        assert leaves.fabric_of_node().tolist() == [0] * 6 + [1] * 4 + [-1] * 2
        assert Leaves.of(regular(8, 2, 4)).whole


class TestWaiting:
    def test_it_ends_so_long_after_the_job_became_eligible(self):
        jobs = [
            a_wish(2, submit_s=5),
            a_wish(2, submit_s=5, eligible_s=20),
            a_wish(2, submit_s=5, begin_s=90),
            a_job(2, submit_s=5),
        ]
        jobs[0].eligible_s = 0
        world = on(regular(12, 4), *jobs)
        assert waits_until_s(world.jobs).tolist() == [65, 80, 150, 0]
        assert next_change_s(world) == 65
        assert next_change_s(dataclasses.replace(world, now_s=65)) == 80
        assert next_change_s(dataclasses.replace(world, topology=None)) is None


class TestImplied:
    @pytest.mark.parametrize(
        ("job", "switches"),
        [
            (a_job(1), 0),
            (a_job(2), 1),
            (a_job(4), 1),
            (a_job(5), 2),
            (a_job(12), 3),
            (a_job(13), 0),
            (a_job(5, switches=3, switches_wait_s=9), 3),
            (a_job(5, partitions=(1,)), 1),
            (a_job(1, max_nodes=12, shared=True, tasks=17, cpus_per_task=1), 2),
        ],
    )
    def test_as_few_as_could_hold_it(self, job, switches):
        leaf = np.array([0] * 4 + [1] * 4 + [2] * 4 + [3] * 6, np.int32)
        topology = Topology(tuple("abcdtu"), np.array([4, 4, 4, 5, -1, -1], np.int32), leaf)
        parts = [a_partition("small", range(12)), a_partition("other", range(12, 18))]
        world = on(topology, job, nodes=18, partitions=parts)
        assert imply(world, 300).jobs.switches.tolist() == [switches]

    def test_jobs_that_differ_in_time_alone_are_looked_at_once(self, monkeypatch):
        looked, requested = [], SwitchLoad.request
        monkeypatch.setattr(SwitchLoad, "request", lambda *of: looked.append(of) or requested(*of))
        jobs = [a_job(5, limit_s=limit_s) for limit_s in range(100, 110)]
        world = dataclasses.replace(a_snapshot(nodes=12, jobs=jobs)(), topology=regular(12, 4))
        assert imply(world, 300).jobs.switches.tolist() == [2] * 10
        assert len(looked) == 1

    def test_for_so_long_only(self):
        world = on(regular(12, 4), a_job(2, submit_s=5, eligible_s=10), now_s=40)
        jobs = imply(world, 31).jobs
        assert (jobs.switches.tolist(), jobs.switches_wait_s.tolist()) == ([1], [31])
        assert imply(world, 30) is world
        assert imply(world, 0) is world
        assert imply(dataclasses.replace(world, topology=None), 300).jobs.switches.tolist() == [0]
        assert world.jobs.switches.tolist() == [0]
