# SPDX-License-Identifier: Apache-2.0
"""Deadlines and fixed starts: where the policies put such jobs, and what they are told."""

import pytest

from bridge.errors import ConfigError
from bridge.model.job import Hold
from bridge.model.reasons import ReasonCode
from bridge.planning.queue.time_windows import FIXED_GRACE_S, SPARE_S
from bridge.registry import build, parse_policy
from bridge.units import NEVER, format_instant
from schedbridge_contracts.builders import a_job, a_reservation, a_running_job, a_snapshot
from schedbridge_contracts.cycles import Memory, a_site, check, run


def decide(snapshot, memory=None, name="openccs", rules=None, **parameters):
    policy = {"order": "fcfs", "plan": {"name": name, **parameters}, "place": "sequential"}
    built = build(parse_policy(policy))
    return run(snapshot, memory or Memory(), built, site=a_site(rules))


def rows_of(snapshot, plan):
    return {snapshot.jobs.id[job]: row for row, job in enumerate(plan.job.tolist())}


def start_of(snapshot, plan, job):
    return int(plan.start_s[rows_of(snapshot, plan)[job]])


def reason_of(snapshot, plan, job):
    return plan.reasons[rows_of(snapshot, plan)[job]]


BUSY = (a_running_job((0, 1), end_s=100),)
EVERY = ("openccs", "conservative", "easy")


class TestDeadline:
    @pytest.mark.parametrize("name", EVERY)
    def test_a_job_that_would_end_after_its_deadline_is_not_started(self, name):
        snapshot = a_snapshot(nodes=2, jobs=[a_job(2, limit_s=100, deadline_s=99)])()
        plan = decide(snapshot, name=name)
        assert plan.start_s.tolist() == [NEVER]
        assert plan.reasons[0].code is ReasonCode.NEVER
        assert plan.reasons[0].text == (
            f"cannot end before its deadline {format_instant(99)}; "
            f"earliest end would be {format_instant(100)}"
        )

    @pytest.mark.parametrize("name", EVERY)
    def test_one_that_ends_exactly_at_its_deadline_starts(self, name):
        snapshot = a_snapshot(nodes=2, jobs=[a_job(2, limit_s=100, deadline_s=100)])()
        assert decide(snapshot, name=name).start_s.tolist() == [0]

    @pytest.mark.parametrize("name", EVERY)
    def test_a_limit_that_may_be_cut_ends_at_the_deadline(self, name):
        snapshot = a_snapshot(nodes=2, jobs=[a_job(2, limit_s=1000, deadline_s=300, min_s=60)])()
        plan = decide(snapshot, name=name)
        assert (plan.start_s.tolist(), plan.end_s.tolist()) == ([0], [300])

    @pytest.mark.parametrize("name", EVERY)
    def test_it_is_not_cut_below_the_least(self, name):
        snapshot = a_snapshot(nodes=2, jobs=[a_job(2, limit_s=1000, deadline_s=59, min_s=60)])()
        assert decide(snapshot, name=name).start_s.tolist() == [NEVER]

    @pytest.mark.parametrize("name", ["openccs", "conservative"])
    def test_a_job_that_waits_too_long_is_told_when_it_would_end(self, name):
        jobs = [
            a_job(2, limit_s=500, id="first"),
            a_job(1, limit_s=100, deadline_s=300, id="tight"),
        ]
        snapshot = a_snapshot(nodes=2, running=BUSY, jobs=jobs)()
        plan = decide(snapshot, name=name)
        assert start_of(snapshot, plan, "first") == 100
        assert (
            f"earliest end would be {format_instant(700)}"
            in reason_of(snapshot, plan, "tight").text
        )

    @pytest.mark.parametrize("name", ["openccs", "conservative"])
    def test_a_missed_one_has_the_code_of_what_is_in_its_way(self, name):
        def code(running=BUSY, **settings):
            job = a_job(1, limit_s=100, deadline_s=150, licences=(1,))
            world = a_snapshot(nodes=4, running=running, jobs=[job], licences=[("matlab", 1)])()
            return decide(world, name=name, **settings).reasons[0].code

        everywhere = [a_running_job((0, 1, 2, 3), end_s=100, licences=(0,))]
        assert code(everywhere) is ReasonCode.RESOURCES
        if name == "openccs":
            one = a_running_job((0,), end_s=100, licences=(1,))
            assert code([one]) is ReasonCode.LICENCES
            rules = {"limits": [{"user": "user", "resource": "jobs", "items": 1}]}
            held = a_running_job((0,), end_s=100, licences=(0,))
            assert code([held], rules=rules) is ReasonCode.LIMIT

    @pytest.mark.parametrize("name", ["openccs", "conservative"])
    def test_one_that_is_missed_holds_no_place(self, name):
        jobs = [
            a_job(2, limit_s=100, deadline_s=150, id="missed"),
            a_job(2, limit_s=100, deadline_s=210, id="met"),
            a_job(2, limit_s=100, id="next"),
        ]
        snapshot = a_snapshot(nodes=2, running=BUSY, jobs=jobs)()
        plan = decide(snapshot, name=name)
        assert [start_of(snapshot, plan, job) for job in ("missed", "met", "next")] == [
            NEVER, 100, 200,
        ]  # fmt: skip

    def test_early_is_as_early_as_possible_and_says_so(self):
        snapshot = a_snapshot(nodes=2, running=BUSY, jobs=[a_job(2, deadline_s=900, id="due")])()
        plan = decide(snapshot)
        assert start_of(snapshot, plan, "due") == 100
        assert "planned as early as possible, to end before its deadline" in plan.reasons[0].text

    def test_late_leaves_the_room_before_to_others(self):
        jobs = [a_job(2, deadline_s=900, id="due"), a_job(2, limit_s=200, id="other")]
        snapshot = a_snapshot(nodes=2, running=BUSY, jobs=jobs)()
        plan = decide(snapshot, deadline="late")
        assert start_of(snapshot, plan, "due") == 900 - 100 - SPARE_S
        assert start_of(snapshot, plan, "other") == 100
        assert "planned as late as its deadline" in reason_of(snapshot, plan, "due").text

    def test_late_without_room_late_is_early(self):
        jobs = [a_job(2, limit_s=700, id="big"), a_job(2, deadline_s=900, id="due")]
        snapshot = a_snapshot(nodes=2, running=BUSY, jobs=jobs)()
        plan = decide(snapshot, deadline="late")
        assert start_of(snapshot, plan, "due") == 800
        assert "planned as early as possible" in reason_of(snapshot, plan, "due").text

    def test_late_starts_now_where_nodes_would_idle(self):
        snapshot = a_snapshot(nodes=2, jobs=[a_job(2, deadline_s=900)])()
        assert decide(snapshot, deadline="late").start_s.tolist() == [0]

    def test_late_is_kept_where_it_was_promised(self):
        memory = Memory()
        world = a_snapshot(nodes=2, running=BUSY, jobs=[a_job(2, deadline_s=900, id="due")])
        assert decide(world(), memory, deadline="late").start_s.tolist() == [740]
        world.now_s, world.generation = 50, 2
        assert decide(world(), memory, deadline="late").start_s.tolist() == [740]
        world.now_s, world.generation, world.running = 60, 3, ()
        assert decide(world(), memory, deadline="late").start_s.tolist() == [60]

    def test_a_kept_start_gives_way_to_a_nearer_deadline(self):
        memory = Memory()
        world = a_snapshot(nodes=2, running=BUSY, jobs=[a_job(2, deadline_s=900, id="due")])
        decide(world(), memory, deadline="late")
        world.jobs = [a_job(2, deadline_s=500, id="due")]
        assert decide(world(), memory, deadline="late").start_s.tolist() == [340]

    def test_late_is_kept_by_a_service_that_has_restarted(self):
        memory = Memory(planned_start_s={"due": 600})
        world = a_snapshot(nodes=2, running=BUSY, jobs=[a_job(2, deadline_s=900, id="due")])
        assert decide(world(), memory, deadline="late").start_s.tolist() == [600]
        assert decide(world(), memory, deadline="early").start_s.tolist() == [100]

    def test_a_late_place_that_is_lost_is_found_anew(self):
        memory = Memory()
        world = a_snapshot(nodes=2, running=BUSY, jobs=[a_job(2, deadline_s=900, id="due")])
        decide(world(), memory, deadline="late")
        world.reservations = [a_reservation([0], 700, 800)]
        plan = decide(world(), memory, deadline="late")
        assert plan.start_s.tolist() == [600]
        assert "as late as" in plan.reasons[0].text
        world.reservations = [a_reservation([0], 210, 10_000)]
        plan = decide(world(), memory, deadline="late")
        assert plan.start_s.tolist() == [110]
        world.reservations = [a_reservation([0], 205, 10_000)]
        world.jobs = [a_job(2, deadline_s=205, id="due")]
        plan = decide(world(), memory, deadline="late")
        assert plan.start_s.tolist() == [100]
        assert "planned as early as possible" in plan.reasons[0].text

    def test_late_is_within_the_horizon(self):
        snapshot = a_snapshot(nodes=2, running=BUSY, jobs=[a_job(2, deadline_s=9000)])()
        plan = decide(snapshot, deadline="late", horizon_s=500)
        assert plan.start_s.tolist() == [500]

    def test_other_words_are_refused(self):
        with pytest.raises(ConfigError, match="early or late"):
            build(parse_policy({"order": "fcfs", "plan": {"name": "openccs", "deadline": "soon"}}))


class TestNotYetEligible:
    def test_nothing_is_reserved_for_a_begin_time(self):
        early = {"hold": Hold.BEGIN_TIME, "limit_s": 60}
        jobs = [
            a_job(2, begin_s=150, id="alice", **early),
            a_job(2, begin_s=100, id="anne", **early),
            a_job(2, limit_s=1000, id="bob"),
            a_job(1, limit_s=10, id="carol"),
        ]
        for name in EVERY:
            snapshot = a_snapshot(nodes=3, jobs=jobs)()
            plan = decide(snapshot, name=name)
            assert start_of(snapshot, plan, "bob") == start_of(snapshot, plan, "carol") == 0
            reason = reason_of(snapshot, plan, "anne")
            assert reason is not None
            if name != "easy":  # which announces one start
                assert start_of(snapshot, plan, "alice") == 1000
                assert start_of(snapshot, plan, "anne") == 1060

    def test_what_is_announced_for_it_is_kept_from_its_begin_time_on(self):
        memory = Memory()
        job = a_job(2, begin_s=50, hold=Hold.BEGIN_TIME, id="early")
        world = a_snapshot(nodes=2, running=BUSY, jobs=[job])
        assert decide(world(), memory).start_s.tolist() == [100]
        job = a_job(2, begin_s=50, eligible_s=50, id="early")
        newcomer = a_job(2, id="newcomer", priority=9)
        world = a_snapshot(nodes=2, now_s=50, running=BUSY, jobs=[newcomer, job])
        snapshot = world()
        plan = decide(snapshot, memory)
        assert start_of(snapshot, plan, "early") == 100
        assert start_of(snapshot, plan, "newcomer") == 200


class TestFixedStart:
    def fixed(self, at_s=150, **settings):
        settings = {"id": "fixed", **settings}
        return a_job(2, begin_s=at_s, hold=Hold.BEGIN_TIME, fixed=True, **settings)

    @pytest.mark.parametrize("name", ["openccs", "conservative"])
    def test_it_is_planned_at_its_begin_time_exactly(self, name):
        snapshot = a_snapshot(nodes=2, running=BUSY, jobs=[self.fixed()])()
        assert decide(snapshot, name=name).start_s.tolist() == [150]

    def test_it_goes_before_jobs_without_a_promise_whatever_their_priority(self):
        jobs = [a_job(2, limit_s=100, id="other"), self.fixed()]
        snapshot = a_snapshot(nodes=2, running=BUSY, jobs=jobs)()
        plan = decide(snapshot)
        assert start_of(snapshot, plan, "fixed") == 150
        assert start_of(snapshot, plan, "other") == 250

    def test_jobs_behind_it_are_planned_around_it(self):
        """Between two fixed starts, or after both, though all of them may begin at once."""
        jobs = [
            self.fixed(),
            self.fixed(at_s=360, id="second"),
            a_job(2, limit_s=100, id="long"),
            a_job(2, limit_s=120, id="longer"),
        ]
        snapshot = a_snapshot(nodes=2, running=BUSY, jobs=jobs)()
        plan = decide(snapshot, name="conservative")
        found = [start_of(snapshot, plan, job) for job in ("fixed", "second", "long", "longer")]
        assert found == [150, 360, 250, 460]

    def test_a_promised_start_stands_before_it(self):
        memory = Memory()
        world = a_snapshot(nodes=2, running=BUSY, jobs=[a_job(2, id="old")])
        decide(world(), memory)
        world.jobs = [a_job(2, id="old"), self.fixed()]
        snapshot = world()
        plan = decide(snapshot, memory)
        assert start_of(snapshot, plan, "old") == 100
        reason = reason_of(snapshot, plan, "fixed")
        assert reason.code is ReasonCode.RESOURCES
        assert reason.text == (
            f"cannot start at {format_instant(150)} as fixed; "
            f"earliest start after that would be {format_instant(200)}"
        )

    def test_one_that_is_past_is_over_for_good(self):
        job = a_job(2, eligible_s=150, fixed=True)
        snapshot = a_snapshot(nodes=2, now_s=151 + FIXED_GRACE_S, jobs=[job])()
        plan = decide(snapshot)
        assert plan.reasons[0].code is ReasonCode.NEVER
        assert plan.reasons[0].text.startswith(f"cannot start at {format_instant(150)} as fixed")

    def test_a_promised_job_does_not_move_into_it(self):
        memory = Memory()
        world = a_snapshot(nodes=2, running=BUSY, jobs=[self.fixed()])
        decide(world(), memory)
        world.jobs = [a_job(2, limit_s=60, id="short"), self.fixed()]
        snapshot = world()
        plan = decide(snapshot, memory)
        assert start_of(snapshot, plan, "fixed") == 150
        assert start_of(snapshot, plan, "short") == 250

    @pytest.mark.parametrize("late_s", [0, FIXED_GRACE_S, FIXED_GRACE_S + 1])
    def test_it_may_be_late_by_the_grace_only(self, late_s):
        job = a_job(2, eligible_s=150, fixed=True)
        snapshot = a_snapshot(nodes=2, now_s=150 + late_s, jobs=[job])()
        started = decide(snapshot).start_s.tolist() == [snapshot.now_s]
        assert started == (late_s <= FIXED_GRACE_S)


class TestCheck:
    @pytest.mark.parametrize(
        ("job", "text"),
        [
            (a_job(1, limit_s=100, deadline_s=120), "would end after its deadline"),
            (a_job(1, begin_s=20, fixed=True), "starts after its fixed start"),
            (a_job(1, begin_s=40, fixed=True), "starts before its fixed start"),
        ],
    )
    def test_a_plan_that_breaks_a_bound_is_illegal(self, job, text):
        running = [a_running_job((0,), end_s=30)]
        free = a_snapshot(nodes=1, running=running, jobs=[a_job(1, limit_s=100)])()
        plan = decide(free)
        assert plan.start_s.tolist() == [30]
        bounded = a_snapshot(nodes=1, running=running, jobs=[job])()
        assert text in [violation.text for violation in check(bounded, plan)]
