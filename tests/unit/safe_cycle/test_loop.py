# SPDX-License-Identifier: Apache-2.0
"""Saboteurs: whatever a policy does, the cluster gets a legal plan and a note."""

import contextlib
import dataclasses
import queue
import sys
import threading

import numpy as np
import pytest

from bridge.errors import Overtime, PolicyError
from bridge.model.rules.site import NO_RULES
from bridge.ports import Planned
from bridge.registry import PRESETS, build, parse_policy
from bridge.safe_cycle import watchdog
from bridge.safe_cycle.decider import PATIENCE_S, Decider
from bridge.safe_cycle.watchdog import Watchdog
from schedbridge_contracts.builders import a_job, a_running_job, a_snapshot
from schedbridge_contracts.cycles import check


class Crashes:
    def plan(self, *_):
        raise ZeroDivisionError("oops")


class GivesUp:
    def plan(self, *_):
        raise PolicyError("tired", "no plan today")


class Oversubscribes:
    """Starts everything now on node 0."""

    def plan(self, snapshot, order, preference, context):
        planned = build(parse_policy("conservative")).plan.plan(
            snapshot, order, preference, context
        )
        plan = planned.plan
        return Planned(
            dataclasses.replace(
                plan,
                start_s=np.zeros_like(plan.start_s),
                end_s=np.full_like(plan.end_s, 100),
                nodes=np.zeros_like(plan.nodes),
            )
        )


class LosesJobs:
    def plan(self, snapshot, order, preference, context):
        return build(parse_policy("conservative")).plan.plan(
            snapshot, order[:1], preference, context
        )


class Hangs:
    """Never returns, and counts how often it was asked; its watchdog interrupts it at once."""

    def __init__(self, dog):
        self.calls, self.dog = 0, dog

    def plan(self, *_):
        self.calls += 1
        this, started = threading.get_ident(), []

        def interrupt():
            while not started:  # an exception within `Thread.start` would corrupt its state
                pass
            self.dog.interrupt(this)

        threading.Thread(target=interrupt).start()
        started.append(True)
        while True:
            pass


def test_a_stage_that_never_returns_is_interrupted():
    snapshot = a_snapshot(nodes=2, jobs=[a_job(), a_job()])()
    dog = Watchdog(3600.0)
    hangs = Hangs(dog)
    policy = dataclasses.replace(build(parse_policy("easy")), plan=hangs)
    decider = Decider(policy, guard=dog)
    for requested in (1, 1, 1, 2, 2, 2, 2, 2, 3):  # it rests for 2 cycles, then for 4
        plan = decider.decide(snapshot)
        assert check(snapshot, plan) == ()
        assert len(plan.starts_now) == 2
        assert "it was interrupted" in plan.notes[-1]
        assert hangs.calls == requested
    decider.exchange(build(parse_policy("easy")))
    assert decider.decide(snapshot).notes == ()


def test_guards_that_follow_each_other_share_a_thread():
    dog = Watchdog(3600.0)
    with dog:
        watching = threading.active_count()
    for _ in range(20):
        with dog:
            assert threading.active_count() == watching


def test_a_guard_is_held_to_its_own_time_not_to_that_of_one_before(monkeypatch):
    now_s, naps, go_on = [0.0], queue.Queue(), threading.Semaphore(0)

    def sleep(nap_s):
        naps.put(nap_s)
        go_on.acquire()

    monkeypatch.setattr(watchdog, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(watchdog, "sleep", sleep)
    dog = Watchdog(10.0)
    with dog:
        assert naps.get() == 10.0
    now_s[0] = 8.0
    with dog:
        now_s[0] = 10.0
        go_on.release()
        assert naps.get() == 8.0  # it is not struck for the one before

    def hang():
        with dog:
            now_s[0] = 20.0
            go_on.release()
            while True:
                pass

    with pytest.raises(Overtime):
        hang()


def test_a_watchdog_that_came_late_strikes_nobody():
    for _ in range(200):
        with contextlib.suppress(Overtime), Watchdog(0.0):
            pass
        sum(range(100))  # where it would strike
    # Nor is the interpreter left looking for it: under a trace it would never come back.
    before = sys.gettrace()
    sys.settrace(lambda *_: None)
    try:
        dataclasses.replace(NO_RULES)
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("saboteur", [Crashes(), GivesUp(), Oversubscribes(), LosesJobs()])
def test_a_saboteur_is_replaced_for_the_cycle(saboteur):
    snapshot = a_snapshot(
        nodes=2, jobs=[a_job(nodes=2), a_job()], running=[a_running_job((0,), 50)]
    )()
    decider = Decider(dataclasses.replace(build(parse_policy("easy")), plan=saboteur))
    plan = decider.decide(snapshot)
    assert check(snapshot, plan) == ()
    assert decider.failures == 1
    assert plan.notes
    assert plan.start_s.tolist() == [50, 150]


class Slow:
    """Fails with every fourth job; every attempt costs so much work, and nothing else is time."""

    def __init__(self, cost_s):
        self.cost_s, self.spent_s, self.attempts = cost_s, 0.0, 0

    def plan(self, snapshot, order, preference, context):
        self.attempts += 1
        self.spent_s += self.cost_s
        assert not any(int(job_id) % 4 == 0 for job_id in snapshot.jobs.id)
        return build(parse_policy("easy")).plan.plan(snapshot, order, preference, context)


def after_one_cycle(slow):
    snapshot = a_snapshot(nodes=8, jobs=[a_job(id=str(at)) for at in range(64)])()
    decider = Decider(
        dataclasses.replace(build(parse_policy("easy")), plan=slow), clock=lambda: slow.spent_s
    )
    plan = decider.decide(snapshot)
    assert check(snapshot, plan) == ()
    assert len(plan.starts_now) == 8
    return plan


@pytest.mark.parametrize("cost_s", [0.1, 0.5, 3.0])
def test_a_slow_saboteur_is_left_when_its_time_is_up(cost_s):
    slow, tireless = Slow(cost_s), Slow(0.0)
    assert after_one_cycle(slow).policy == "slurm-like"
    # The first attempt, those that fit into the time, and those that say what to do without.
    assert slow.attempts <= 1 + PATIENCE_S / cost_s + 6
    assert after_one_cycle(tireless).policy == "easy"
    assert tireless.attempts > 60  # so much is left undone


def who_is_first(between):
    """Which of two jobs starts first: one that was announced, or a later one of more priority.

    Args:
        between: what is done to the decider between their cycles.
    """
    running = [a_running_job((0, 1), 50)]
    announced = a_job(2, id="announced", priority=1)
    decider = Decider(build(PRESETS["openccs"]))
    decider.decide(a_snapshot(nodes=2, jobs=[announced], running=running)())
    between(decider)
    jobs = [announced, a_job(2, id="newcomer", priority=9)]
    snapshot = a_snapshot(nodes=2, jobs=jobs, running=running)()
    plan = decider.decide(snapshot)
    return snapshot.jobs.id[plan.job[np.argmin(plan.start_s)]]


def test_what_was_announced_binds_only_as_long_as_its_policy_is_in_force():
    def exchange(*policies):
        return lambda decider: [decider.exchange(build(PRESETS[name])) for name in policies]

    assert who_is_first(exchange()) == "announced"
    assert who_is_first(exchange("openccs")) == "announced"
    assert who_is_first(exchange("easy", "openccs")) == "newcomer"


@pytest.mark.parametrize("saboteur", [Crashes(), GivesUp(), Oversubscribes(), LosesJobs()])
def test_a_cycle_that_fails_leaves_what_was_announced(saboteur):
    def fail(decider):
        good = decider.policy
        decider.policy = dataclasses.replace(good, plan=saboteur)
        jobs = [a_job(2, id="announced", priority=1), a_job(2, id="other")]
        decider.decide(a_snapshot(nodes=2, jobs=jobs, running=[a_running_job((0, 1), 50)])())
        assert decider.failures == 1
        decider.policy = good

    assert who_is_first(fail) == "announced"
