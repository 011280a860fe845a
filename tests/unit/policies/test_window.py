# SPDX-License-Identifier: Apache-2.0
"""Windows: who starts at the end of a period, and who waits for the next."""

import dataclasses

import numpy as np
import pytest

from bridge.errors import ConfigError
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.workloads.system import pool_of
from bridge.model.job import Hold
from bridge.model.reasons import ReasonCode
from bridge.model.topology import regular
from bridge.papers.placement import window
from bridge.papers.placement.window import WindowPlanner, _candidates
from bridge.registry import build, parse_policy
from bridge.rpc.controller.announcements import wake_after_s
from bridge.safe_cycle.decider import Decider
from bridge.units import NEVER, UNPLANNED
from schedbridge_contracts.alike import assert_alike
from schedbridge_contracts.builders import a_job, a_running_job, a_snapshot, gantt
from schedbridge_contracts.crosses import each, seeds
from schedbridge_contracts.cycles import Memory, check, run
from schedbridge_contracts.workloads import random_workload
from schedbridge_contracts.worlds import random_world


def decide(snapshot, memory=None, order="waiting-periods", **parameters):
    policy = build(
        parse_policy(
            {"order": order, "plan": {"name": "window", **parameters}, "place": "best-fit"}
        )
    )
    plan = run(snapshot, memory or Memory(), policy, np.random.default_rng(0))
    assert check(snapshot, plan) == (), gantt(snapshot, plan)
    return plan


def starts(plan):
    return dict(zip((plan.job + 1).tolist(), plan.start_s.tolist(), strict=True))


def reason(plan, job):
    (row,) = np.flatnonzero(plan.job == job - 1)
    return plan.reasons[row]


class TestAtTheEndOfAPeriod:
    def test_who_does_not_fit_is_passed_over_and_nothing_is_kept_for_it(self):
        jobs = [a_job(4, submit_s=1), a_job(2, limit_s=10**6, submit_s=2)]
        running = [a_running_job(nodes=(0, 1), end_s=100)]
        plan = decide(a_snapshot(nodes=4, jobs=jobs, running=running, now_s=60)(), order="fcfs")
        assert starts(plan)[2] == 60  # although the first would start at 100 without it
        assert starts(plan)[1] == 60 + 10**6
        assert reason(plan, 1).code is ReasonCode.RESOURCES

    def test_as_many_as_allowed(self):
        jobs = [a_job(1), a_job(1), a_job(1)]
        plan = decide(a_snapshot(nodes=4, jobs=jobs, now_s=120)(), most_jobs=2)
        assert sorted(starts(plan).values()) == [120, 120, 180]
        assert reason(plan, 3).code is ReasonCode.PRIORITY
        assert "has its 2 jobs" in reason(plan, 3).text

    def test_first_come_first_served(self):
        jobs = [a_job(2), a_job(9), a_job(4, limit_s=50), a_job(1)]
        plan = decide(
            a_snapshot(nodes=4, jobs=jobs, now_s=7)(), order="fcfs", period_s=0, pass_over=False
        )
        assert starts(plan) == {1: 7, 2: NEVER, 3: 107, 4: UNPLANNED}  # nobody waits for the second
        assert reason(plan, 4).text == "waits for those before it to start"

    def test_tasks_of_an_array_count_each(self):
        jobs = [a_job(1, array_tasks=5, array_startable=5)]
        plan = decide(a_snapshot(nodes=4, jobs=jobs, now_s=120)(), most_jobs=2)
        assert plan.start_s.tolist() == [120, 120]

    def test_nobody_behind_the_window_is_told_a_start_without_depth(self):
        jobs = [a_job(4), a_job(4)]
        plan = decide(a_snapshot(nodes=4, jobs=jobs, now_s=60)(), depth=0)
        assert starts(plan) == {1: 60, 2: UNPLANNED}


class TestBetween:
    JOBS = (a_job(4, submit_s=61), a_job(2, submit_s=62), a_job(2, limit_s=70, submit_s=63))

    def test_the_next_window_is_announced_and_somebody_asks_again_then(self):
        running = [a_running_job(nodes=(0, 1), end_s=119)]
        snapshot = a_snapshot(nodes=4, jobs=self.JOBS, running=running, now_s=65)()
        plan = decide(snapshot)
        assert starts(plan) == {2: 120, 3: 120, 1: 220}
        assert reason(plan, 2).text.startswith("in the window at ")
        assert reason(plan, 1).text.startswith("no room in the window at ")
        assert wake_after_s(snapshot, plan, None, 0) == 55

    def test_what_runs_beyond_the_window_is_in_the_way(self):
        running = [a_running_job(nodes=(0, 1), end_s=121)]
        plan = decide(a_snapshot(nodes=4, jobs=self.JOBS, running=running, now_s=65)())
        assert starts(plan) == {2: 120, 3: 180, 1: UNPLANNED}

    def test_a_window_that_was_announced_opens_late(self):
        memory = Memory()
        assert starts(decide(a_snapshot(nodes=2, jobs=[a_job(2)], now_s=59)(), memory)) == {1: 60}
        assert starts(decide(a_snapshot(nodes=2, jobs=[a_job(2)], now_s=62)(), memory)) == {1: 62}
        # and once only
        assert starts(decide(a_snapshot(nodes=2, jobs=[a_job(2)], now_s=63)(), memory)) == {1: 120}

    def test_what_was_announced_is_all_that_a_restart_needs_to_know(self):
        memory = Memory()
        decide(a_snapshot(nodes=2, jobs=[a_job(2)], now_s=59)(), memory)
        saved = Memory(dict(memory.planned_start_s))
        assert starts(decide(a_snapshot(nodes=2, jobs=[a_job(2)], now_s=62)(), saved)) == {1: 62}
        others = Memory({"gone": 60})
        assert starts(decide(a_snapshot(nodes=2, jobs=[a_job(2)], now_s=62)(), others)) == {1: 120}

    def test_nobody_announced_nothing_late(self):
        memory = Memory()
        decide(a_snapshot(nodes=2, now_s=59)(), memory)
        assert starts(decide(a_snapshot(nodes=2, jobs=[a_job(2)], now_s=62)(), memory)) == {1: 120}

    def test_a_fixed_start_does_not_wait_for_a_window(self):
        jobs = [a_job(2, fixed=True, begin_s=70, limit_s=40), a_job(2), a_job(2)]
        plan = decide(a_snapshot(nodes=4, jobs=jobs, now_s=65)())
        assert starts(plan) == {1: 70, 2: 120, 3: 120}
        plan = decide(a_snapshot(nodes=4, jobs=jobs, now_s=70)())
        assert starts(plan)[1] == 70

    @pytest.mark.parametrize(("eligible_s", "start_s"), [(5, 120), (75, 120), (95, 180)])
    def test_leaf_switches_are_waited_for_from_when_the_job_could_run(self, eligible_s, start_s):
        job = a_job(4, switches=1, switches_wait_s=40, submit_s=5, eligible_s=eligible_s)
        world = a_snapshot(nodes=4, jobs=[job], now_s=100)()
        world = dataclasses.replace(world, topology=regular(4, 2, 4))
        assert starts(decide(world)) == {1: start_s}

    def test_a_begin_time_behind_the_window_is_not_its_business(self):
        jobs = [a_job(2, begin_s=130, hold=Hold.BEGIN_TIME), a_job(4, submit_s=3)]
        plan = decide(a_snapshot(nodes=4, jobs=jobs, now_s=65)())
        assert starts(plan) == {1: 220, 2: 120}

    def test_without_a_period_every_cycle_is_a_window(self):
        assert starts(decide(a_snapshot(nodes=2, jobs=[a_job(2)], now_s=65)(), period_s=0)) == {
            1: 65
        }


@pytest.mark.parametrize("now_s", [0, 7])
@each(seed=range(40))
def test_nobody_who_fits_is_left_out(seed, now_s):
    """A second window at once, behind the one that opened, would start nobody."""
    world = random_world(seed, arrays=False)
    plan = decide(world, order="fcfs")
    started = set(plan.job[plan.start_s == world.now_s].tolist())
    if world.now_s % 60:
        assert not started - set(np.flatnonzero(world.jobs.fixed).tolist())
        return
    behind = decide(world, order="fcfs", period_s=0)
    assert started == set(behind.job[behind.start_s == world.now_s].tolist())


def naive_windows(workload, period_s, maximum, pass_over):
    """When each job starts, as plainly as can be: on counts, at the ends of periods."""
    n, free, now_s = len(workload), workload.processors_total, 0
    start_s, ends, waiting, last = np.zeros(n, dtype=np.int64), [], [], 0
    while (start_s == 0).any():
        now_s += period_s
        free += sum(width for end_s, width in ends if end_s <= now_s)
        ends = [(end_s, width) for end_s, width in ends if end_s > now_s]
        while last < n and workload.submit_s[last] <= now_s:
            waiting.append(last)
            last += 1
        waiting.sort(
            key=lambda job: (
                int(workload.submit_s[job]) // period_s, workload.processors[job],
                workload.submit_s[job], job,
            )
        )  # fmt: skip
        taken = []
        for job in waiting:
            if len(taken) == maximum:
                break
            if workload.processors[job] <= free:
                free -= workload.processors[job]
                ends.append((now_s + workload.runtime_s[job], workload.processors[job]))
                start_s[job] = now_s
                taken.append(job)
            elif not pass_over:
                break
        waiting = [job for job in waiting if job not in taken]
    return start_s


@each(seed=range(6))
@pytest.mark.parametrize(("period_s", "maximum", "pass_over"), [(60, None, True), (30, 5, False)])
def test_a_simulated_stream_is_what_a_naive_one_is(seed, period_s, maximum, pass_over):
    workload = random_workload(seed, n_jobs=80, processors=16)
    parameters = {"period_s": period_s, "most_jobs": maximum, "pass_over": pass_over}
    policy = {
        "order": {"name": "waiting-periods", "period_s": period_s},
        "plan": {"name": "window", **parameters},
        "place": "sequential",
    }
    outcome = simulate(workload, pool_of(16), Decider(build(parse_policy(policy))).decide)
    expected = naive_windows(workload, period_s, maximum, pass_over)
    assert outcome.schedule.start_s.tolist() == expected.tolist()
    assert not outcome.refusals


class TestWaitingPeriods:
    def order(self, now_s, *jobs):
        snapshot = a_snapshot(nodes=9, jobs=list(jobs), now_s=now_s)()
        policy = build(parse_policy({"order": "waiting-periods"}))
        return (policy.order.order(snapshot) + 1).tolist()

    def test_more_periods_first_then_fewer_nodes_then_earlier(self):
        jobs = [
            a_job(1, submit_s=130), a_job(5, submit_s=59), a_job(3, submit_s=65),
            a_job(2, submit_s=119), a_job(2, submit_s=61),
        ]  # fmt: skip
        assert self.order(180, *jobs) == [2, 5, 4, 3, 1]

    def test_tasks_tell_jobs_apart_that_leave_their_nodes_open(self):
        assert self.order(60, a_job(1, tasks=30), a_job(1, tasks=4)) == [2, 1]

    def test_who_could_not_run_did_not_wait(self):
        held = a_job(1, submit_s=0, eligible_s=170)
        assert self.order(180, held, a_job(9, submit_s=100)) == [2, 1]


@pytest.mark.parametrize(
    ("stage", "key", "value"),
    [("order", "period_s", 0), ("plan", "period_s", -1), ("plan", "most_jobs", 0),
     ("plan", "depth", -1), ("plan", "array_depth", 0)],
)  # fmt: skip
def test_impossible_parameters_are_refused(stage, key, value):
    name = {"order": "waiting-periods", "plan": "window"}[stage]
    with pytest.raises(ConfigError, match=key):
        parse_policy({stage: {"name": name, key: value}})


def _ordinary(world):
    """Without the jobs that need the general way: arrays, held ones, those with a fixed start."""
    jobs = world.jobs
    keep = _candidates(jobs, world.now_s) & (jobs.array_tasks == 0) & ~jobs.fixed & ~jobs.no_place
    return dataclasses.replace(world, jobs=jobs.rows(keep))


@each(depth=[0, 1, 3], seed=seeds(60, whole=150))
def test_in_order_the_short_way_gives_the_plan_of_the_general_one(seed, depth):
    """Only the first rows are planned twice; reasons of all others are those of the first time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(window, "_FEW", 0)
        the_short_way_gives_the_plan_of_the_general_one(seed, depth, patch)


def the_short_way_gives_the_plan_of_the_general_one(seed, depth, patch):
    world = _ordinary(random_world(seed))
    policy = build(parse_policy({"order": "fcfs", "plan": {"name": "in-order", "depth": depth}}))
    used = []
    own = WindowPlanner._first_come_only
    patch.setattr(
        WindowPlanner, "_first_come_only", lambda *given: used.append(own(*given)) or used[-1]
    )
    short = run(world, Memory(), policy, np.random.default_rng(0))
    assert used == [len(world.jobs) > 0]
    patch.setattr(WindowPlanner, "_first_come_only", lambda *_: False)
    assert_alike(short, run(world, Memory(), policy, np.random.default_rng(0)))


def test_in_order_jobs_that_can_never_run_keep_nobody_from_starting():
    wide = [a_job(9) for _ in range(30)]
    jobs = [a_job(2), *wide, a_job(1), a_job(2), *wide, a_job(1)]
    running = [a_running_job(nodes=(0,), end_s=100)]
    plan = decide_in_order(a_snapshot(nodes=4, jobs=jobs, running=running, now_s=60)())
    assert starts(plan)[1] == starts(plan)[32] == 60
    assert starts(plan)[33] > 60
    assert starts(plan)[len(jobs)] == UNPLANNED
    assert reason(plan, 2).code is ReasonCode.NEVER
    assert reason(plan, len(jobs) - 2).code is ReasonCode.NEVER


def decide_in_order(snapshot):
    policy = build(parse_policy({"order": "fcfs", "plan": "in-order"}))
    plan = run(snapshot, Memory(), policy, np.random.default_rng(0))
    assert check(snapshot, plan) == ()
    return plan
