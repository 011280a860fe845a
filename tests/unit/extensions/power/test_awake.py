# SPDX-License-Identifier: Apache-2.0
"""Nodes that have power are preferred to those that must be powered up first."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.cycle import run_cycle
from bridge.extensions.power.awake import awake_first
from bridge.extensions.power.columns import NAME, PowerSaving
from bridge.model.rules.site import NO_RULES
from bridge.ports import Preference, Selection, State
from bridge.registry import build, parse_policy
from schedbridge_contracts.builders import a_job, a_node, a_snapshot


def with_states(snapshot, *states):
    ready_s = np.array([60 * ("POWERING_UP" in state) for state in states])
    zeros = np.zeros(len(states), dtype=np.int64)
    off = np.array(["POWER" in state for state in states])
    saving = PowerSaving(~off, off, resume_s=zeros, ready_s=ready_s, idle_since_s=zeros)
    nodes = replace(snapshot.nodes, state=states).having(NAME, saving)
    return replace(snapshot, nodes=nodes)


def nodes_now(snapshot, preset):
    policy = build(parse_policy(preset))
    plan = run_cycle(snapshot, NO_RULES, State(), policy, np.random.default_rng(0)).plan
    return [plan.nodes_of(row).tolist() for row in plan.starts_now]


def test_nodes_without_power_come_last_and_others_keep_their_order():
    world = with_states(
        a_snapshot(nodes=5)(), "UP+POWERED_DOWN", "UP", "UP+POWERING_UP", "UP", "UP+POWERING_DOWN*"
    )
    rank = np.array([-7, 40, 3, -7, -7], dtype=np.int32)
    found = awake_first(world, Preference(Selection.BEST_FIT, rank))
    assert np.argsort(found.rank, kind="stable").tolist() == [3, 1, 2, 0, 4]
    assert found.selection is Selection.BEST_FIT
    assert found.rank.dtype == np.int32


def test_a_cluster_that_has_power_keeps_its_preference():
    world = with_states(a_snapshot(nodes=2)(), "UP", "DOWN+DRAIN")
    preference = Preference(Selection.SEQUENTIAL, np.array([1, 0], dtype=np.int32))
    assert awake_first(world, preference) is preference


@pytest.mark.parametrize("preset", ["easy", "conservative", "openccs", "power-plan"])
def test_a_job_starts_on_nodes_that_have_power_if_they_suffice(preset):
    nodes = [a_node(weight=1), a_node(weight=2), a_node(weight=3)]
    job = a_job(nodes=1)
    asleep = with_states(a_snapshot(nodes=nodes, jobs=[job])(), "UP+POWERED_DOWN", "UP", "UP")
    assert nodes_now(asleep, preset) == [[1]]
    wide = a_job(nodes=3)
    world = with_states(a_snapshot(nodes=nodes, jobs=[wide])(), "UP+POWERED_DOWN", "UP", "UP")
    assert nodes_now(world, preset) == [[0, 1, 2]]
