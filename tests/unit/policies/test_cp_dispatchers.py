# SPDX-License-Identifier: Apache-2.0
"""The dispatchers by constraint programming, from snapshot to plan."""

import dataclasses

import numpy as np
import pytest

from bridge.errors import ConfigError
from bridge.model.decisions.answer import (
    CRASH,
    LATE,
    NO_GAIN,
    SETTLED,
    SMALL,
    STARTING,
    TIMEOUT,
    Answer,
)
from bridge.model.job import Hold
from bridge.model.rules.site import NO_RULES
from bridge.model.topology import regular
from bridge.papers.dispatch.window import SEAT, choose
from bridge.planning.dispatch.objective import Objective
from bridge.planning.scheduler.book_planner import BookPlanner
from bridge.planning.scheduler.list_scheduler import ListScheduler
from bridge.policies.order.slowdown import Slowdown
from bridge.registry import PRESETS, build, parse_policy
from bridge.solver_process import ChildSolver
from bridge.units import NEVER
from schedbridge_contracts.builders import (
    a_job,
    a_node,
    a_reservation,
    a_running_job,
    a_snapshot,
    gantt,
)
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import Memory, check, plan_alone
from schedbridge_contracts.worlds import random_world

NAMES = ("pcp19", "hcp19", "pcp20")


def planned(name, snapshot, memory=None, **parameters):
    """By the dispatcher and by the conservative plan, in the same order on the same nodes."""
    memory = Memory() if memory is None else memory
    stages = {"order": "fcfs", "place": "sequential"}
    found = []
    for plan in ({"name": name, **parameters}, "conservative"):
        policy = build(parse_policy({**stages, "plan": plan}))
        order, preference = policy.order.order(snapshot), policy.place.preference(snapshot)
        rng = np.random.default_rng(1)
        mine = memory if plan != "conservative" else Memory()
        found.append(plan_alone(policy.plan, snapshot, order, preference, mine, rng))
    return found


def heterogeneous(seed):
    """Nodes with and without GPUs, memory that is scarce, jobs that share, and all that runs."""
    dice = np.random.default_rng(seed)
    nodes = [a_node(cpus=8, mem_mib=16, gpus=2 * (n % 2)) for n in range(6)]
    running = [
        a_running_job((n,), int(dice.integers(5, 120)), shared=True,
                      cpus=int(dice.integers(1, 8)), mem_mib=int(dice.integers(1, 12)),
                      gpus=int(n % 2 and dice.integers(0, 3)))
        for n in range(6)
    ]  # fmt: skip
    jobs = [
        a_job(limit_s=int(dice.choice((10, 60, 100, 600))), submit_s=-int(dice.integers(0, 300)),
              shared=True, tasks=int(dice.integers(1, 5)), max_nodes=6,
              cpus_per_task=int(dice.integers(1, 5)))
        if dice.random() < 0.5
        else a_job(nodes=int(dice.integers(1, 3)), shared=bool(dice.random() < 0.8),
                   limit_s=int(dice.choice((10, 60, 100, 600))), cpus=int(dice.integers(1, 8)),
                   submit_s=-int(dice.integers(0, 300)), mem_mib=int(dice.integers(1, 12)),
                   gpus=int(dice.integers(0, 3)))
        for _ in range(14)
    ]  # fmt: skip
    return a_snapshot(nodes=nodes, running=running, jobs=jobs)()


@pytest.mark.parametrize("name", NAMES)
@each(seed=range(12))
def test_plans_are_legal_and_never_worse_than_the_greedy_one(name, seed):
    snapshot, memory = heterogeneous(seed), Memory()
    plan, greedy = planned(name, snapshot, memory, effort=0.2)
    assert check(snapshot, plan) == (), gantt(snapshot, plan)
    goal = Objective("slowdown")
    cost = goal.of_plan(snapshot, plan)
    assert cost <= goal.of_plan(snapshot, greedy)
    done = memory.dispatched
    assert done.found == cost
    assert done.greedy == goal.of_plan(snapshot, greedy)
    assert (done.found < done.greedy) == (not done.fallback)


@pytest.mark.parametrize("name", NAMES)
def test_much_is_gained_where_there_is_much_to_gain(name):
    """A long job stands before three short ones."""
    jobs = [a_job(nodes=2, limit_s=1000), *(a_job(limit_s=10) for _ in range(3))]
    snapshot = a_snapshot(nodes=2, jobs=jobs, running=[a_running_job((1,), 20)])()
    memory = Memory()
    plan, _ = planned(name, snapshot, memory)
    assert plan.start_s.tolist() == [30, 0, 10, 20] or sorted(plan.start_s.tolist()[1:]) == [
        0, 10, 20
    ]  # fmt: skip
    assert memory.dispatched.fallback == ""
    assert plan.reasons[0].text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("objective", ["slowdown", "bounded-slowdown", "wait", "priority"])
def test_every_objective_is_kept_to(name, objective):
    snapshot = heterogeneous(3)
    plan, greedy = planned(name, snapshot, objective=objective, effort=0.1)
    goal = Objective(objective)
    assert goal.of_plan(snapshot, plan) <= goal.of_plan(snapshot, greedy)


class TestFallbacks:
    """The reason why the greedy plan is used is given."""

    @pytest.mark.parametrize("name", NAMES)
    def test_nothing_waits(self, name):
        memory = Memory()
        planned(name, a_snapshot(nodes=2, jobs=[a_job()])(), memory)
        assert memory.dispatched.fallback == SETTLED

    @pytest.mark.parametrize("name", NAMES)
    def test_no_job_can_be_said(self, name):
        memory = Memory()
        running = [a_running_job((0, 1), 50)]
        jobs = [a_job(deadline_s=500), a_job(nodes=1, max_nodes=2)]
        planned(name, a_snapshot(nodes=2, jobs=jobs, running=running)(), memory)
        assert memory.dispatched.fallback == SMALL

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("problem", [CRASH, STARTING, TIMEOUT])
    def test_the_solver_has_nothing(self, name, problem):
        memory = Memory(solver=Fake(Answer(None, problem=problem)))
        plan, greedy = planned(name, heterogeneous(1), memory)
        assert memory.dispatched.fallback == problem
        assert plan.start_s.tolist() == greedy.start_s.tolist()

    @pytest.mark.parametrize("name", NAMES)
    def test_the_budget_is_spent_before_the_solver_is_asked(self, name):
        memory = Memory(solver=Fake(Answer(None), elapsed_s=0.6))
        planned(name, heterogeneous(1), memory)
        assert memory.dispatched.fallback == LATE

    def test_no_gain(self):
        memory = Memory()
        running = [a_running_job((0,), 50)]
        snapshot = a_snapshot(nodes=1, jobs=[a_job()], running=running)()
        planned("pcp20", snapshot, memory, startable=False)
        assert memory.dispatched.fallback == NO_GAIN

    @pytest.mark.parametrize("name", NAMES)
    def test_no_job_could_start_now(self, name):
        memory = Memory()
        running = [a_running_job((0,), 50)]
        planned(name, a_snapshot(nodes=1, jobs=[a_job()], running=running)(), memory)
        assert memory.dispatched.fallback == SMALL
        assert memory.dispatched.gap is None


class Fake:
    """A solver that says what it was told to say."""

    def __init__(self, answer, elapsed_s=0.0):
        self.answer, self.requested, self._elapsed_s = answer, [], elapsed_s

    def warm_up(self):
        pass

    def begin(self):
        pass

    def elapsed_s(self):
        return self._elapsed_s

    def solve(self, ask):
        self.requested.append(ask)
        return self.answer


def test_the_solver_gets_what_is_left_of_the_budget():
    solver = Fake(Answer(None, problem=TIMEOUT), elapsed_s=0.1)
    planned("pcp20", heterogeneous(1), Memory(solver=solver), budget_ms=1000, effort=0.0)
    assert [ask.budget_s for ask in solver.requested] == [pytest.approx(0.92 - 0.1 - 1.5 * 0.1)]
    assert solver.requested[0].effort == 0


def test_a_budget_of_zero_needs_no_process():
    solver = Fake(Answer(None, problem=TIMEOUT))
    planned("pcp20", heterogeneous(1), Memory(solver=solver), budget_ms=0)
    assert solver.requested == []


@pytest.mark.parametrize("name", NAMES)
def test_a_dispatcher_solves_in_a_process_of_its_own(name):
    """The whole decision, on the hardest of these worlds; how long it takes is for benchmarks."""
    solver, snapshot = ChildSolver(), heterogeneous(7)
    try:
        solver.warm_up()
        solver.wait_ready(120)
        memory = Memory(solver=solver)
        plan, _ = planned(name, snapshot, memory, budget_ms=600_000, effort=0.1, startable=False)
        assert check(snapshot, plan) == ()
        assert memory.dispatched.jobs > 1
        assert memory.dispatched.fallback in ("", NO_GAIN)
    finally:
        solver.close()


def test_the_same_seed_gives_the_same_plan():
    for name in NAMES:
        plans = [planned(name, heterogeneous(2), budget_ms=0, effort=0.1)[0] for _ in range(2)]
        assert plans[0].start_s.tolist() == plans[1].start_s.tolist()
        assert plans[0].nodes.tolist() == plans[1].nodes.tolist()


@each(seed=range(30))
@pytest.mark.parametrize("name", NAMES)
def test_worlds_with_chunks_of_several_kinds_are_planned(name, seed):
    snapshot = random_world(seed, chunks=True)
    plan, _ = planned(name, snapshot, effort=0.05)
    assert check(snapshot, plan) == ()


def test_what_is_overtaken_is_told_so():
    jobs = [a_job(nodes=2, limit_s=1000), *(a_job(nodes=2, limit_s=10) for _ in range(3))]
    plan, greedy = planned("pcp20", a_snapshot(nodes=2, jobs=jobs)())
    assert greedy.start_s[0] == 0 < plan.start_s[0]
    assert "jobs that gain more" in plan.reasons[0].text


class TestGap:
    """It is stated only where it is one."""

    @pytest.mark.parametrize("name", ["pcp19", "hcp19"])
    def test_of_what_is_proved(self, name):
        jobs = [a_job(nodes=2, limit_s=1000), *(a_job(limit_s=10) for _ in range(3))]
        memory = Memory()
        planned(name, a_snapshot(nodes=2, jobs=jobs)(), memory, effort=5.0)
        assert memory.dispatched.fallback == ""
        assert memory.dispatched.gap == pytest.approx(0.0, abs=1e-9)

    def test_positions_prove_nothing_of_cores(self):
        jobs = [a_job(nodes=2, limit_s=1000), *(a_job(limit_s=10) for _ in range(3))]
        memory = Memory()
        planned("pcp20", a_snapshot(nodes=2, jobs=jobs)(), memory, effort=5.0)
        assert memory.dispatched.fallback == ""
        assert memory.dispatched.gap is None

    @pytest.mark.parametrize("name", NAMES)
    def test_of_tasks_that_could_be_spread_otherwise_nothing_is_known(self, name):
        """-N1-2 -n5: the greedy layout is one of several."""
        nodes = [a_node(cpus=4), a_node(cpus=4)]
        jobs = [a_job(nodes=1, limit_s=100, shared=True, cpus=4), a_job(limit_s=50),
                a_job(nodes=1, max_nodes=2, tasks=5, shared=True, limit_s=100)]  # fmt: skip
        memory = Memory()
        planned(name, a_snapshot(nodes=nodes, jobs=jobs)(), memory, effort=5.0, startable=False)
        assert memory.dispatched.jobs == 3
        assert memory.dispatched.gap is None

    @pytest.mark.parametrize("name", NAMES)
    def test_who_waits_for_a_switch_is_not_settled(self, name):
        """Its class of nodes opens in a minute; that is not the earliest that it may start."""
        running = [a_running_job((node,), 1000) for node in (0, 2)]
        job = a_job(nodes=2, switches=1, switches_wait_s=60)
        snapshot = dataclasses.replace(
            a_snapshot(nodes=4, jobs=[job], running=running)(), topology=regular(4, 2)
        )
        memory = Memory()
        plan, _ = planned(name, snapshot, memory, startable=False)
        assert plan.start_s.tolist() == [60]
        assert memory.dispatched.fallback == NO_GAIN
        assert memory.dispatched.gap is None

    @pytest.mark.parametrize("name", NAMES)
    def test_settled_is_proved(self, name):
        jobs = [a_job(nodes=2, begin_s=50, hold=Hold.BEGIN_TIME), a_job(limit_s=10)]
        memory = Memory()
        planned(name, a_snapshot(nodes=2, jobs=jobs)(), memory, startable=False)
        assert (memory.dispatched.fallback, memory.dispatched.gap) == (SETTLED, 0.0)


class TestReach:
    """How large a window is follows the time that there is."""

    @pytest.mark.parametrize("name", NAMES)
    def test_more_time_more_jobs(self, name):
        running = [a_running_job((0, 1, 2, 3), 30)]
        jobs = [a_job(limit_s=20 + n) for n in range(120)]
        snapshot = a_snapshot(nodes=4, jobs=jobs, running=running)()
        sizes = []
        for budget_ms in (100, 1000, 10_000):
            solver = Fake(Answer(None, problem=TIMEOUT))
            memory = Memory(solver=solver)
            planned(name, snapshot, memory, budget_ms=budget_ms, effort=0.0, startable=False)
            sizes.append(memory.dispatched.jobs)
        assert sizes == sorted(set(sizes))
        assert sizes[-1] <= 100

    @pytest.mark.parametrize("name", NAMES)
    def test_a_clock_that_has_run_leaves_less(self, name):
        sizes = []
        for elapsed_s in (0.0, 0.05):
            memory = Memory(solver=Fake(Answer(None, problem=TIMEOUT), elapsed_s=elapsed_s))
            jobs = [a_job(limit_s=20 + n) for n in range(120)]
            snapshot = a_snapshot(nodes=4, jobs=jobs, running=[a_running_job((0, 1, 2, 3), 30)])()
            planned(name, snapshot, memory, budget_ms=500, effort=0.0, startable=False)
            sizes.append(memory.dispatched.jobs)
        assert sizes[1] < sizes[0]

    @pytest.mark.parametrize("name", NAMES)
    def test_a_greedy_plan_that_takes_the_budget_is_all_that_is_made(self, name):
        """Not even the window is looked for: all of it would come on top."""
        memory = Memory(solver=Fake(Answer(None), elapsed_s=0.2))
        planned(name, heterogeneous(1), memory, budget_ms=500)
        assert (memory.dispatched.fallback, memory.dispatched.jobs) == (LATE, 0)


class TestParameters:
    @pytest.mark.parametrize(
        "wrong",
        [
            {"budget_ms": 0, "effort": 0}, {"budget_ms": -1}, {"most_jobs": 0},
            {"objective": "fame"}, {"array_depth": 0}, {"ageing_s": 0},
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("name", NAMES)
    def test_impossible_ones_are_refused(self, name, wrong):
        with pytest.raises(ConfigError):
            parse_policy({"plan": {"name": name, **wrong}})

    @pytest.mark.parametrize("name", NAMES)
    def test_presets_are_the_papers(self, name):
        """Largest slowdown first, jobs that could start now, a hundred of them at most."""
        policy = build(PRESETS[name])
        assert policy.plan.name == name
        assert isinstance(policy.order, Slowdown)
        assert (policy.plan.startable, policy.plan.most_jobs) == (True, 100)
        assert policy.plan.objective == "slowdown"


class TestWindow:
    """What the models are given of a snapshot."""

    def window(self, snapshot, **bounds):
        policy = build(parse_policy({"order": "fcfs", "plan": "conservative"}))
        order, preference = policy.order.order(snapshot), policy.place.preference(snapshot)
        scheduler = ListScheduler(snapshot, order, preference, policy.plan.conditions(NO_RULES))
        planner = BookPlanner(scheduler.rows, preference, lowered=scheduler._lowered)
        everyone = np.arange(len(scheduler.rows.plannable))
        planner.plan(everyone, not_before=None, latest=np.full(len(everyone), NEVER - 1))
        return choose(
            planner.planned, preference.rank, **{"most_jobs": 10, "max_units": 50} | bounds
        )

    def test_shared_jobs_have_amounts_divided_by_what_divides_them_all(self):
        nodes = [a_node(cpus=4, mem_mib=4096), a_node(cpus=4, mem_mib=2048, gpus=1)]
        jobs = [a_job(shared=True, cpus=2, mem_mib=1024), a_job(shared=True, cpus=1, gpus=1)]
        instance = self.window(a_snapshot(nodes=nodes, jobs=jobs)()).instance
        assert instance.resources == ("cpus", "mem_mib", "gpu")
        assert instance.capacity.tolist() == [[4, 4, 0], [4, 2, 1]]
        assert [job.units[0].want for job in instance.jobs] == [(2, 1, 0), (1, 0, 1)]
        assert [job.units[0].nodes for job in instance.jobs] == [(0, 1), (1,)]

    def test_running_jobs_hold_what_they_have_for_at_least_a_second(self):
        running = [
            a_running_job((0,), 70, shared=True, cpus=3), a_running_job((1,), -5, shared=True)
        ]  # fmt: skip
        snapshot = a_snapshot(nodes=2, jobs=[a_job(shared=True, cpus=2)], running=running)()
        used = self.window(snapshot).instance.used
        assert [(u.start_s, u.end_s, u.amount) for u in used[0]] == [(0, 70, (3,))]
        assert [(u.start_s, u.end_s, u.amount) for u in used[1]] == [(0, 1, (1,))]

    def test_whole_nodes_are_seats(self):
        running = [a_running_job((0,), 70, shared=True)]
        snapshot = a_snapshot(nodes=2, jobs=[a_job(nodes=2)], running=running)()
        instance = self.window(snapshot).instance
        assert instance.resources == (SEAT,)
        assert instance.capacity.tolist() == [[1], [1]]
        assert instance.used[0][0].amount == (1,)

    def test_whole_and_shared_nodes_together(self):
        jobs = [a_job(nodes=1), a_job(shared=True, cpus=2), a_job(shared=True, cpus=2)]
        instance = self.window(a_snapshot(nodes=2, jobs=jobs)()).instance
        assert instance.resources == ("cpus", SEAT)
        assert instance.capacity[0].tolist() == [2, 3]
        assert [job.units[0].want for job in instance.jobs] == [(0, 3), (1, 1), (1, 1)]

    def test_maintenance_closes_nodes(self):
        snapshot = a_snapshot(
            nodes=2, jobs=[a_job(shared=True, cpus=4)], reservations=[a_reservation((1,), 30, 90)]
        )()
        used = self.window(snapshot).instance.used
        assert used[0] == ()
        assert [(u.start_s, u.end_s, u.amount) for u in used[1]] == [(30, 90, (1,))]

    def test_what_cannot_be_said_keeps_its_place(self):
        jobs = [a_job(limit_s=100, deadline_s=400), a_job(limit_s=50), a_job(limit_s=70)]
        window = self.window(a_snapshot(nodes=1, jobs=jobs)())
        assert window.rows == (1, 2)
        assert [(u.start_s, u.end_s) for u in window.instance.used[0]] == [(0, 100)]
        assert [job.place_s for job in window.instance.jobs] == [100, 150]

    def test_the_window_ends_before_it_grows_too_large(self):
        jobs = [a_job(nodes=2), a_job(nodes=4), a_job(nodes=1), a_job(nodes=1)]
        snapshot = a_snapshot(nodes=4, jobs=jobs)()
        assert self.window(snapshot, most_jobs=2).rows == (0, 1)
        assert self.window(snapshot, max_units=6).rows == (0, 1)
        assert self.window(snapshot, max_units=3).rows == (0, 2)  # too large for any window

    def test_those_that_could_start_now_are_planned_around_the_others(self):
        running = [a_running_job((0, 1), 60), a_running_job((2,), 60, shared=True, cpus=3)]
        jobs = [
            a_job(nodes=2), a_job(shared=True, cpus=2), a_job(shared=True, cpus=1), a_job(nodes=1),
            a_job(begin_s=5, hold=Hold.BEGIN_TIME), a_job(shared=True, cpus=4),
            a_job(shared=True, gpus=1), a_job(shared=True, tasks=5, max_nodes=4),
            a_job(shared=True, tasks=6, max_nodes=4), a_job(deadline_s=900), a_job(shared=True),
        ]  # fmt: skip
        snapshot = a_snapshot(nodes=4, jobs=jobs, running=running)()
        window = self.window(snapshot, startable=True)
        assert window.rows == (1, 2, 3, 5, 7, 10)
        assert window.fixed == (9,)

    def test_tasks_are_units(self):
        jobs = [a_job(shared=True, tasks=3, max_nodes=3, cpus_per_task=2, max_tasks_per_node=2)]
        (job,) = self.window(a_snapshot(nodes=2, jobs=jobs)()).instance.jobs
        assert len(job.units) == 3
        assert (job.scatter, job.max_per_node) == (False, (2,))
        assert job.place == (0, 0, 1)
