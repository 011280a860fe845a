# SPDX-License-Identifier: Apache-2.0
"""What every plan policy must obey where there are switches: fabrics, and `--switches=N@time`."""

import dataclasses

import numpy as np
import pytest

from bridge.model.topology import Topology
from bridge.registry import build, parse_policy
from schedbridge_contracts import subject
from schedbridge_contracts.builders import gantt
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import Memory, check, run
from schedbridge_contracts.worlds import random_world

PLANS = subject.tried("plan")
SEEDS = range(25)


def two_fabrics(n_nodes, seed=0):
    """Leaf switches of unequal size below two roots; one node in ten hangs on none."""
    rng = np.random.default_rng(seed)
    parent = np.array([4, 4, 5, 5, -1, -1], dtype=np.int32)
    leaf = np.sort(rng.integers(0, 4, n_nodes)).astype(np.int32)
    leaf[rng.random(n_nodes) < 0.1] = -1
    return Topology(("a", "b", "c", "d", "east", "west"), parent, leaf)


def with_switches(snapshot, topology, seed=0):
    """The same world below switches; half of the jobs wish for some."""
    rng, n = np.random.default_rng([seed, 7]), len(snapshot.jobs)
    wishes = np.where(rng.random(n) < 0.5, rng.integers(1, 3, n), 0)
    jobs = dataclasses.replace(
        snapshot.jobs,
        switches=wishes.astype(np.int32),
        switches_wait_s=rng.choice([0, 20, 70, 1000], n),
    )
    return dataclasses.replace(snapshot, jobs=jobs, topology=topology)


def decide(snapshot, plan, memory=None, **others):
    stages = {**subject.beside(order="fcfs", place="sequential"), **others}
    policy = build(parse_policy({"plan": plan, **stages}))
    return run(snapshot, memory or Memory(), policy, np.random.default_rng(0))


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
class TestEveryPlanPolicy:
    @each(seed=SEEDS)
    def test_fabrics_and_wishes_are_kept(self, plan, seed):
        world = random_world(seed)
        world = with_switches(world, two_fabrics(len(world.nodes), seed), seed)
        made = decide(world, plan)
        assert check(world, made) == (), f"seed {seed}\n{gantt(world, made)}"

    @each(seed=SEEDS)
    def test_chunks_too(self, plan, seed):
        world = random_world(seed, chunks=True)
        world = with_switches(world, two_fabrics(len(world.nodes), seed), seed)
        made = decide(world, plan)
        assert check(world, made) == (), f"seed {seed}\n{gantt(world, made)}"

    @each(seed=SEEDS)
    def test_the_next_cycle_keeps_them_too(self, plan, seed):
        world = random_world(seed)
        world = with_switches(world, two_fabrics(len(world.nodes), seed), seed)
        memory = Memory()
        decide(world, plan, memory)
        for now_s in (15, 40, 90):
            later = dataclasses.replace(world, now_s=now_s, generation=world.generation + now_s)
            made = decide(later, plan, memory)
            assert check(later, made) == (), f"seed {seed}\n{gantt(later, made)}"
