# SPDX-License-Identifier: Apache-2.0
"""What nodes and jobs are assumed to draw."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.extensions.power.planning.estimates import (
    draws_on,
    node_powers,
    pending_estimates,
    running_draws,
    running_estimates,
    system_power,
)
from bridge.extensions.power.rules import NodePower, PowerRules
from bridge.model.decisions.resizes import Resizes, resized
from bridge.model.rules.node_set import NodeSet
from schedbridge_contracts.builders import a_job, a_node, a_running_job, a_snapshot

BIG = NodePower("big", NodeSet(features="gpu"), 300, 2000)
REST = NodePower("rest", NodeSet(), 71, 250)
RULES = PowerRules(node_types=(BIG, REST), base_w=1000)


def with_states(snapshot, *states):
    return replace(snapshot, nodes=replace(snapshot.nodes, state=states))


def test_the_first_type_that_matches_a_node_counts():
    world = a_snapshot(nodes=[a_node(), a_node(features=("gpu", "ib"))])()
    powers = node_powers(RULES, world)
    assert powers.idle_w.tolist() == [71, 300]
    assert powers.max_w.tolist() == [250, 2000]
    swapped = node_powers(replace(RULES, node_types=(REST, BIG)), world)
    assert swapped.idle_w.tolist() == [71, 71]
    untyped = node_powers(replace(RULES, node_types=(BIG,)), world)
    assert untyped.max_w.tolist() == [0, 2000]


@pytest.mark.parametrize(
    ("state", "on"),
    [
        ("UP", True), ("UP+DRAIN", True), ("UP+RESERVED", True), ("UP+FAIL", True),
        ("UP+NOT_RESPONDING", True), ("UP+POWERING_DOWN", True), ("UP+POWERING_UP", True),
        ("DOWN", True), ("DOWN*+DRAIN", True), ("DOWN+POWERED_DOWN", False), ("", True),
        ("UP+POWERED_DOWN", False),
        ("idle+powered_down", False),
    ],
)  # fmt: skip
def test_only_nodes_that_are_powered_off_draw_nothing(state, on):
    world = with_states(a_snapshot(nodes=2)(), state, "UP")
    powers = node_powers(RULES, world)
    assert powers.on.tolist() == [on, True]
    assert powers.idle_total_w == (142 if on else 71)


def test_the_first_estimate_that_is_known_counts():
    waiting = [
        a_job(),
        a_job(min_power_w=100, max_power_w=200),
        a_job(min_power_w=100, max_power_w=200, learnt_min_power_w=90, learnt_max_power_w=300),
        a_job(max_power_w=200, learnt_min_power_w=90),
    ]
    held = [
        a_running_job((0,), max_power_w=200, measured_min_power_w=1, measured_max_power_w=400),
        a_running_job((1,), max_power_w=200, learnt_max_power_w=150, min_power_w=80),
    ]
    world = a_snapshot(jobs=waiting, running=held)()
    pending, running = pending_estimates(world.jobs), running_estimates(world.running)
    assert pending.upper_w.tolist() == [0, 200, 300, 200]
    assert pending.lower_w.tolist() == [0, 100, 90, 90]
    assert running.upper_w.tolist() == [400, 150]
    assert running.lower_w.tolist() == [1, 80]


def test_jobs_that_share_a_node_count_their_part_by_cpus_rounded_up():
    held = [
        a_running_job((0,), shared=True, cpus=1),
        a_running_job((0,), shared=True, cpus=3),
        a_running_job((0,), shared=True, cpus=0),
        a_running_job((1,), shared=True, cpus=1, max_power_w=200),
        a_running_job((2,)),
    ]
    world = a_snapshot(nodes=[a_node(cpus=8) for _ in range(4)], running=held)()
    powers = node_powers(RULES, world)
    draws = running_draws(world, powers)
    assert draws.upper_w.tolist() == [23, 68, 23, 129, 179]  # of 179 beyond idle
    assert draws.lower_w.tolist() == [0] * 5
    assert system_power(RULES, world) == (1284, 1284 + 23 + 68 + 23 + 129 + 179)


def test_a_job_on_a_node_that_is_not_on_counts_with_its_idle_power():
    world = with_states(
        a_snapshot(nodes=2, running=[a_running_job((0,)), a_running_job((1,), max_power_w=90)])(),
        "POWERED_DOWN", "POWERED_DOWN",
    )  # fmt: skip
    powers = node_powers(RULES, world)
    assert running_draws(world, powers).upper_w.tolist() == [250, 90]


def test_less_than_idle_is_no_less_than_nothing():
    world = a_snapshot(nodes=1, running=[a_running_job((0,), max_power_w=5, min_power_w=3)])()
    draws = running_draws(world, node_powers(RULES, world))
    assert draws.upper_w.tolist() == draws.lower_w.tolist() == [0]


def test_a_waiting_job_draws_what_its_node_does_where_nothing_is_known():
    world = a_snapshot(nodes=[a_node(), a_node(features=("gpu",))], jobs=[a_job(nodes=2)])()
    powers, both = node_powers(RULES, world), np.array([0, 1])
    draws = draws_on(pending_estimates(world.jobs), powers, both * 0, both)
    assert draws.upper_w.tolist() == [179, 1700]


def test_nodes_that_a_job_gives_back_draw_until_they_are_free():
    job = a_running_job((0, 1, 2), 500, max_power_w=171, min_nodes=1, max_nodes=4)
    world = a_snapshot(nodes=4, running=[job])()
    shrinks = Resizes.of([(0, 30, np.array([0], dtype=np.int32), "")])
    after = resized(world, shrinks)
    draws = running_draws(after, node_powers(RULES, after))
    owner = np.repeat(np.arange(len(after.running)), np.diff(after.running.indptr))
    assert draws.upper_w.sum() == 300
    assert draws.upper_w[after.running.releasing[owner]].tolist() == [100, 100]
