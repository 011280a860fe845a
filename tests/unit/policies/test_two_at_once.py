# SPDX-License-Identifier: Apache-2.0
"""Two jobs that shrink, grow, leave or end together: what both give or take counts once."""

import dataclasses

import numpy as np
import pytest

from bridge.extensions.power.planning.estimates import system_power
from bridge.extensions.power.rules import power_of
from bridge.extensions.sharing.counting import counted_once
from bridge.model.node import CPUS
from bridge.model.rules.site import NO_RULES
from bridge.registry import PRESETS, build, parse_policy
from bridge.units import NEVER, UNPLANNED
from schedbridge_contracts.builders import a_job, a_reservation, a_running_job, a_snapshot
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import Memory, run
from tests.unit.policies.test_power_corridor import HEAT, PI, job, site, waits
from tests.unit.policies.test_power_corridor import a_world as a_powered_world
from tests.unit.policies.test_power_corridor import resized as completed
from tests.unit.policies.test_reshape import a_world, malleable, resized


@pytest.mark.parametrize("preset", ["malleable-performance", "fpsma"])
@pytest.mark.parametrize("nodes", [5, 6])
def test_as_many_jobs_shrink_as_the_waiting_one_needs(preset, nodes):
    """Each frees two of 5 or 6 nodes: with one of them counted twice, two would seem enough."""
    running = [
        malleable(range(4 * n, 4 * n + 4), minimum=2, id=name) for n, name in enumerate("abc")
    ]
    world = a_world(*running, a_running_job(tuple(range(12, 16))), jobs=[a_job(nodes=nodes)])
    found, plan = resized(world, preset)
    left = {name: len(kept) for name, kept in found.items()}
    assert len(left) == 3
    assert sum(left.values()) == 12 - nodes
    assert plan.start_s.tolist() == [15]
    given = set(range(12)) - {node for kept in found.values() for node in kept}
    assert set(plan.nodes_of(0).tolist()) == given


def test_two_jobs_that_free_too_little_together_keep_their_nodes():
    running = [malleable(range(8), minimum=7, id="a"), malleable(range(8, 16), minimum=7, id="b")]
    found, plan = resized(a_world(*running, jobs=[a_job(nodes=3)]))
    assert found == {}
    assert plan.start_s.tolist() == [1000]


@pytest.mark.parametrize("preset", ["malleable-performance", "fpsma", "malleable", "power-plan"])
def test_jobs_do_not_grow_onto_the_same_nodes(preset):
    """Three of four nodes, of which each may have six, beside fewer idle nodes than that."""
    for idle in range(1, 7):
        running = [
            malleable(range(4 * n, 4 * n + 4), maximum=6, id=name) for n, name in enumerate("abc")
        ]
        found, _ = resized(a_world(*running, nodes=12 + idle), preset)
        added = [node for nodes in found.values() for node in nodes if node >= 12]
        assert len(added) == len(set(added))
        assert len(added) == idle or preset not in ("malleable-performance", "fpsma")
        assert set(added) <= set(range(12, 12 + idle))


@pytest.mark.parametrize("over_w", [180, 359, 537])
def test_the_power_that_two_shrinks_free_counts_once(over_w):
    """The jobs can free 179 W and 358 W: a third of that, two thirds, or all are needed."""
    where = site((0, 14 * 71 + 8 * 179 - over_w))
    running = [job(0, 4, HEAT, min_nodes=3, id="a"), job(4, 4, HEAT, min_nodes=2, id="b")]
    world = a_powered_world(*running, jobs=[waits(4, PI)])
    plan = run(world, Memory(), build(parse_policy("malleable-power")), site=where)
    after = completed(world, plan)
    _, drawn_w = system_power(power_of(where), after)
    assert power_of(where).corridor.upper_w[0] - 179 < drawn_w
    assert drawn_w <= power_of(where).corridor.upper_w[0]
    assert not len(plan.starts_now)
    assert not len(
        run(after, Memory(), build(parse_policy("malleable-power")), site=where).starts_now
    )


@each(preset=[*PRESETS])
def test_a_job_waits_for_the_later_of_two_reservations_that_end(preset):
    """Also on the node that both hold."""
    first = a_reservation([0, 1, 2], 0, 120, "first")
    for nodes, end_s in (([2, 3], 300), ([3], 300), ([0, 1, 2], 60)):
        second = a_reservation(nodes, 0, end_s, "second")
        world = a_snapshot(nodes=4, jobs=[a_job(4)], reservations=[first, second])()
        plan = run(world, Memory(), build(parse_policy(preset)))
        (start_s,) = plan.start_s.tolist()
        assert start_s in (max(120, end_s), NEVER, UNPLANNED)
        later = dataclasses.replace(world, now_s=max(120, end_s))
        assert run(later, Memory(), build(parse_policy(preset))).starts_now.tolist() == [0]


def test_what_two_guests_hold_counts_once_and_is_free_once_they_have_left():
    """Each on a node of its own, both of one host; then one of them, then none."""
    host = a_running_job((0, 1), end_s=500, cpus=4, shared=True, id="h")
    guests = [
        a_running_job((node,), end_s=300, cpus=4, shared=True, id=f"g{node}", host_id="h")
        for node in (0, 1)
    ]
    for there in ((0, 1), (0,), (1,), ()):
        running = [host, *(guests[node] for node in there)]
        world = a_snapshot(nodes=3, running=running, jobs=[a_job(1)])()
        table = counted_once(world.running)
        held = np.zeros(3, dtype=np.int64)
        np.add.at(held, table.nodes, table.use[:, CPUS])
        assert held.tolist() == [4, 4, 0]
        plan = run(world, Memory(), build(parse_policy("asax")), site=NO_RULES)
        assert plan.nodes_of(0).tolist() == [2]
