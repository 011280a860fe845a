# SPDX-License-Identifier: Apache-2.0
"""The policy `pairs`: which hosts get a guest, when, and which one."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.errors import ConfigError
from bridge.extensions.sharing.part import shared_of
from bridge.extensions.sharing.rules import sharing_rules, with_sharing
from bridge.model.job import Ending
from bridge.registry import build, parse_policy
from schedbridge_contracts.sharing import NOW_S, SHARING, a_host, a_waiting_job, a_world
from tests.unit.policies.measured_node import (
    STEP_S,
    Machine,
    harmless,
)
from tests.unit.policies.test_share import ended, quota_of


def test_no_guest_before_the_host_was_measured_alone():
    machine = Machine(harmless)
    machine.jobs = (a_waiting_job(id="g0"),)
    assert not len(shared_of(machine.step()).guest_starts)
    assert machine.plans[-1].again_s <= machine.now_s + 30


@pytest.mark.parametrize(("bound", "soon"), [(0.0, False), (0.005, False), (0.05, True)])
def test_it_does_not_plan_often_for_a_host_that_can_get_no_guest(bound, soon):
    site = with_sharing(SHARING, replace(sharing_rules(SHARING)[0], max_slowdown=bound))
    machine = Machine(harmless, site=site)
    machine.extra = {"start_s": NOW_S}
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    for _ in range(3):
        assert not len(shared_of(machine.step()).guest_starts)
        assert (machine.plans[-1].again_s <= machine.now_s + STEP_S) == soon
    assert machine.plans[-1].again_s <= machine.now_s + 30


def test_it_does_not_plan_often_for_a_host_that_uses_no_cpu():
    machine = Machine(harmless)
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    machine.extra = {"cpu_s": 5.0}
    machine.step(20)
    assert machine.plans[0].again_s == machine.now_s - 19 * STEP_S + STEP_S
    assert machine.plans[-1].again_s == machine.now_s + 30


@pytest.mark.parametrize(
    ("started_s", "bound", "steps"),
    [(NOW_S, 0.1, 3), (NOW_S, 0.2, 2), (NOW_S, 0.05, 7), (NOW_S - 300, 0.1, 3)],
    ids=["harm within the bound", "second measurement", "low bound", "its start was not seen"],
)
def test_a_host_gets_its_guest_when_harm_until_it_is_detected_is_within_the_bound(
    started_s, bound, steps
):
    """At most 0.2 of 10 s is lost: 2 s must be within the bound of t + 8 s."""
    machine = Machine(harmless, host={"max_slowdown_permille": round(1000 * bound)})
    machine.work_s, machine.extra = 0.0, {"start_s": started_s}
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    for _ in range(steps - 1):
        assert not len(shared_of(machine.step()).guest_starts)
        assert machine.plans[-1].again_s <= machine.now_s + STEP_S
    assert len(shared_of(machine.step()).guest_starts) == 1


def test_a_guest_starts_at_the_least_weight_under_a_high_ceiling():
    machine = Machine(harmless).with_guest()
    plan = machine.plans[-1]
    assert quota_of(plan) == {"g0": 4000}
    assert shared_of(plan).quotas.weight.tolist() == [1]
    assert plan.again_s == machine.now_s + 5


def test_a_host_that_uses_no_cpu_gets_no_guest():
    """Its slowdown could not be known."""
    machine = Machine(harmless)
    machine.jobs = (a_waiting_job(id="g0", cpus=4),)
    machine.extra = {"cpu_s": 5.0}
    for _ in range(20):
        assert not len(shared_of(machine.step()).guest_starts)


def test_the_guest_that_gets_most_of_what_it_wants_is_taken():
    """The host leaves 2 of 4 CPUs: a job known to use one goes before one that wants all."""
    machine = Machine(harmless)
    alone = a_host(id="x", name="small", cpu_s=100.0, measured_s=NOW_S, start_s=NOW_S - 100)
    machine.cycles.run(a_world([alone], nodes=1))
    done = replace(ended(("x", 100, 500, Ending.COMPLETED)))
    machine.cycles.run(a_world([], nodes=1), done)
    machine.step(4)
    machine.jobs = (a_waiting_job(id="g1", cpus=4), a_waiting_job(id="g2", cpus=4))
    world = machine.world()
    jobs = world.jobs.with_columns(name=np.array(["big", "small7"], dtype=object))
    machine.now_s += STEP_S
    world = replace(machine.world(), jobs=jobs)
    plan = machine.cycles.run(world)
    (row,) = shared_of(plan).guest_starts
    assert world.jobs.id[plan.job[row]] == "g2"


@pytest.mark.parametrize(
    "parameters",
    [{"most_candidates": 0}, {"least_share": 2.0}, {"calm_s": 1}, {"watch_s": 0}],
)
def test_impossible_parameters_are_refused(parameters):
    (name,) = parameters
    with pytest.raises(ConfigError, match=name):
        build(parse_policy({"preset": "easy", "share": {"name": "pairs", **parameters}}))
