# SPDX-License-Identifier: Apache-2.0
"""The plan stage `search`: never worse than the given order, and nobody starves."""

import itertools

import numpy as np
import pytest

from bridge.errors import ConfigError
from bridge.lab.sim.runs.engine import simulate
from bridge.lab.sim.workloads.system import pool_of
from bridge.model.decisions.answer import LATE
from bridge.model.layers import Layers
from bridge.model.learnt import Learnt
from bridge.model.rules.site import NO_RULES
from bridge.planning.dispatch.cp_sat import InProcess
from bridge.planning.dispatch.objective import NAMES, Objective
from bridge.planning.scheduler.list_scheduler import ListScheduler
from bridge.policies.plan.backfill import Backfill
from bridge.policies.plan.search import Search
from bridge.ports import Preference, Selection
from bridge.registry import build, parse_policy
from bridge.safe_cycle.decider import Decider
from bridge.units import NEVER, UNPLANNED
from schedbridge_contracts.builders import a_job, a_running_job, a_snapshot, gantt
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import Memory, plan_alone
from schedbridge_contracts.workloads import a_workload
from schedbridge_contracts.worlds import random_world

EFFORT = {"budget_ms": 0, "effort": 20_000}


def preference(snapshot):
    return Preference(Selection.BEST_FIT, np.zeros(len(snapshot.nodes), dtype=np.int32))


def planned(snapshot, search, memory=None):
    order = np.argsort(snapshot.jobs.submit_s, kind="stable")
    memory = memory if memory is not None else Memory()
    rng = np.random.default_rng(1)
    return plan_alone(search, snapshot, order, preference(snapshot), memory, rng)


def judged(snapshot, plan, goal):
    missing = int(((plan.start_s == NEVER) | (plan.start_s == UNPLANNED)).sum())
    return missing, goal.of_plan(snapshot, plan)


def start_of(snapshot, plan, name):
    row = next(r for r in range(len(plan)) if snapshot.jobs.id[plan.job[r]] == name)
    return int(plan.start_s[row])


@pytest.mark.parametrize("objective", NAMES)
@each(seed=range(12))
def test_never_worse_than_the_given_order(objective, seed):
    snapshot = random_world(seed, chunks=seed % 2 == 0)
    goal = Objective(objective)
    search = Search(objective=objective, ageing_s=None, most_wait_s=None, **EFFORT)
    order = np.argsort(snapshot.jobs.submit_s, kind="stable")
    given = plan_alone(Backfill(), snapshot, order, preference(snapshot), Memory())
    memory = Memory()
    plan = planned(snapshot, search, memory)
    assert judged(snapshot, plan, goal) <= judged(snapshot, given, goal), gantt(snapshot, plan)
    assert memory.dispatched.found <= memory.dispatched.greedy
    assert judged(snapshot, plan, goal)[1] == pytest.approx(memory.dispatched.found)


def test_few_jobs_get_the_best_order_there_is():
    jobs = [a_job(nodes=n, limit_s=s) for n, s in ((3, 50), (1, 200), (2, 30), (4, 10), (2, 90))]
    snapshot = a_snapshot(nodes=4, jobs=jobs, running=[a_running_job((0, 1), 40)])()
    goal = Objective("slowdown")
    search = Search(ageing_s=None, **EFFORT)
    scheduler = ListScheduler(
        snapshot, np.arange(5), preference(snapshot), Search().conditions(NO_RULES), array_depth=1
    )
    best = min(
        goal.costs(
            snapshot, np.arange(5), scheduler.schedule(np.array(order)).start_s,
            snapshot.jobs.time_limit_s,
        ).sum()
        for order in itertools.permutations(range(5))
    )  # fmt: skip
    memory = Memory()
    plan = planned(snapshot, search, memory)
    assert goal.of_plan(snapshot, plan) == pytest.approx(best)
    assert memory.dispatched.gap >= 0


def test_a_queue_that_starts_at_once_is_settled_without_a_search():
    snapshot = a_snapshot(nodes=4, jobs=[a_job(nodes=2), a_job(nodes=2)])()
    memory = Memory()
    assert len(planned(snapshot, Search(), memory).starts_now) == 2
    assert memory.dispatched.fallback == "settled"
    assert memory.dispatched.gap == 0.0


class SlowClock(InProcess):
    """Every look at it takes 30 ms."""

    def __init__(self):
        self._passed_s = itertools.count(step=0.03)

    def elapsed_s(self):
        return next(self._passed_s)

    def alarm(self, left_s):
        raise AssertionError("nothing is left to search in")


def test_a_budget_that_the_given_plan_uses_up_leaves_nothing_to_search():
    lengths_s = (300, 200, 100)
    snapshot = a_snapshot(nodes=1, jobs=[a_job(nodes=1, limit_s=s) for s in lengths_s])()
    memory = Memory(solver=SlowClock())
    plan = planned(snapshot, Search(budget_ms=50), memory)
    given = planned(snapshot, Backfill())
    assert memory.dispatched.fallback == LATE
    assert plan.start_s.tolist() == given.start_s.tolist()


def test_overdue_jobs_go_first_oldest_first():
    jobs = [
        a_job(nodes=4, limit_s=1000, submit_s=0, id="oldest"),
        a_job(nodes=4, limit_s=900, submit_s=50, id="old"),
        a_job(nodes=4, limit_s=10, submit_s=950, id="young"),
    ]
    snapshot = a_snapshot(nodes=4, jobs=jobs, now_s=1000)()
    free = planned(snapshot, Search(ageing_s=None, most_wait_s=None, **EFFORT))
    assert start_of(snapshot, free, "young") == 1000
    bound = planned(snapshot, Search(ageing_s=None, most_wait_s=900, **EFFORT))
    starts = [start_of(snapshot, bound, name) for name in ("oldest", "old", "young")]
    assert starts == [1000, 2000, 2900]


def test_ageing_lets_a_long_job_overtake_in_the_end():
    def first(ageing_s):
        jobs = [
            a_job(nodes=4, limit_s=1000, submit_s=0, id="long"),
            a_job(nodes=4, limit_s=500, submit_s=7900, id="short"),
        ]
        snapshot = a_snapshot(nodes=4, jobs=jobs, now_s=8000)()
        plan = planned(snapshot, Search(ageing_s=ageing_s, most_wait_s=None, **EFFORT))
        return snapshot.jobs.id[plan.job[plan.starts_now[0]]]

    assert first(None) == "short"
    assert first(1000) == "long"


def test_tasks_of_an_array_stay_together_and_all_are_planned():
    jobs = [
        a_job(nodes=2, limit_s=100, array_tasks=3, array_startable=3, id="array"),
        a_job(nodes=2, limit_s=5, id="a"),
        a_job(nodes=1, limit_s=20, id="b"),
    ]
    snapshot = a_snapshot(nodes=2, jobs=jobs, running=[a_running_job((0,), 10)])()
    plan = planned(snapshot, Search(ageing_s=None, **EFFORT))
    assert (plan.start_s >= 0).all()
    assert sorted(plan.job.tolist()) == [0, 0, 0, 1, 2]
    assert start_of(snapshot, plan, "a") < plan.start_s[plan.job == 0].min()


def test_jobs_behind_the_window_are_planned_behind_it():
    jobs = [a_job(nodes=4, limit_s=100 - n) for n in range(6)]
    snapshot = a_snapshot(nodes=4, jobs=jobs)()
    plan = planned(snapshot, Search(ageing_s=None, window=3, **EFFORT))
    start = np.empty(6, dtype=np.int64)
    start[plan.job] = plan.start_s
    assert np.argsort(start).tolist() == [2, 1, 0, 3, 4, 5]


def test_the_same_seed_gives_the_same_plan():
    snapshot = random_world(8)
    first, second = planned(snapshot, Search(**EFFORT)), planned(snapshot, Search(**EFFORT))
    assert first.start_s.tolist() == second.start_s.tolist()
    assert first.nodes.tolist() == second.nodes.tolist()


def test_no_job_starves_where_short_ones_never_end():
    """One job as wide as the machine, among short narrow ones that never leave it idle."""
    narrow = [(1 + 50 * n, 60, 60, 3) for n in range(160)]
    workload = a_workload([narrow[0], narrow[1], (60, 600, 600, 4), *narrow[2:]], processors=4)

    def wait_s(most_wait_s):
        settings = {"ageing_s": None, "most_wait_s": most_wait_s, **EFFORT}
        spec = parse_policy({"preset": "search", "plan": {"name": "search", **settings}})
        outcome = simulate(workload, pool_of(4), Decider(build(spec)).decide)
        return int(outcome.schedule.start_s[2] - outcome.schedule.submit_s[2])

    assert wait_s(None) > 6000
    assert wait_s(3000) <= 3000 + 60 + 50


def test_a_promise_is_that_of_the_first_cycle_and_is_forgotten_when_the_job_has_gone():
    """The base plan gets worse when a node fails; the promise does not follow it."""
    jobs = [a_job(nodes=4, limit_s=900, submit_s=0, id="long")]
    short = [a_job(nodes=4, limit_s=50, submit_s=n, id=f"s{n}") for n in range(1, 5)]
    search = Search(ageing_s=None, most_wait_s=None, harm_factor=1, harm_s=60, **EFFORT)
    memory = Memory()
    running = [a_running_job((0, 1, 2, 3), 100)]
    first = a_snapshot(nodes=4, jobs=jobs, running=running, now_s=10)()
    plan = planned(first, search, memory)
    promise_s = start_of(first, plan, "long")
    assert memory.planned_start_s == {"long": promise_s}
    later = [a_running_job((0, 1, 2, 3), 600)]
    second = a_snapshot(nodes=4, jobs=jobs + short, running=later, now_s=20)()
    plan = planned(second, search, memory)
    assert memory.planned_start_s["long"] == promise_s
    assert start_of(second, plan, "long") == 600  # its bound has passed: no later than this
    free = Search(ageing_s=None, most_wait_s=None, **EFFORT)
    plan = planned(second, free, forgetful := Memory())
    assert start_of(second, plan, "long") == 800
    assert not forgetful.planned_start_s
    planned(a_snapshot(nodes=4, jobs=short, now_s=30)(), search, memory)
    assert "long" not in memory.planned_start_s


def test_a_bound_lets_as_many_pass_as_it_allows():
    jobs = [
        a_job(nodes=4, limit_s=900, submit_s=0, id="long"),
        *(a_job(nodes=4, limit_s=50, submit_s=1, id=f"s{n}") for n in range(4)),
    ]
    running = [a_running_job((0, 1, 2, 3), 100)]
    snapshot = a_snapshot(nodes=4, jobs=jobs, running=running, now_s=10)()

    def start_s(**harm):
        plan = planned(snapshot, Search(ageing_s=None, most_wait_s=None, **harm, **EFFORT))
        return start_of(snapshot, plan, "long")

    given_s = start_s(harm_factor=0)
    assert start_s() == given_s + 200
    assert start_s(harm_factor=1, harm_s=110) == given_s + 100


def with_account(longest_s, long_weight):
    """What `search` carries when jobs of over an hour weigh this, and others 1."""
    weights = [1, 1, 1, 1, 1, long_weight, 1, 1]
    totals = [0, 0, 0, longest_s, *(weight << 20 for weight in weights)]
    return Memory(learnt={"search": Learnt(known=Layers({"*": totals}))})


def test_jobs_of_a_class_with_more_weight_go_first():
    jobs = [
        a_job(nodes=4, limit_s=5000, submit_s=0, id="long"),
        a_job(nodes=4, limit_s=50, submit_s=0, id="short"),
    ]
    running = [a_running_job((0, 1, 2, 3), 100)]
    snapshot = a_snapshot(nodes=4, jobs=jobs, running=running, now_s=10)()
    settings = {"objective": "wait", "ageing_s": None, "most_wait_s": None, **EFFORT}
    for weight, factor, first in ((1, 0.9, "short"), (200, 0.9, "long"), (200, None, "short")):
        memory = with_account(0, weight)
        plan = planned(snapshot, Search(class_factor=factor, **settings), memory)
        assert start_of(snapshot, plan, first) == 100, (weight, factor)


def test_jobs_that_wait_as_long_as_any_under_easy_go_first():
    jobs = [
        a_job(nodes=4, limit_s=900, submit_s=0, id="old"),
        a_job(nodes=4, limit_s=50, submit_s=19_000, id="short"),
    ]
    running = [a_running_job((0, 1, 2, 3), 20_100)]
    snapshot = a_snapshot(nodes=4, jobs=jobs, running=running, now_s=20_000)()
    settings = {"objective": "wait", "ageing_s": None, **EFFORT}
    for longest_s, factor, most_wait_s, first in (
        (30_000, 1, None, "short"),
        (19_000, 1, None, "old"),
        (30_000, 0.5, None, "old"),
        (0, 1, None, "old"),  # at least 4 h
        (30_000, 1, 18_000, "old"),  # the shorter of both
        (19_000, None, None, "short"),
    ):
        search = Search(longest_factor=factor, most_wait_s=most_wait_s, **settings)
        plan = planned(snapshot, search, with_account(longest_s, 1))
        assert start_of(snapshot, plan, first) == 20_100, (longest_s, factor, most_wait_s)


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"objective": "speed"}, "objective"),
        ({"ageing_s": 0}, "ageing_s"),
        ({"most_wait_s": -1}, "most_wait_s"),
        ({"budget_ms": 0, "effort": 0}, "budget_ms"),
        ({"effort": -1}, "effort"),
        ({"window": 0}, "window"),
        ({"array_depth": 0}, "array_depth"),
        ({"power": 0.5}, "power"),
        ({"power": 1.2}, "power"),
        ({"harm_factor": -0.1}, "harm_factor"),
        ({"harm_factor": float("nan")}, "harm_factor"),
        ({"harm_s": -1}, "harm_s"),
        ({"class_factor": 0}, "class_factor"),
        ({"class_factor": float("nan")}, "class_factor"),
        ({"longest_factor": 101}, "longest_factor"),
    ],
)
def test_impossible_settings_are_refused(settings, key):
    with pytest.raises(ConfigError) as caught:
        Search(**settings)
    assert caught.value.key == key
