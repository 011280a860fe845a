# SPDX-License-Identifier: Apache-2.0
"""Agents that are dead, lie or are late, jobs that draw more than they said, bounds below idle.

Four nodes of 70 W to 250 W, a base of 100 W: 380 W without jobs. Two jobs of two nodes each. Under
800 W both run at once only if the first is known to draw at most 100 W on each of its nodes: then
60 W beyond idle are its, and 360 W are left for the other.
"""

import math

import pytest

from bridge.extensions.power.planning.estimates import system_power
from bridge.extensions.power.power_use import STALE_S
from bridge.extensions.power.rules import power_of
from bridge.model.reasons import ReasonCode
from bridge.rpc.clients.operator_client import OperatorClient
from bridge.rpc.pb import operator_pb2 as pb
from tests.simulation.metered import World, a_metered_service
from tests.simulation.services import a_home, operator_of

JOBS = [(1, 600, 600, 2), (2, 600, 600, 2)]


def planning(upper_w=800):
    return {
        "power": {
            "base": "100W",
            "nodes": [{"name": "all", "idle": "70W", "max": "250W"}],
            "corridor": [{"name": "contract", "upper": f"{upper_w}W"}],
        }
    }


@pytest.fixture
def home():
    with a_home() as made:
        yield made


def first_runs(world, meters):
    """The first job runs, and the agents of its nodes attend."""
    assert [*world.controller.running] == [0]
    held = world.controller.running[0].nodes.tolist()
    meters.attend(*(world.controller.nodes.table.names[node] for node in held))


def second_starts(world):
    """Whether the other job starts in the next cycle; it says why not."""
    plan = world.cycle(1)
    starts = plan.start_s.tolist() == [world.now_s]
    assert starts or plan.reasons[0].code == ReasonCode.POWER
    return starts


def test_jobs_start_by_what_is_measured(home):
    with (
        a_metered_service(home, planning=planning(), policy="conservative") as (_, meters),
        World(home, JOBS) as world,
    ):
        first_runs(world, meters)
        assert not second_starts(world)
        meters.reads(100, job="1")
        assert second_starts(world)


@pytest.mark.parametrize("watts", [-100.0, 0.0, math.nan, math.inf, 1e300, 10_000.0, 1.0], ids=str)
def test_a_lie_makes_nothing_start(home, watts):
    with (
        a_metered_service(home, planning=planning(), policy="conservative") as (service, meters),
        World(home, JOBS) as world,
    ):
        first_runs(world, meters)
        meters.reads(watts, job="1")
        assert not second_starts(world)
        assert sum(meters.hub.extensions.get("power").refused.values()) == 2 * 60
        assert b"schedbridge_power_refusals_total" in service._metrics.page()


def test_an_agent_that_dies_makes_its_job_count_with_the_most_again(home):
    with (
        a_metered_service(home, planning=planning(), policy="conservative") as (_, meters),
        World(home, JOBS) as world,
    ):
        first_runs(world, meters)
        meters.reads(100, job="1")
        meters.attend()  # both streams end
        meters.s += STALE_S + 1
        assert not second_starts(world)


def test_one_dead_agent_of_two_counts_with_the_most_of_its_node_alone(home):
    """70 W to 250 W there, 100 W on the other: 175 W a node, 210 W beyond idle."""
    for upper_w, starts in ((380 + 210 + 360, True), (380 + 210 + 359, False)):
        with (
            a_metered_service(home, planning=planning(upper_w), policy="conservative") as made,
            World(home, JOBS) as world,
        ):
            _, meters = made
            first_runs(world, meters)
            meters.reads(100, job="1")
            meters.attend(next(iter(meters.agents)))
            meters.reads(100, job="1", seconds=int(STALE_S) + 1)
            assert second_starts(world) == starts


def test_values_that_are_too_late_make_nothing_start(home):
    with (
        a_metered_service(home, planning=planning(), policy="conservative") as (_, meters),
        World(home, JOBS) as world,
    ):
        first_runs(world, meters)
        meters.reads(100, job="1", ago_ms=int(STALE_S * 1000) + 1)
        assert not second_starts(world)
        assert {reason for _, reason in meters.hub.extensions.get("power").refused} == {"late"}


@pytest.mark.parametrize("behind_s", [-86_400, -60, 60, 86_400])
def test_the_clocks_of_nodes_and_controller_do_not_matter(home, behind_s):
    """Agents send ages, the service counts from the arrival; bounds follow the controller."""
    with (
        a_metered_service(home, planning=planning(), policy="conservative") as (_, meters),
        World(home, JOBS) as world,
    ):
        first_runs(world, meters)
        meters.s += 100_000 + behind_s
        meters.reads(100, job="1")
        assert second_starts(world)


def drawn_w(service):
    """System power by the upper estimate, in the last cycle."""
    return system_power(power_of(service.decider.site), service.cycles.published.snapshot)[1]


@pytest.mark.parametrize(("draws_w", "starts"), [(100, True), (200, False)])
def test_a_job_that_draws_twice_what_it_said_counts_with_what_it_draws(home, draws_w, starts):
    """It said 100 W, as the other does, and both would do under 500 W."""
    with (
        a_metered_service(home, planning=planning(500), policy="conservative") as made,
        World(home, JOBS, stated_w=[100, 100], submitted=1) as world,
    ):
        service, meters = made
        first_runs(world, meters)
        world.cycle(1)
        assert drawn_w(service.scheduling) == 440
        meters.reads(draws_w, job="1")
        world.controller.submit(1)
        assert second_starts(world) == starts
        assert drawn_w(service.scheduling) == 380 + 2 * (draws_w - 70)


@pytest.mark.parametrize("policy", ["conservative", "malleable-power", "power-plan"])
def test_below_the_idle_power_nothing_starts_and_show_says_so(home, policy):
    with (
        a_metered_service(home, planning=planning(300), policy=policy) as _,
        World(home, JOBS) as world,
        OperatorClient(operator_of(home)) as operator,
    ):
        world.cycle(1)
        assert not world.controller.running
        problem = operator.power().problems[0]
        assert problem.startswith("without jobs the system draws 380 W, more than")
        operator.corridor(pb.CorridorRequest(upper_w=2000))
        assert world.cycle(1).start_s.tolist() == [world.now_s] * 2
        assert not operator.power().problems
