# SPDX-License-Identifier: Apache-2.0
"""Policies that share nodes, step by step on small worlds."""

from dataclasses import replace

import numpy as np
import pytest

from bridge.cycle import run_cycle
from bridge.errors import ConfigError
from bridge.extensions.sharing import kept_keys
from bridge.extensions.sharing.histories import application, history_of
from bridge.extensions.sharing.kept_learner import read_learner
from bridge.extensions.sharing.learner import Learner
from bridge.extensions.sharing.part import shared_of
from bridge.extensions.sharing.slots import Slots
from bridge.model.job import EndedTable, Ending
from bridge.model.job_columns import objects
from bridge.papers.sharing.asax import NAME
from bridge.ports import State
from bridge.registry import build, parse_policy
from bridge.units import NEVER
from schedbridge_contracts.sharing import NOW_S, SHARING, a_guest, a_host, a_waiting_job, a_world


def a_policy(share):
    return build(parse_policy({"preset": "easy", "share": share}))


def ended(*rows):
    """Rows of id, run time, limit and ending; they end now."""
    ids, runs, limits, endings = zip(*rows, strict=True)
    return EndedTable(
        id=objects(ids), name=objects(["host"] * len(rows)), user=objects(["user"] * len(rows)),
        start_s=NOW_S - np.array(runs, np.int64), end_s=np.full(len(rows), NOW_S),
        time_limit_s=np.array(limits, np.int64), ending=np.array(endings, np.int8),
    )  # fmt: skip


class Cycles:
    """Cycles one after the other."""

    def __init__(self, share, site=SHARING, seed=1):
        self.policy, self.state, self.site = a_policy(share), State(), site
        self.rng = np.random.default_rng(seed)

    def run(self, world, gone=None):
        world = world if gone is None else replace(world, ended=gone)
        result = run_cycle(world, self.site, self.state, self.policy, self.rng)
        self.state = result.state
        return result.plan

    @property
    def learner(self):
        return read_learner(self.state.learnt_by(NAME), 5)


def quota_of(plan):
    quotas = shared_of(plan).quotas
    return dict(zip(quotas.id.tolist(), quotas.milli_cpus_per_node.tolist(), strict=True))


@pytest.mark.parametrize("share", ["asax", "pairs"])
def test_ever_new_names_of_jobs_fill_no_memory(share, monkeypatch):
    monkeypatch.setattr(kept_keys, "MAX_OF_USER", 50)
    cycles = Cycles(share)

    def run(*names, user):
        jobs = [
            a_host((node,), id=name, name=name, user=user, start_s=NOW_S - 50)
            for node, name in enumerate(names)
        ]
        cycles.run(a_world(jobs, nodes=4))
        gone = ended(*((name, 50, 99, Ending.COMPLETED) for name in names))
        cycles.run(a_world([], nodes=4), gone)

    run("kept", user="ann")
    for at in range(0, 400, 4):
        run(*(f"{number}x" for number in range(at, at + 4)), user="eve")
    learnt = cycles.state.learnt_by(share)
    assert 0 < len(learnt.known) <= 50 + kept_keys.EVERY + 4
    assert history_of(learnt, application("ann", "kept", 1)) is not None


# ---------------------------------------------------------------- who is started


def test_the_first_job_that_fits_starts_at_half():
    world = a_world(
        [a_host(), a_host((1,))],
        [a_waiting_job(2), a_waiting_job(mem_mib=4000), a_waiting_job(), a_waiting_job()],
    )
    plan = Cycles("static-half").run(world)
    started = {
        world.jobs.id[plan.job[row]]: shared_of(plan).host_of(row)
        for row in shared_of(plan).guest_starts
    }
    assert started == {"3": "h0", "4": "h1"}
    assert quota_of(plan) == {"3": 2000, "4": 2000}


def test_a_guest_takes_nodes_of_one_host():
    world = a_world([a_host((0, 1)), a_host((2,))], [a_waiting_job(3), a_waiting_job(2, tasks=3)],
                    nodes=3)  # fmt: skip
    plan = Cycles("static-half").run(world)
    (row,) = shared_of(plan).guest_starts
    assert world.jobs.id[plan.job[row]] == "2"
    assert shared_of(plan).host_of(row) == "h0"
    assert plan.nodes_of(row).tolist() == [0, 1]
    assert plan.tasks_of(row).tolist() == [2, 1]


def test_a_host_has_several_guests_on_nodes_of_their_own():
    waiting = [a_waiting_job(), a_waiting_job(2), a_waiting_job(), a_waiting_job()]
    beside = a_guest((1,), host_id="h0")
    world = a_world([a_host((0, 1, 2, 3)), beside], waiting, nodes=4)
    plan = Cycles("static-half").run(world)
    started = {
        world.jobs.id[plan.job[row]]: plan.nodes_of(row).tolist()
        for row in shared_of(plan).guest_starts
    }
    assert started == {"1": [0], "2": [2, 3]}
    assert quota_of(plan) == {"1": 2000, "2": 2000, "g1": 2000}


def test_pairs_leaves_the_first_node_where_a_sequential_stage_runs():
    world = a_world([a_host((0, 1, 2))], [a_waiting_job()], nodes=3)
    for spares_head, node in ((False, 0), (True, 2)):
        plan = Cycles("none").run(world)
        slots = Slots(world, SHARING, plan, spares_head=spares_head)
        (host,) = slots.hosts
        assert [guest.nodes.tolist() for guest in slots.guests(host)] == [[node]]


def test_a_guest_leaves_out_nodes_without_room_or_that_it_may_not_use():
    world = a_world([a_host((0, 1, 2))], [a_waiting_job(2, excluded=(1,))], nodes=3)
    plan = Cycles("static-half").run(world)
    assert [plan.nodes_of(row).tolist() for row in shared_of(plan).guest_starts] == [[0, 2]]
    world = a_world([a_host((0, 1, 2))], [a_waiting_job(2, required=(2,))], nodes=3)
    plan = Cycles("static-half").run(world)
    assert [plan.nodes_of(row).tolist() for row in shared_of(plan).guest_starts] == [[0, 2]]


@pytest.mark.parametrize("share", ["static-half", "asax", "pairs"])
def test_jobs_that_have_just_started_are_looked_at_soon(share):
    """They may be hosts as soon as they are measured; until a job ends nothing else calls."""
    waits = a_waiting_job(2, limit_s=5000)
    plan = Cycles(share).run(a_world([a_host(cpus=4)], [a_waiting_job(cpus=4), waits]))
    assert len(plan.starts_now)
    assert NOW_S < plan.again_s <= NOW_S + 30
    fresh = a_host(measured_s=0, busy_cpus=-1.0)
    plan = Cycles(share).run(a_world([fresh, a_host((1,), coschedule=4)], [waits]))
    assert NOW_S < plan.again_s <= NOW_S + 30
    plan = Cycles(share).run(a_world([fresh]))
    assert plan.again_s == NEVER


def test_a_host_that_drew_nothing_is_asked_again():
    for seed in range(40):
        cycles = Cycles("asax", seed=seed)
        plan = cycles.run(a_world([a_host(busy_cpus=3.9)], [a_waiting_job()], nodes=1))
        if not len(shared_of(plan).guest_starts):
            assert plan.again_s == NOW_S + 60
            return
    raise AssertionError("never drew 0 %")


def test_a_guest_without_fixed_width_takes_as_many_nodes_as_it_may():
    world = a_world([a_host((0, 1, 2))], [a_waiting_job(1, max_nodes=2)], nodes=3)
    plan = Cycles("static-half").run(world)
    assert [plan.nodes_of(row).tolist() for row in shared_of(plan).guest_starts] == [[0, 1]]


@pytest.mark.parametrize("kept_out", [{"excluded": (0,)}, {"required": (1,)}, {"features": "none"}])
def test_a_job_that_may_not_use_a_hosts_nodes_does_not_keep_others_from_it(kept_out):
    world = a_world([a_host(), a_host((1,))], [a_waiting_job(**kept_out), *[a_waiting_job()] * 2])
    plan = Cycles("static-half").run(world)
    assert {shared_of(plan).host_of(row) for row in shared_of(plan).guest_starts} == {"h0", "h1"}


def a_crowded_node(**long):
    """A host that ends after 100 s; a job that is planned there then, a long and a short one."""
    first = a_waiting_job(limit_s=300, submit_s=1, cpus=4, coschedule=4)
    longer = a_waiting_job(limit_s=300, submit_s=2, **long)
    short = a_waiting_job(limit_s=90, submit_s=3)
    return a_world([a_host(end_s=NOW_S + 100)], [first, longer, short], nodes=1)


def test_a_guest_that_outlives_its_host_delays_who_is_planned_there():
    """As in the paper; `pairs` takes the short job."""
    plan = Cycles("static-half").run(a_crowded_node())
    (row,) = shared_of(plan).guest_starts
    assert plan.job[row] == 1
    starts = dict(zip(plan.job.tolist(), plan.start_s.tolist(), strict=True))
    assert starts[0] == NOW_S + 300


def test_a_policy_may_let_no_guest_delay_anybody():
    world = a_crowded_node()
    plan = Cycles("none").run(world)
    for delays, jobs in ((False, [2]), (True, [1, 2])):
        slots = Slots(world, SHARING, plan, delays=delays)
        (host,) = slots.hosts
        assert [guest.job for guest in slots.guests(host)] == jobs


def test_a_task_of_an_array_delays_nobody():
    plan = Cycles("static-half").run(a_crowded_node(array_tasks=2, array_startable=2))
    assert plan.job[shared_of(plan).guest_starts].tolist() == [2]


def test_where_a_plan_is_kept_no_guest_delays_anybody():
    policy = build(parse_policy({"preset": "openccs", "share": "static-half"}))
    world = a_crowded_node()
    plan = run_cycle(world, SHARING, State(), policy, np.random.default_rng(0)).plan
    assert 1 not in plan.job[shared_of(plan).guest_starts].tolist()


def test_a_job_may_be_a_guest_where_it_was_planned_itself():
    world = a_world([a_host(end_s=NOW_S + 100)], [a_waiting_job(limit_s=300)], nodes=1)
    plan = Cycles("static-half").run(world)
    assert len(shared_of(plan).guest_starts) == 1


# ---------------------------------------------------------------- what asax learns


def a_pair(**settings):
    return a_world([a_host(**settings), a_guest(end_s=NOW_S + 500)])


def a_started_pair(share="asax"):
    """Cycles in which a guest was started; an idle host gets one at the first seeds."""
    for seed in range(20):
        cycles = Cycles(share, seed=seed)
        plan = cycles.run(a_world([a_host(busy_cpus=0.2)], [a_waiting_job(id="g0")], nodes=1))
        if len(shared_of(plan).guest_starts):
            return cycles, plan
    raise AssertionError("no guest in 20 draws")


def test_a_host_that_nobody_measures_gets_no_guest():
    for settings in ({"busy_cpus": -1.0}, {"measured_s": 0}, {"measured_s": NOW_S - 100}):
        for seed in range(10):
            cycles = Cycles("asax", seed=seed)
            world = a_world([a_host(**settings)], [a_waiting_job()])
            assert not len(shared_of(cycles.run(world)).guest_starts)


def test_the_quota_of_a_guest_stays_while_nothing_is_learnt():
    cycles, plan = a_started_pair()
    first = quota_of(plan)["g0"]
    for _ in range(5):
        assert quota_of(cycles.run(a_pair()))["g0"] == first
    assert cycles.learner.decisions == 0


@pytest.mark.parametrize(
    ("run_s", "ending", "loss"),
    [
        (100, Ending.COMPLETED, 0.0),
        (125, Ending.COMPLETED, 0.5),
        (300, Ending.COMPLETED, 1.0),
        (100, Ending.TIMEOUT, 1.0),
        (100, Ending.LOST, None),
        (100, Ending.CANCELLED, None),
    ],
)
def test_an_overrun_is_told_to_the_learner_as_by_hand(run_s, ending, loss):
    cycles, _ = a_started_pair()
    cycles.run(a_pair())
    advice = np.array(
        cycles.state.learnt_by(NAME).running["guest\x1fg0"][4:], dtype=np.float64
    ) * 1e-9  # fmt: skip
    cycles.run(a_world([a_host()]), ended(("g0", run_s, 100, ending)))
    learner = cycles.learner
    if loss is None:
        assert learner.decisions == 0
        return
    assert learner.decisions == 1
    assert learner.risk == pytest.approx(advice * loss, abs=1e-8)
    weights = Learner.new(5).weights()
    assert learner.mixture_risk == pytest.approx(float(weights @ advice) * loss, abs=1e-8)


def test_a_host_whose_losses_reach_the_threshold_gets_no_further_guest():
    cycles, _ = a_started_pair()
    cycles.run(a_pair(busy_cpus=0.2))
    idle = a_host(busy_cpus=0.2)
    cycles.run(a_world([idle]), ended(("g0", 300, 100, Ending.COMPLETED)))
    for step in range(30):
        world = a_world([idle], [a_waiting_job()], now_s=NOW_S)
        assert not len(shared_of(cycles.run(world)).guest_starts), step


def test_a_host_without_losses_gets_one_guest_after_the_other():
    cycles, _ = a_started_pair()
    cycles.run(a_pair(busy_cpus=0.2))
    idle = a_host(busy_cpus=0.2)
    started = 0
    for _ in range(30):
        plan = cycles.run(
            a_world([idle], [a_waiting_job(id="g0")], nodes=1),
            ended(("g0", 90, 100, Ending.COMPLETED)),
        )
        started += len(shared_of(plan).guest_starts)
        cycles.run(a_pair(busy_cpus=0.2))
    assert started > 10


def test_what_was_learnt_by_other_experts_is_not_used():
    cycles, _ = a_started_pair()
    cycles.run(a_world([a_host()]), ended(("g0", 300, 100, Ending.COMPLETED)))
    assert read_learner(cycles.state.learnt_by(NAME), 4).decisions == 0


def test_asax_learns_to_leave_busy_hosts_alone():
    """Within the learner's bound, through what the policy keeps from cycle to cycle.

    A learner with equal weights makes 100 choices here, and exceeds the bound by half.
    """
    rng, cycles, starts = np.random.default_rng(5), Cycles("asax", seed=4), []
    host = a_host(busy_cpus=3.9)
    for _ in range(150):
        plan = cycles.run(a_world([host], [a_waiting_job(id="g0")], nodes=1))
        starts.append(len(shared_of(plan).guest_starts))
        if len(shared_of(plan).guest_starts):
            cycles.run(a_world([host, a_guest()]))
            over = int(rng.integers(40, 60))
            cycles.run(a_world([]), ended(("g0", 100 + over, 100, Ending.COMPLETED)))
        else:
            cycles.run(a_world([]))
    learner = cycles.learner
    assert learner.decisions == sum(starts) > 20
    assert 0 < learner.excess_risk() <= learner.bound() / 2
    assert sum(starts[50:]) < 0.25 * len(starts[50:])


@pytest.mark.parametrize(
    ("parameters", "words"), [({"threshold": 0}, "threshold"), ({"ask_again_s": 0}, "ask_again_s")]
)
def test_impossible_parameters_are_refused(parameters, words):
    with pytest.raises(ConfigError, match=words):
        a_policy({"name": "asax", **parameters})


# ---------------------------------------------------------------- what applications take


def test_a_run_alone_becomes_the_history_of_its_application():
    cycles = Cycles("asax")
    app = application("user", "host", 1)
    for cpu_s, runs, mean in ((100.0, 1, 100.0), (200.0, 2, 150.0)):
        cycles.run(a_world([a_host(cpu_s=cpu_s)]))
        cycles.run(a_world([]), ended(("h0", 100, 500, Ending.COMPLETED)))
        history = history_of(cycles.state.learnt_by(NAME), app)
        assert (history.runs, history.cpu_s, history.run_s) == (runs, mean, 100.0)
        assert history.busy_cpus == mean / 100


def test_run_times_alone_have_a_deviation():
    cycles, app = Cycles("asax"), application("user", "host", 1)
    for run_s in (100, 140):
        cycles.run(a_world([a_host()]))
        cycles.run(a_world([]), ended(("h0", run_s, 500, Ending.COMPLETED)))
    history = history_of(cycles.state.learnt_by(NAME), app)
    assert (history.run_s, history.deviation_s) == (120.0, 20.0)


@pytest.mark.parametrize(
    ("running", "ending"),
    [
        ([a_host(), a_guest()], Ending.COMPLETED),
        ([a_host()], Ending.FAILED),
        ([a_host(measured_s=NOW_S - 90)], Ending.COMPLETED),
        ([a_host(cpu_s=-1.0)], Ending.COMPLETED),
    ],
)
def test_a_run_that_says_nothing_of_the_application_alone_teaches_nothing(running, ending):
    cycles = Cycles("asax")
    cycles.run(a_world(running))
    cycles.run(a_world([]), ended(("h0", 100, 500, ending)))
    assert history_of(cycles.state.learnt_by(NAME), application("user", "host", 1)) is None


def test_numbered_names_are_one_application():
    assert application("u", "blast7", 2) == application("u", "blast12", 2)
    assert application("u", "blast7", 2) != application("u", "blast7", 3)
    assert application("u", "blast7", 2) != application("v", "blast7", 2)
