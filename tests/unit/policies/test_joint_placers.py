# SPDX-License-Identifier: Apache-2.0
"""Place policies that place jobs jointly on a tree of switches: which there are, and examples."""

import dataclasses

import numpy as np

from bridge.model.topology import regular
from bridge.registry import build, parse_policy
from schedbridge_contracts.builders import a_job, a_running_job, a_snapshot
from schedbridge_contracts.cycles import Memory, run
from schedbridge_contracts.test_place_stage import JOINT_PLACERS

COMPACT = build(
    parse_policy(
        {"plan": "conservative", "place": {"name": "compact", "budget_ms": 0, "effort": 50}}
    )
)


def test_there_are_some():
    assert set(JOINT_PLACERS) == {"compact", "contiguous-exact", "annealing", "neural"}


def test_two_jobs_get_a_switch_each():
    """One after the other takes nodes 0 and 1, then 2 to 5 across both switches."""
    world = a_snapshot(nodes=8, jobs=[a_job(nodes=2), a_job(nodes=4)])()
    snapshot = dataclasses.replace(world, topology=regular(8, 4))
    memory = Memory()
    plan = run(snapshot, memory, COMPACT, np.random.default_rng(0))
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
    plan = run(snapshot, Memory(), COMPACT, np.random.default_rng(0))
    assert plan.nodes_of(0).tolist() == [4, 5]
