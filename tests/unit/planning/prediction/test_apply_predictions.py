# SPDX-License-Identifier: Apache-2.0
"""What is predicted of run times, and that it can do no harm."""

import dataclasses
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.model.decisions.prediction import Prediction
from bridge.model.rules.site import Site
from bridge.planning.explain.blocking_chain import BlockingChains, LinkKind
from bridge.planning.explain.what_if import what_if
from bridge.planning.prediction.apply_predictions import (
    BY_EXPECTED,
    apply_predictions,
    as_planned,
    starts_with_limits,
)
from bridge.planning.site_rules.lowered_rules import lower, stranded
from bridge.ports import Predicted
from bridge.registry import build, choices, parse_policy
from bridge.units import NEVER, UNLIMITED_S, UNPLANNED
from schedbridge_contracts.builders import (
    a_job,
    a_partition,
    a_reservation,
    a_running_job,
    a_snapshot,
    gantt,
)
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import Memory, a_site, check, parse_rules, run
from schedbridge_contracts.worlds import random_world


def guess(run_s, end_s=()):
    return Prediction("test", np.array(run_s, np.int64), np.array(end_s, np.int64))


@dataclasses.dataclass(frozen=True)
class Says:
    """A predictor that says what it is told."""

    prediction: Prediction

    def predict(self, snapshot, context):
        return Predicted(self.prediction)


def decide(snapshot, prediction, policy="conservative", rules=None):
    built = dataclasses.replace(build(parse_policy(policy)), predict=Says(prediction))
    return run(snapshot, Memory(), built, site=a_site(rules))


class TestApplyPredictions:
    def test_run_times_lie_between_a_second_and_the_limit(self):
        snapshot = a_snapshot(jobs=[a_job(limit_s=100)] * 4)()
        predicted = apply_predictions(snapshot, guess([50, 500, 1, 0]))
        assert predicted.jobs.time_limit_s.tolist() == [50, 100, 1, 100]
        assert predicted.jobs.kill_limit_s.tolist() == [100, 100, 100, 0]

    def test_a_job_without_a_limit_has_its_partitions(self):
        parts = [a_partition("a", range(4), default_time_s=60), a_partition("b", range(4))]
        jobs = [a_job(limit_s=0, partitions=p) for p in ((0,), (1,), (0, 1))]
        predicted = apply_predictions(
            a_snapshot(jobs=jobs, partitions=parts)(), guess([90, 90, 90])
        )
        assert predicted.jobs.time_limit_s.tolist() == [60, 90, 60]
        assert predicted.jobs.kill_limit_s.tolist() == [60, UNLIMITED_S, 60]

    def test_running_jobs_end_as_predicted_or_at_their_limit(self):
        running = [a_running_job((n,), end_s=100) for n in range(3)]
        predicted = apply_predictions(a_snapshot(running=running)(), guess([], [40, 400, 0]))
        assert predicted.running.end_s.tolist() == [40, 100, 100]

    def test_a_limit_that_may_be_cut_is_cut_as_without_predictions(self):
        jobs, closed = [a_job(limit_s=600, min_s=60)], [a_reservation([0], 300, 1000)]
        snapshot = a_snapshot(nodes=1, jobs=jobs, reservations=closed)()
        plan = decide(snapshot, guess([5]))
        assert (plan.start_s.tolist(), plan.end_s.tolist()) == ([0], [300])
        assert starts_with_limits(snapshot, plan).end_s.tolist() == [300]

    @pytest.mark.parametrize(
        "job",
        [
            a_job(deadline_s=500),
            a_job(fixed=True, begin_s=10),
            a_job(reservation=0),
            a_job(partitions=(0, 1)),
            a_job(min_s=10),
        ],
        ids=["deadline", "fixed start", "reservation", "a partition that is too short", "minimum"],
    )
    def test_some_jobs_take_their_whole_limit(self, job):
        parts = [a_partition("a", range(4)), a_partition("b", range(4), max_time_s=50)]
        away = [a_reservation([3], -10, 1000)]
        snapshot = a_snapshot(jobs=[job], partitions=parts, reservations=away)()
        assert apply_predictions(snapshot, guess([5])).jobs.time_limit_s.tolist() == [100]

    @pytest.mark.parametrize(("begins_s", "whole"), [(99, True), (100, False), (0, False)])
    def test_so_do_those_whose_limit_reaches_closed_time(self, begins_s, whole):
        snapshot = a_snapshot(jobs=[a_job()], reservations=[a_reservation([2], begins_s, 900)])()
        predicted = apply_predictions(snapshot, guess([5]))
        assert predicted.jobs.time_limit_s.tolist() == [100 if whole else 5]

    def test_closed_time_of_other_partitions_does_not_count(self):
        parts = [a_partition("a", range(2)), a_partition("b", range(2, 4))]
        away = [a_reservation([2], 50, 900)]
        jobs = [a_job(), a_job(partitions=(1,))]
        snapshot = a_snapshot(jobs=jobs, partitions=parts, reservations=away)()
        assert apply_predictions(snapshot, guess([5, 5])).jobs.time_limit_s.tolist() == [5, 100]

    def test_closed_time_of_licences_counts_for_those_who_want_them(self):
        away = dataclasses.replace(a_reservation([], 50, 900), licences=np.array([1]))
        jobs = [a_job(licences=(1,)), a_job(licences=(0,))]
        snapshot = a_snapshot(jobs=jobs, reservations=[away], licences=[("lic", 1)])()
        assert apply_predictions(snapshot, guess([5, 5])).jobs.time_limit_s.tolist() == [100, 5]

    def test_an_empty_queue_stays_empty(self):
        assert len(apply_predictions(a_snapshot()(), guess([])).jobs) == 0


class TestPlans:
    def test_a_start_planned_by_belief_says_so(self):
        snapshot = a_snapshot(
            nodes=1, running=[a_running_job((0,), end_s=90)], jobs=[a_job(), a_job()]
        )()
        plan = decide(snapshot, guess([10, 10], [30]))
        assert plan.start_s.tolist() == [30, 40]
        assert all(reason.text.endswith(BY_EXPECTED) for reason in plan.reasons)
        assert plan.notes == ("run times are expected, not limits (test)",)
        assert as_planned(snapshot, plan).running.end_s.tolist() == [30]

    def test_what_starts_now_promises_nothing(self):
        plan = decide(a_snapshot(nodes=2, jobs=[a_job(), a_job(nodes=3)])(), guess([10, 10]))
        assert plan.reasons[0] is None
        assert BY_EXPECTED not in plan.reasons[1].text

    def test_real_starts_have_real_limits(self):
        snapshot = a_snapshot(nodes=1, jobs=[a_job(limit_s=70), a_job()])()
        real = starts_with_limits(snapshot, decide(snapshot, guess([10, 10])))
        assert real.start_s.tolist() == [0, UNPLANNED]
        assert real.end_s.tolist() == [70, 0]

    def test_a_job_predicted_short_does_not_start_into_maintenance(self):
        snapshot = a_snapshot(
            nodes=2, jobs=[a_job(nodes=2)], reservations=[a_reservation([1], 50, 200)]
        )()
        assert decide(snapshot, guess([10])).start_s.tolist() == [200]

    def test_a_shorter_job_goes_before_by_its_run_time(self):
        """EASY: by its limit the last job would delay the second; by what it takes it does not."""
        running = [a_running_job((0,), end_s=50)]
        jobs = [a_job(nodes=2, limit_s=100), a_job(limit_s=100)]
        snapshot = a_snapshot(nodes=2, running=running, jobs=jobs)()
        assert decide(snapshot, guess([0, 0], [0]), "easy").start_s.tolist()[1] != 0
        assert decide(snapshot, guess([0, 40], [0]), "easy").start_s.tolist() == [50, 0]


POLICIES = ["easy", "conservative", "slurm-like", "openccs"]


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 10**6), policy=st.sampled_from(POLICIES), dice=st.randoms())
def test_starts_are_legal_whatever_is_predicted(seed, policy, dice):
    """`run_cycle` raises if the plan is illegal as predicted, or its starts as they really are."""
    snapshot = random_world(seed)
    jobs, running = snapshot.jobs, snapshot.running
    anything = guess(
        [dice.choice((0, 1, dice.randint(1, 300))) for _ in range(len(jobs))],
        [dice.choice((0, 1, dice.randint(-20, 300))) for _ in range(len(running))],
    )
    plan = decide(snapshot, anything, policy)
    assert check(snapshot, starts_with_limits(snapshot, plan)) == (), gantt(snapshot, plan)
    assert check(as_planned(snapshot, plan), plan) == ()


AN_HOUR = {"limits": [{"user": "*", "resource": "cpus", "items": 16, "duration": "1h"}]}


class TestRules:
    """What jobs may have is asked of their limits."""

    def test_a_limit_on_time_looks_at_the_time_limit(self):
        jobs = [a_job(limit_s=7200, tasks=1), a_job(limit_s=3600, tasks=1)]
        snapshot = a_snapshot(jobs=jobs)()
        plan = decide(snapshot, guess([60, 60]), "openccs", AN_HOUR)
        starts = dict(zip(plan.job.tolist(), plan.start_s.tolist(), strict=True))
        assert starts == {0: NEVER, 1: 0}

    def test_what_new_rules_strand_is_found_by_limits_too(self):
        running = [a_running_job((n,), end_s=5000) for n in range(4)]
        jobs = [a_job(limit_s=7200, id="long"), a_job(limit_s=3600, id="short")]
        snapshot = a_snapshot(jobs=jobs, running=running)()
        plan = decide(snapshot, guess([60, 60], [100] * 4), "openccs")
        assert plan.start_s.tolist() == [100, 100]
        lowered = lower(Site(parse_rules(AN_HOUR), cron_s=10**6), as_planned(snapshot, plan))
        (found,) = stranded(lowered, plan)
        assert snapshot.jobs.id[plan.job[found.row]] == "long"


class TestOpenCcs:
    def test_an_announced_start_is_kept_while_predictions_change(self):
        """It is promised by belief, and given up when the job before outlives it."""
        running = [a_running_job((0,), end_s=1000, id="r")]
        memory = Memory()

        def at(now_s, expected_end_s, run_s):
            snapshot = a_snapshot(
                nodes=1, running=running, jobs=[a_job(id="w", limit_s=500)], now_s=now_s
            )()
            says = Says(guess([run_s], [expected_end_s]))
            built = dataclasses.replace(build(parse_policy("openccs")), predict=says)
            return run(snapshot, memory, built, np.random.default_rng(0))

        first = at(0, 300, 50)
        assert first.start_s.tolist() == [300]
        assert first.reasons[0].text.endswith(BY_EXPECTED)
        assert at(10, 300, 400).start_s.tolist() == [300]  # longer, in the same place
        assert at(300, 360, 50).start_s.tolist() == [360]  # the one before goes on


class TestExplanations:
    def test_what_is_in_the_way_is_told_by_belief(self):
        running = [a_running_job((0,), end_s=1000, id="r"), a_running_job((1,), end_s=300)]
        snapshot = a_snapshot(nodes=2, running=running, jobs=[a_job(id="w", nodes=2)])()
        plan = decide(snapshot, guess([10], [400, 300]))
        assert plan.start_s.tolist() == [400]
        (link,) = BlockingChains(snapshot, plan).of(0)
        assert (link.kind, link.row) == (LinkKind.RUNNING, 0)

    def test_changes_are_looked_for_in_the_predicted_snapshot(self):
        running = [a_running_job((0,), end_s=1000, id="r")]
        jobs = [a_job(id="w", nodes=2, limit_s=100), a_job(id="v", nodes=1, limit_s=900)]
        snapshot = a_snapshot(nodes=2, running=running, jobs=jobs)()
        plan = decide(snapshot, guess([50, 600], [500]))
        assert plan.start_s.tolist() == [500, 550]
        changes = what_if(snapshot, plan, 1)
        assert [change.start_s for change in changes] == [0]
        assert 0 < changes[0].time_limit_s <= 500


@pytest.mark.parametrize("plan_stage", choices()["plan"])
@each(seed=range(4))
def test_every_plan_stage_can_plan_with_predictions(plan_stage, seed):
    dice = random.Random(seed)
    snapshot = random_world(seed, arrays=False)
    anything = guess(
        [dice.choice((0, 1, dice.randint(1, 300))) for _ in range(len(snapshot.jobs))],
        [dice.choice((0, 1, dice.randint(-20, 300))) for _ in range(len(snapshot.running))],
    )
    plan = decide(snapshot, anything, {"preset": "easy", "plan": plan_stage})
    assert check(as_planned(snapshot, plan), plan) == ()
