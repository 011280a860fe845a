# SPDX-License-Identifier: Apache-2.0
"""The second paper's reshape policies, on worlds that can be followed by eye."""

import dataclasses

import numpy as np
import pytest

from bridge.errors import ConfigError
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.workloads.esp import esp
from bridge.lab.sim.workloads.system import pool_of
from bridge.model.job import Hold, WidthRule
from bridge.model.reasons import ReasonCode
from bridge.model.rules.site import NO_RULES
from bridge.model.snapshot import Reservation
from bridge.policies.plan.backfill import Backfill
from bridge.ports import Promises, State
from bridge.registry import build, parse_policy
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.builders import a_job, a_reservation, a_running_job, a_snapshot
from schedbridge_contracts.cycles import Memory, a_site, run


def a_world(*running, jobs=(), nodes=16, mtct=None, **more):
    world = a_snapshot(nodes=nodes, jobs=list(jobs), running=list(running), now_s=10, **more)()
    if mtct is not None:
        world = dataclasses.replace(
            world, running=dataclasses.replace(world.running, mtct=np.array(mtct, dtype=float))
        )
    return world


def malleable(nodes, *, minimum=1, maximum=16, rule=WidthRule.ANY, **more):
    return a_running_job(
        tuple(nodes), min_nodes=minimum, max_nodes=maximum, width_rule=rule, end_s=1000, **more
    )


def resized(world, preset="malleable-performance", site=NO_RULES):
    """Job id to its nodes afterwards, and the plan."""
    plan = run(world, Memory(), build(parse_policy(preset)), site=site)
    resizes = plan.resizes
    ids = world.running.id[resizes.job].tolist()
    return {job: resizes.nodes_of(row).tolist() for row, job in enumerate(ids)}, plan


def test_a_job_of_eight_even_nodes_shrinks_to_two_where_six_are_needed():
    world = a_world(
        malleable(range(8), rule=WidthRule.EVEN, minimum=2, id="m"),
        a_running_job(tuple(range(8, 16))),
        jobs=[a_job(nodes=6)],
    )
    found, plan = resized(world)
    assert found == {"m": [0, 1]}
    assert plan.start_s.tolist() == [15]  # when they have been given back
    assert set(plan.nodes_of(0).tolist()) == {2, 3, 4, 5, 6, 7}


@pytest.mark.parametrize("preset", ["malleable-performance", "fpsma"])
def test_a_job_whose_batch_host_is_not_its_first_node_keeps_it(preset):
    world = a_world(
        malleable(range(8), rule=WidthRule.EVEN, minimum=2, id="m"),
        a_running_job(tuple(range(8, 16))),
        jobs=[a_job(nodes=2)],
    )
    heads = dataclasses.replace(world.running, head=np.array([7, -1]))
    found, _ = resized(dataclasses.replace(world, running=heads), preset)
    assert found == {"m": [0, 1, 2, 3, 4, 7]}


def test_without_a_reshape_policy_nobody_is_resized():
    waiting = a_job(nodes=6)
    world = a_world(malleable(range(8)), a_running_job(tuple(range(8, 16))), jobs=[waiting])
    assert resized(world, "slurm-like")[0] == {}
    assert resized(a_world(malleable(range(8))), "slurm-like")[0] == {}


def test_the_highest_ratio_shrinks_first_and_the_lowest_grows_first():
    running = [
        malleable(range(4), id="a"),
        malleable(range(4, 8), id="b"),
        malleable(range(8, 12), id="c"),
    ]
    taken = a_running_job(tuple(range(12, 16)))
    waits = a_world(*running, taken, jobs=[a_job(nodes=2)], mtct=[0.1, 0.5, 0.2, -1])
    assert resized(waits)[0] == {"b": [4, 5]}
    idle = a_world(*running, mtct=[0.3, 0.5, 0.2])
    assert resized(idle)[0] == {"c": [8, 9, 10, 11, 12, 13, 14, 15]}


def test_fpsma_goes_by_start():
    running = [malleable(range(4), id="a"), malleable(range(4, 8), id="b")]
    world = a_world(*running, jobs=[a_job(nodes=2)], nodes=8)
    starts = dataclasses.replace(world.running, start_s=np.array([3, 5]))
    world = dataclasses.replace(world, running=starts)
    assert resized(world, "fpsma")[0] == {"b": [4, 5]}
    idle = dataclasses.replace(
        a_world(*running, nodes=10), running=dataclasses.replace(a_world(*running).running,
                                                                 start_s=np.array([3, 5]))
    )  # fmt: skip
    assert resized(idle, "fpsma")[0] == {"a": [0, 1, 2, 3, 8, 9]}


def test_nothing_shrinks_where_it_would_not_be_enough_and_idle_nodes_are_given_away():
    world = a_world(malleable(range(4), minimum=3, id="m"), jobs=[a_job(nodes=8)], nodes=10)
    found, plan = resized(world)
    assert found == {"m": list(range(10))}
    assert plan.start_s.tolist() == [1000]


@pytest.mark.parametrize("preset", ["malleable-performance", "malleable", "power-plan"])
def test_no_job_grows_onto_nodes_that_an_extension_closes(preset):
    """Slurm powers a node up for a job that starts there, not for one that runs."""
    world = a_world(malleable(range(4), id="m"), nodes=10)
    nodes, no_licences = np.arange(4, 8, dtype=np.int32), np.zeros(0, dtype=np.int64)
    until_s = world.now_s + 9
    closed = Reservation("powered off", world.now_s, until_s, nodes, no_licences, own=True)
    asleep = dataclasses.replace(world, reservations=(closed,))
    assert resized(asleep, preset)[0] == {"m": [0, 1, 2, 3, 8, 9]}


def test_idle_nodes_that_the_waiting_job_will_take_are_not_given_away():
    world = a_world(
        malleable(range(4), id="m"), malleable(range(4, 8), id="n"), jobs=[a_job(nodes=6)],
        nodes=12, mtct=[0.5, 0.1],
    )  # fmt: skip
    found, plan = resized(world)
    assert found == {"m": [0, 1]}
    assert plan.nodes_of(0).tolist() == [2, 3, 8, 9, 10, 11]


def test_while_a_job_adapts_nothing_is_decided():
    world = a_world(
        malleable(range(4), id="m", adapting=True), malleable(range(4, 8)), jobs=[a_job(nodes=4)],
        nodes=8,
    )  # fmt: skip
    assert resized(world)[0] == {}


def test_nobody_passes_the_first_job_that_cannot_start():
    world = a_world(
        a_running_job((0, 1), end_s=50), nodes=5,
        jobs=[a_job(nodes=1), a_job(nodes=4), a_job(nodes=1, limit_s=5), a_job(nodes=1)],
    )  # fmt: skip
    plan = run(world, Memory(), build(parse_policy({"order": "fcfs", "plan": "in-order"})))
    assert plan.starts_now.tolist() == [0]
    assert plan.planned.tolist() == [1]
    assert [reason.code for reason in plan.reasons[2:]] == [ReasonCode.PRIORITY] * 2


def test_held_jobs_stop_nobody():
    world = a_world(nodes=2, jobs=[a_job(hold=Hold.HELD), a_job(nodes=9), a_job()])
    plan = run(world, Memory(), build(parse_policy({"order": "fcfs", "plan": "in-order"})))
    assert plan.job[plan.starts_now].tolist() == [2]


def test_growth_stops_at_limits_and_reservations():
    world = a_world(malleable(range(4), id="m"), nodes=8)
    site = a_site({"limits": [{"user": "user", "resource": "cpus", "items": 20}]})
    assert resized(world, site=site)[0] == {}  # all four more nodes would be 32 CPUs
    kept = a_world(malleable(range(4), id="m"), nodes=8, reservations=[a_reservation((6,), 20, 90)])
    assert resized(kept)[0] == {"m": [0, 1, 2, 3, 4, 5, 7]}


@pytest.mark.parametrize("value", [0, -1])
def test_an_impossible_duration_is_refused(value):
    with pytest.raises(Exception, match="adaptation_s"):
        parse_policy({"reshape": {"name": "performance", "adaptation_s": value}})


class TestMalleable:
    """Jobs planned on their bases, and what is idle lent to them."""

    def test_idle_nodes_go_where_they_gain_most(self):
        world = a_world(
            malleable(range(4), id="serial"), malleable(range(4, 8), id="parallel"), nodes=12,
            mtct=[3.0, 0.0],
        )  # fmt: skip
        found, plan = resized(world, "malleable")
        assert found == {"parallel": list(range(4, 12))}
        # 990 s of its limit left on four nodes: half of that on eight, after the change.
        assert plan.resizes.end_s.tolist() == [10 + 5 + 495]

    def test_a_job_gives_back_what_a_waiting_one_starts_on(self):
        job = malleable(range(8), id="m", requested_nodes=8)
        world = a_world(job, jobs=[a_job(nodes=4, limit_s=50)], nodes=8, mtct=[7.0])
        found, plan = resized(world, "malleable")
        assert plan.start_s.tolist() == [15]
        assert set(found["m"]) == set(range(8)) - set(plan.nodes_of(0).tolist())
        assert not len(plan.returns)  # nothing waits for the three that are still lent

    def test_its_base_is_what_stretch_says(self):
        job = malleable(range(8), id="m", requested_nodes=8)
        world = a_world(job, jobs=[a_job(nodes=8, limit_s=50)], nodes=8, mtct=[0.0])
        spec = {"preset": "malleable", "reshape": {"name": "malleable", "stretch": 2.0}}
        plan = run(world, Memory(), build(parse_policy(spec)))
        assert not len(plan.resizes)
        assert plan.start_s.tolist() == [10 + 5 + 2 * 990]  # twice as long on half of its nodes
        half = a_world(job, jobs=[a_job(nodes=4)], nodes=8, mtct=[0.0])
        assert run(half, Memory(), build(parse_policy(spec))).start_s.tolist() == [15]

    def test_no_job_is_shrunk_that_ends_soon(self):
        running = dataclasses.replace(malleable(range(8), id="m"), end_s=20)
        world = a_world(running, jobs=[a_job(nodes=7, limit_s=5000)], nodes=8, mtct=[0.0])
        assert resized(world, "malleable")[0] == {}

    def test_idle_nodes_are_lent_until_they_are_needed(self):
        blocker = a_running_job((4, 5), end_s=300)
        job = malleable(range(4), id="m", requested_nodes=4, minimum=4, maximum=16)
        world = a_world(job, blocker, jobs=[a_job(nodes=4, limit_s=900)], nodes=8, mtct=[0.0, -1])
        found, plan = resized(world, "malleable")
        assert found == {"m": [0, 1, 2, 3, 6, 7]}
        assert plan.start_s.tolist() == [300]
        assert plan.returns.nodes.tolist() == [0, 1, 2, 3]
        assert plan.returns.by_s.tolist() == [300]
        assert plan.again_s == 295

    def test_nodes_that_are_needed_soon_are_not_lent(self):
        blocker = a_running_job((4, 5), end_s=40)
        job = malleable(range(4), id="m", requested_nodes=4, minimum=4)
        world = a_world(job, blocker, jobs=[a_job(nodes=4, limit_s=900)], nodes=8, mtct=[0.0, -1])
        assert resized(world, "malleable")[0] == {}

    def test_no_job_changes_twice_within_the_interval(self):
        for changed_s, grows in ((5, False), (-60, True)):
            job = malleable(range(4), id="m", requested_nodes=4, resized_s=100 + changed_s)
            world = dataclasses.replace(a_world(job, nodes=8, mtct=[0.0]), now_s=110)
            assert bool(resized(world, "malleable")[0]) == grows

    def test_a_moldable_job_starts_on_its_base_and_is_planned_for_perfect_speed_up(self):
        job = a_job(nodes=8, limit_s=100, min_start=1, max_start=16)
        world = a_world(a_running_job(tuple(range(13)), end_s=1000), jobs=[job])
        plan = run(world, Memory(), build(parse_policy("malleable")))
        assert plan.start_s.tolist() == [10]
        assert plan.start_widths.nodes.tolist() == [2]
        assert plan.end_s.tolist() == [10 + 100 * 8 // 2]

    @pytest.mark.parametrize("promised", [{}, {"2": 50}, {"2": 50, "1": 9000}])
    def test_a_promise_is_kept_where_a_plan_in_order_would_break_it(self, promised):
        """The first job needs all nodes at 137; the second one was promised two of them before."""
        jobs = [a_job(id="1", nodes=6, limit_s=500), a_job(id="2", nodes=2, limit_s=500)]
        blocker = a_running_job((4, 5), end_s=50)
        job = dataclasses.replace(malleable(range(4), id="m", requested_nodes=4), end_s=45)
        world = a_world(job, blocker, jobs=jobs, nodes=6)
        memory = Memory()
        memory.state = State(Promises("malleable", promised))
        plan = run(world, memory, build(parse_policy("malleable")))
        start_s = dict(zip(plan.job.tolist(), plan.start_s.tolist(), strict=True))
        assert start_s == ({0: 515, 1: 15} if promised else {0: 137, 1: 637})
        assert memory.planned_start_s == {"1": start_s[0], "2": start_s[1]}

    @pytest.mark.parametrize(
        "value",
        [{"adaptation_s": 0}, {"between_s": -1}, {"stretch": 0.5}, {"fairness": 0.0}],
    )
    def test_impossible_parameters_are_refused(self, value):
        (key,) = value
        with pytest.raises(ConfigError, match=key):
            parse_policy({"reshape": {"name": "malleable", **value}})


@pytest.mark.parametrize("share", [0, 50, 100])
def test_on_esp_malleable_jobs_make_the_mean_response_shorter(share):
    response_s = {}
    for preset in ("conservative", "malleable"):
        workload = esp(share, seed=2).first(100)
        decider = Decider(build(parse_policy(preset)))
        outcome = simulate(workload, pool_of(32), decider.decide)
        schedule = outcome.schedule
        assert not outcome.refusals
        assert preset != "malleable" or outcome.starts.accuracy().first.kept == 1.0
        response_s[preset] = (schedule.end_s - schedule.submit_s).mean()
        assert not decider.failures
    if share:
        assert response_s["malleable"] < response_s["conservative"]
    else:
        assert response_s["malleable"] == response_s["conservative"]


def test_a_job_is_grown_only_where_its_limit_lets_it_be_whatever_is_predicted():
    """It is predicted to end long before the reservation; it may run into it."""
    running = dataclasses.replace(malleable(range(2), id="m"), end_s=100_000)
    world = a_world(running, nodes=4, reservations=[a_reservation((3,), 5000, 6000)])
    spec = parse_policy({"preset": "malleable-performance", "predict": "oracle"})
    memory = Memory(run_s={"m": 100})
    for jobs in ([], [a_job(nodes=1, limit_s=50)]):
        snapshot = dataclasses.replace(world, jobs=a_snapshot(nodes=4, jobs=jobs)().jobs)
        plan = run(snapshot, memory, build(spec))
        assert 3 not in plan.resizes.nodes.tolist()


def test_a_job_that_ends_soon_is_left_alone():
    running = dataclasses.replace(malleable(range(4), id="m"), end_s=19)
    assert resized(a_world(running, nodes=8))[0] == {}


def test_a_running_job_without_nodes_stops_nobody():
    gone = dataclasses.replace(malleable((), id="gone"), shared=True)
    found, _ = resized(a_world(malleable(range(4), id="m"), gone, nodes=8))
    assert found == {"m": list(range(8))}


def test_a_kept_plan_is_not_combined_with_changes_of_width():
    with pytest.raises(ConfigError, match="made again in every cycle"):
        parse_policy({"preset": "openccs", "reshape": "fpsma"})


@pytest.mark.parametrize(
    ("running", "jobs"),
    [
        ([malleable(range(4), id="m")], [a_job(nodes=9, limit_s=100)]),
        ([a_running_job((0, 1), id="r")], [a_job(nodes=9, limit_s=100)]),
        ([malleable(range(4), id="m")], []),
    ],
)
def test_the_queue_is_planned_once_around_bases(running, jobs, monkeypatch):
    planned, seen = Backfill.planned, []
    monkeypatch.setattr(
        Backfill, "planned", lambda *given: seen.append(given[1]) or planned(*given)
    )
    plan = run(a_world(*running, jobs=jobs), Memory(), build(parse_policy("malleable")))
    assert len(seen) == 1
    assert len(plan) == len(jobs)
