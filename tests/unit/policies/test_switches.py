# SPDX-License-Identifier: Apache-2.0
"""What a job that wishes for few switches gets, under the plan policies of this project."""

import dataclasses

import numpy as np
import pytest

from bridge.model.reasons import ReasonCode
from bridge.model.topology import Topology, regular
from bridge.units import NEVER
from schedbridge_contracts.builders import a_job, a_node, a_running_job, a_snapshot, gantt
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import Memory, check
from schedbridge_contracts.test_plan_switches import decide, two_fabrics, with_switches
from schedbridge_contracts.worlds import random_world


def four_and_four(*jobs, busy=(2, 3, 6, 7), end_s=1000, now_s=0):
    """Two leaf switches of four nodes, half of each idle."""
    running = [a_running_job((node,), end_s) for node in busy]
    world = a_snapshot(nodes=8, running=running, jobs=jobs, now_s=now_s)()
    return dataclasses.replace(world, topology=regular(8, 4))


@pytest.mark.parametrize("plan", ["easy", "conservative", "openccs", "search"])
@pytest.mark.parametrize("place", ["sequential", "compact"])
class TestAWish:
    def test_what_fits_on_one_switch_starts_there(self, plan, place):
        world = four_and_four(a_job(2, switches=1, switches_wait_s=60), busy=(0, 1, 2, 4, 5))
        made = decide(world, plan, place=place)
        assert made.start_s[0] == 0
        assert made.nodes_of(0).tolist() == [6, 7]

    def test_it_waits_and_then_takes_anything(self, plan, place):
        job = a_job(4, switches=1, switches_wait_s=60)
        world = four_and_four(job)
        made = decide(world, plan, place=place)
        assert made.start_s[0] == 60
        reason = made.reasons[0]
        assert reason.code is ReasonCode.RESOURCES
        assert reason.text.startswith("waits for room on 1 leaf switch until ")
        later = dataclasses.replace(world, now_s=60)
        assert decide(later, plan, place=place).start_s[0] == 60

    def test_a_switch_that_is_free_before_is_taken(self, plan, place):
        world = four_and_four(a_job(4, switches=1, switches_wait_s=60), end_s=30)
        made = decide(world, plan, place=place)
        assert made.start_s[0] == 30
        assert made.nodes_of(0).tolist() in ([0, 1, 2, 3], [4, 5, 6, 7])

    def test_two_switches_are_enough_for_two(self, plan, place):
        made = decide(four_and_four(a_job(4, switches=2, switches_wait_s=60)), plan, place=place)
        assert made.start_s[0] == 0

    def test_what_no_switch_can_hold_waits_nevertheless(self, plan, place):
        made = decide(four_and_four(a_job(6, switches=1, switches_wait_s=60), busy=()), plan)
        assert made.start_s[0] == 60
        assert made.reasons[0].text.startswith("no 1 leaf switch can hold it: waits until ")

    def test_the_wait_begins_when_the_job_is_eligible(self, plan, place):
        job = a_job(4, switches=1, switches_wait_s=60, submit_s=900, eligible_s=970)
        made = decide(four_and_four(job, now_s=1000, end_s=9000), plan, place=place)
        assert made.start_s[0] == 1030

    def test_without_a_topology_nobody_waits(self, plan, place):
        world = dataclasses.replace(
            four_and_four(a_job(4, switches=1, switches_wait_s=60)), topology=None
        )
        assert decide(world, plan, place=place).start_s[0] == 0

    def test_others_go_first_meanwhile(self, plan, place):
        world = four_and_four(
            a_job(4, switches=1, switches_wait_s=60, id="1"), a_job(2, limit_s=50, id="2")
        )
        made = decide(world, plan, place=place)
        assert made.start_s.tolist() == [60, 0]

    def test_a_job_never_has_nodes_of_two_fabrics(self, plan, place):
        world = four_and_four(a_job(4))
        apart = Topology(("a", "b"), np.array([-1, -1], np.int32), world.topology.leaf_of_node)
        made = decide(dataclasses.replace(world, topology=apart), plan, place=place)
        assert made.start_s[0] == 1000

    def test_one_that_no_fabric_holds_never_runs(self, plan, place):
        world = four_and_four(a_job(5), busy=())
        apart = Topology(("a", "b"), np.array([-1, -1], np.int32), world.topology.leaf_of_node)
        made = decide(dataclasses.replace(world, topology=apart), plan, place=place)
        assert made.start_s[0] == NEVER
        assert made.reasons[0].code is ReasonCode.NEVER


def test_a_promise_stands_when_leaf_switches_are_ranked_anew():
    """The first has one switch, the second the other; then it is the other that is free first."""
    jobs = [a_job(4, switches=1, switches_wait_s=1000), a_job(4, features="b")]
    nodes = [a_node(features=("b",) * (at > 3)) for at in range(8)]
    memory = Memory()
    for end_s in (100, 90):
        running = [a_running_job((0, 1, 2, 3), 100), a_running_job((4, 5, 6, 7), end_s)]
        world = a_snapshot(nodes=nodes, running=running, jobs=jobs, now_s=100 - end_s)()
        made = decide(
            dataclasses.replace(world, topology=regular(8, 4)),
            {"name": "openccs", "keep_plan": True},
            memory,
        )
    assert made.start_s.max() <= 100
    assert made.nodes_of(0).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("plan", ["easy", "conservative", "openccs"])
@each(seed=range(40))
def test_what_is_arranged_keeps_them(plan, seed):
    """Fabrics and wishes, whoever moves nodes about, and in the cycles that follow."""
    world = random_world(seed, chunks=seed % 2 == 0)
    world = with_switches(world, two_fabrics(len(world.nodes), seed), seed)
    place, memory = {"name": "compact", "budget_ms": 0, "effort": 20}, Memory()
    for now_s in (0, 15, 40, 90):
        later = dataclasses.replace(world, now_s=now_s, generation=world.generation + now_s)
        made = decide(later, plan, memory, place=place)
        assert check(later, made) == (), f"seed {seed}\n{gantt(later, made)}"
