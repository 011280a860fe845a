# SPDX-License-Identifier: Apache-2.0
"""One poisonous job stops nobody: saboteurs in every stage that fail while a certain job is there.

They raise, return garbage, or return a plan that is illegal; the job is a single one, an array, a
running one or one that ended. Everybody else is planned by the same policy.
"""

import dataclasses
from dataclasses import dataclass

import numpy as np
import pytest

import bridge.check.legality
import bridge.cycle_view
from bridge.errors import PolicyError
from bridge.model.decisions.resizes import Resizes, resized
from bridge.model.job import EndedTable, Ending
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.topology import regular
from bridge.planning.prediction.apply_predictions import as_planned, starts_with_limits
from bridge.ports import Planned, Predicted, Promises, State
from bridge.registry import PRESETS, build, parse_policy
from bridge.safe_cycle.decider import Decider
from bridge.safe_cycle.exclusion import RowKind, count, whole, without
from bridge.safe_cycle.set_aside import MAX_SKIPPED, RETRY_S
from bridge.units import NEVER
from schedbridge_contracts.builders import a_job, a_reservation, a_running_job, a_snapshot
from schedbridge_contracts.crosses import each
from schedbridge_contracts.cycles import a_site, check
from schedbridge_contracts.worlds import random_world

X = "poison"


def there(snapshot, name=X):
    """Whether somebody's name is in a snapshot that is not neutralised."""
    quiet = {job for job, name in zip(snapshot.running.id, snapshot.running.name, strict=True)
             if not name}  # fmt: skip
    running = set(snapshot.running.id) - quiet
    return name in {*snapshot.jobs.id, *running, *snapshot.ended.id}


def illegal(snapshot, plan):
    """What is illegal about a plan, as predicted, or about its starts as they really are."""
    found = check(as_planned(snapshot, plan), plan)
    return found or (check(snapshot, starts_with_limits(snapshot, plan)) if plan.predicted else ())


class Stage:
    """A stage that fails while X is there."""

    def __init__(self, stage, how):
        self.inner, self.how = stage, how

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def fail(self, snapshot, good, garbage):
        if not there(snapshot):
            return good()
        match self.how:
            case "raise":
                raise ZeroDivisionError("oops\nin two lines")
            case "give up":
                raise PolicyError("tired", "no plan with this one")
            case "none":
                return None
        return garbage(good())


class Predicts(Stage):
    def predict(self, snapshot, context):
        def garbage(foreseen):
            prediction = foreseen.prediction
            return Predicted(dataclasses.replace(prediction, run_s=prediction.run_s[:0]), {"x": 1})

        return self.fail(snapshot, lambda: self.inner.predict(snapshot, context), garbage)


class Orders(Stage):
    def order(self, snapshot):
        return self.fail(snapshot, lambda: self.inner.order(snapshot), lambda rows: rows + 1000)


class Places(Stage):
    def preference(self, snapshot):
        return self.fail(
            snapshot,
            lambda: self.inner.preference(snapshot),
            lambda found: dataclasses.replace(found, rank=found.rank[:1].astype(float)),
        )


class Plans(Stage):
    def plan(self, snapshot, order, preference, context):
        def garbage(planned):
            plan = planned.plan
            return dataclasses.replace(
                planned, plan=dataclasses.replace(plan, nodes=plan.nodes + 10_000)
            )

        return self.fail(
            snapshot, lambda: self.inner.plan(snapshot, order, preference, context), garbage
        )


class Repeats(Stage):
    """Gives X a row twice, on nodes that others have."""

    def plan(self, snapshot, order, preference, context):
        planned = self.inner.plan(snapshot, order, preference, context)
        if not there(snapshot):
            return planned
        (row, *_) = np.flatnonzero(snapshot.jobs.id == X)
        plan = planned.plan
        width = int(snapshot.jobs.min_nodes[row])
        more = dataclasses.replace(
            plan,
            job=np.append(plan.job, np.int32(row)),
            start_s=np.append(plan.start_s, plan.now_s),
            end_s=np.append(plan.end_s, plan.now_s + snapshot.jobs.time_limit_s[row]),
            partition=np.append(plan.partition, np.int32(0)),
            indptr=np.append(plan.indptr, plan.indptr[-1] + width),
            nodes=np.append(plan.nodes, np.arange(width, dtype=np.int32)),
            tasks=np.append(plan.tasks, np.zeros(width, dtype=np.int32)),
            reasons=(*plan.reasons, None),
        )
        return dataclasses.replace(planned, plan=more)


class PlacesJointly(Stage):
    def preference(self, snapshot):
        self.seen = snapshot
        return self.inner.preference(snapshot)

    def place_jobs(self, fabric, idle, sizes, rng):
        return self.fail(
            self.seen,
            lambda: self.inner.place_jobs(fabric, idle, sizes, rng),
            lambda found: 7,
        )


STAGES = {
    "predict": lambda how: {"predict": Predicts(build(parse_policy(NAMES)).predict, how)},
    "order": lambda how: {"order": Orders(build(PRESETS["easy"]).order, how)},
    "place": lambda how: {"place": Places(build(PRESETS["easy"]).place, how)},
    "plan": lambda how: {"plan": Plans(build(PRESETS["openccs"]).plan, how)},
    "place_jobs": lambda how: {"place": PlacesJointly(build(parse_policy(COMPACT)).place, how)},
}
NAMES = {"preset": "easy", "predict": {"name": "last-two", "patience_s": None}}
COMPACT = {"preset": "easy", "place": {"name": "compact", "budget_ms": 0, "effort": 30}}


def a_world(kind, others=7):
    jobs = [a_job(nodes=1 + at % 2, id=f"j{at}", user=f"u{at % 3}") for at in range(others)]
    running = [a_running_job((0,), end_s=500, id="r0"), a_running_job((1, 2), end_s=900, id="r1")]
    ended = ["e1"]
    match kind:
        case "single":
            jobs.insert(3, a_job(nodes=2, id=X, user="u1"))
        case "array":
            jobs.insert(3, a_job(id=X, array_tasks=5, array_startable=3, user="u1"))
        case "running":
            running.append(a_running_job((3,), end_s=700, id=X))
        case "ended":
            ended.append(X)
    world = a_snapshot(nodes=8, jobs=jobs, running=running)()
    world.running.name[:] = "run"
    many = len(ended)
    table = EndedTable(
        np.array(ended, dtype=object),
        np.array(["n"] * many, dtype=object),
        np.array(["u1"] * many, dtype=object),
        np.full(many, -100),
        np.full(many, -50),
        np.full(many, 100),
        np.full(many, Ending.COMPLETED, dtype=np.int8),
    )
    return dataclasses.replace(world, ended=table, topology=regular(8, 4, 8))


def sabotaged(stages, **settings):
    return Decider(dataclasses.replace(build(PRESETS["easy"]), **stages), **settings)


def column_aside(column, plan):
    """What stands in a column of the jobs that are set aside."""
    return {
        column[plan.job[row]]
        for row, reason in enumerate(plan.reasons)
        if reason is not None and reason.text.startswith("set aside")
    }


def assert_all_planned_but(snapshot, plan, *names):
    for row, job in enumerate(plan.job.tolist()):
        name = snapshot.jobs.id[job]
        if name in names:
            assert plan.start_s[row] == NEVER
            assert plan.reasons[row].code is ReasonCode.OTHER
            assert plan.reasons[row].text.startswith("set aside: policy")
            assert "\n" not in plan.reasons[row].text
    assert (plan.start_s == plan.now_s).any()


@pytest.mark.parametrize("stage", STAGES)
@each(kind=["single", "array", "running", "ended"], how=["raise", "give up", "none", "garbage"])
def test_one_job_with_which_a_stage_fails_is_set_aside(stage, how, kind):
    snapshot = a_world(kind)
    decider = sabotaged(STAGES[stage](how))
    plan = decider.decide(snapshot)
    assert illegal(snapshot, plan) == ()
    assert decider.failures == 0, plan.notes
    assert plan.policy == "easy"
    assert_all_planned_but(snapshot, plan, X)
    if kind == "running":
        assert not np.isin(plan.nodes, [3]).any()
    assert decider.telemetry.set_aside == (kind in ("single", "array"))


@pytest.mark.parametrize("kind", ["single", "array", "running", "ended"])
def test_the_judge_itself_may_fail_over_one_job(kind, monkeypatch):
    real = bridge.check.legality.check

    def judge(snapshot, site, plan):
        if there(snapshot):
            raise IndexError("what is this?")
        return real(snapshot, site, plan)

    snapshot = a_world(kind)
    monkeypatch.setattr(bridge.cycle_view, "check", judge)
    decider = Decider(build(PRESETS["easy"]))
    plan = decider.decide(snapshot)
    assert check(snapshot, plan) == ()
    assert_all_planned_but(snapshot, plan, X)


@pytest.mark.parametrize("kind", ["single", "array"])
def test_a_job_that_the_judge_names_is_asked_first(kind):
    snapshot, cycles = a_world(kind, others=60), 0
    stage = Repeats(build(PRESETS["easy"]).plan, "")

    class Counts:
        def order(self, world):
            nonlocal cycles
            cycles += 1
            return build(PRESETS["easy"]).order.order(world)

    decider = sabotaged({"plan": stage, "order": Counts()})
    plan = decider.decide(snapshot)
    assert check(snapshot, plan) == ()
    assert_all_planned_but(snapshot, plan, X)
    assert cycles <= 10


@each(preset=[*PRESETS])
def test_under_every_preset(preset):
    """Slow: a preset that fails is tried with job after job, and some presets solve programs."""
    policy = build(PRESETS[preset])
    decider = Decider(dataclasses.replace(policy, order=Orders(policy.order, "raise")))
    snapshot = a_world("single")
    plan = decider.decide(snapshot)
    assert illegal(snapshot, plan) == ()
    assert decider.failures == 0
    assert column_aside(snapshot.jobs.id, plan) == {X}


def test_many_of_one_user_do_not_hide_the_others():
    jobs = [a_job(id=f"j{at}", user=f"u{at % 9}") for at in range(300)]
    snapshot = a_snapshot(nodes=8, jobs=jobs)()
    policy = build(PRESETS["easy"])

    class Hates:
        def order(self, world):
            if "u4" in world.jobs.user:
                raise ValueError("u4")
            return policy.order.order(world)

    decider = Decider(dataclasses.replace(policy, order=Hates()))
    plan = decider.decide(snapshot)
    assert check(snapshot, plan) == ()
    assert decider.failures == 0
    assert column_aside(snapshot.jobs.user, plan) == {"u4"}
    plan = decider.decide(snapshot)
    assert check(snapshot, plan) == ()


class TestTryingAgain:
    def decider(self):
        self.cycles = 0
        inner = build(PRESETS["easy"])
        owner = self

        class Counts(Orders):
            def order(self, snapshot):
                owner.cycles += 1
                return super().order(snapshot)

        return Decider(dataclasses.replace(inner, order=Counts(inner.order, "raise")))

    def cycles_of(self, decider, snapshot):
        self.cycles = 0
        plan = decider.decide(snapshot)
        assert check(snapshot, plan) == ()
        return self.cycles

    def test_what_is_set_aside_costs_nothing_until_it_changes(self):
        decider, snapshot = self.decider(), a_world("single")
        assert self.cycles_of(decider, snapshot) > 1
        assert self.cycles_of(decider, snapshot) == 1
        jobs = snapshot.jobs
        aged = dataclasses.replace(
            snapshot, jobs=dataclasses.replace(jobs, priority=jobs.priority + 5)
        )
        assert self.cycles_of(decider, aged) == 1
        version = jobs.version.copy()
        version[3] += 1
        other = dataclasses.replace(snapshot, jobs=dataclasses.replace(jobs, version=version))
        assert self.cycles_of(decider, other) > 1

    def test_its_partition(self):
        decider, snapshot = self.decider(), a_world("single")
        self.cycles_of(decider, snapshot)
        partitions = tuple(dataclasses.replace(p, max_time_s=9999) for p in snapshot.partitions)
        changed = dataclasses.replace(snapshot, partitions=partitions)
        assert self.cycles_of(decider, changed) > 1
        assert self.cycles_of(decider, changed) == 1

    def test_the_rules_of_the_site_and_the_policy(self):
        decider, snapshot = self.decider(), a_world("single")
        self.cycles_of(decider, snapshot)
        decider.site = a_site({"limits": [{"user": "*", "resource": "jobs", "items": 99}]})
        assert self.cycles_of(decider, snapshot) > 1
        decider.exchange(decider.policy)
        assert self.cycles_of(decider, snapshot) > 1
        assert self.cycles_of(decider, snapshot) == 1

    def test_after_an_hour(self):
        decider, snapshot = self.decider(), a_world("single")
        self.cycles_of(decider, snapshot)
        later = dataclasses.replace(snapshot, now_s=snapshot.now_s + RETRY_S)
        assert self.cycles_of(decider, later) > 1

    def test_a_job_that_is_well_again_is_planned(self):
        snapshot = a_world("single")
        policy = build(PRESETS["easy"])
        decider = Decider(dataclasses.replace(policy, order=Orders(policy.order, "raise")))
        decider.decide(snapshot)
        decider.exchange(policy)
        plan = decider.decide(snapshot)
        assert all(reason is None or "set aside" not in reason.text for reason in plan.reasons)


class TestPoliciesThatAlwaysFail:
    def test_are_replaced_and_not_searched_in_every_cycle(self):
        cycles = 0

        class Never:
            def order(self, snapshot):
                nonlocal cycles
                cycles += 1
                raise ValueError("never")

        snapshot = a_world("single")
        decider = sabotaged({"order": Never()})
        for _ in range(200):
            plan = decider.decide(snapshot)
            assert plan.policy == "slurm-like"
            assert any(note.startswith("fell back: policy easy") for note in plan.notes)
        assert decider.failures == 200
        assert cycles < 200 + 10 * 10
        assert MAX_SKIPPED <= 64

    def test_even_the_conservative_plan(self, monkeypatch):
        def judge(snapshot, site, plan):
            raise IndexError("what is this?")

        monkeypatch.setattr(bridge.cycle_view, "check", judge)
        snapshot = a_world("array")
        plan = Decider(build(PRESETS["easy"])).decide(snapshot)
        assert check(snapshot, plan) == ()
        assert (plan.start_s == NEVER).all()
        assert all(reason.text.startswith("planning failed") for reason in plan.reasons)

    def test_a_snapshot_that_makes_the_search_itself_fail(self, monkeypatch):
        monkeypatch.setattr("bridge.safe_cycle.decider.without", lambda *_: 1 / 0)
        snapshot = a_world("single")
        plan = Decider(build(PRESETS["easy"])).decide(snapshot)
        assert check(snapshot, plan) == ()
        assert (plan.start_s == NEVER).all()


def test_a_search_that_runs_out_of_time_goes_on_in_the_next_cycle():
    snapshot = a_snapshot(
        nodes=4, jobs=[a_job(id=X if at == 77 else f"j{at}") for at in range(128)]
    )()
    policy, ticks = build(PRESETS["easy"]), iter(range(10**6))
    decider = Decider(
        dataclasses.replace(policy, order=Orders(policy.order, "raise")),
        clock=lambda: 0.5 * next(ticks),
    )
    policies = []
    for _ in range(12):
        plan = decider.decide(snapshot)
        assert check(snapshot, plan) == ()
        policies.append(plan.policy)
    assert policies[0] == "slurm-like"
    assert policies[-1] == "easy"


def test_a_state_with_which_the_policy_fails_is_given_up():
    class Remembers:
        name = "easy"

        def plan(self, snapshot, order, preference, context):
            assert context.state.promises.start_s.get("j0", 0) < 50
            planned = build(PRESETS["easy"]).plan.plan(snapshot, order, preference, context)
            return Planned(planned.plan, Promises(self.name, {"j0": 7}))

    decider = sabotaged({"plan": Remembers()}, state=State(Promises("easy", {"j0": 60})))
    plan = decider.decide(a_world("none"))
    assert decider.failures == 0
    assert "what was announced is discarded: planning failed with it" in plan.notes
    assert decider.state.promises.start_s == {"j0": 7}


class TestState:
    def test_a_plan_that_is_refused_leaves_nothing(self):
        class Illegal:
            name = "illegal"

            def plan(self, snapshot, order, preference, context):
                planned = build(PRESETS["openccs"]).plan.plan(snapshot, order, preference, context)
                nodes = np.zeros_like(planned.plan.nodes)
                return dataclasses.replace(
                    planned, plan=dataclasses.replace(planned.plan, nodes=nodes)
                )

        before = State(Promises("openccs", {"j1": 700}))
        jobs = [a_job(nodes=2, id=f"j{at}") for at in range(4)]
        decider = sabotaged({"plan": Illegal()}, state=before)
        decider.decide(a_snapshot(nodes=2, jobs=jobs, running=[a_running_job((0,), 50)])())
        assert decider.failures == 1
        assert decider.state.promises == before.promises

    def test_what_ended_is_learnt_once_whatever_becomes_of_the_plan(self):
        predict = build(parse_policy(NAMES)).predict
        snapshot, failing = a_world("none"), True

        class Sometimes:
            def order(self, world):
                if failing:
                    raise ValueError("not today")
                return build(PRESETS["easy"]).order.order(world)

        decider = sabotaged({"order": Sometimes(), "predict": predict})
        decider.decide(snapshot)
        assert decider.failures == 1
        assert decider.state.learnt_by("last-two").judged == 1
        assert dict(decider.state.learnt_by("last-two").known) == {"u1": [50]}
        failing = False
        decider.decide(dataclasses.replace(snapshot, ended=EndedTable()))
        assert decider.state.learnt_by("last-two").judged == 1

    def test_hops_of_a_cycle_that_failed_are_not_counted_again(self):
        place = build(parse_policy(COMPACT)).place
        decider = sabotaged({"place": place})
        decider.decide(a_world("none"))
        assert decider.telemetry.placement is not None
        decider.policy = dataclasses.replace(decider.policy, order=None)
        decider.decide(a_world("none"))
        assert decider.failures == 1
        assert decider.telemetry.placement is None
        assert decider.telemetry.dispatched is None

    def test_an_exchange_leaves_no_stale_promise(self):
        """openccs, slurm-like, openccs: a job of priority starts as if there had been none."""
        old = [a_job(id="old", nodes=4, limit_s=500, priority=1)]
        running = [a_running_job((0, 1, 2, 3), end_s=1000)]
        decider = Decider(build(PRESETS["openccs"]))
        decider.decide(a_snapshot(nodes=4, jobs=old, running=running)())
        assert decider.state.promises.start_s == {"old": 1000}
        decider.exchange(build(PRESETS["slurm-like"]))
        assert decider.state.promises == Promises()
        both = [*old, a_job(id="high", nodes=4, limit_s=500, priority=9)]
        snapshot = a_snapshot(nodes=4, jobs=both, running=running)()
        decider.decide(snapshot)
        decider.exchange(build(PRESETS["openccs"]))
        plan = decider.decide(snapshot)
        starts = {snapshot.jobs.id[job]: start for job, start in
                  zip(plan.job.tolist(), plan.start_s.tolist(), strict=True)}  # fmt: skip
        assert starts == {"high": 1000, "old": 1500}

    def test_the_same_policy_with_other_parameters_keeps_its_promises(self):
        decider = Decider(build(PRESETS["openccs"]), State(Promises("openccs", {"1": 50})))
        decider.exchange(build(parse_policy({"preset": "openccs", "plan": {"horizon_s": 900}})))
        assert decider.state.promises.start_s == {"1": 50}


class TestWithout:
    @each(seed=range(40))
    def test_a_plan_for_a_reduced_world_is_one_for_the_world(self, seed):
        dice = np.random.default_rng(seed)
        snapshot = random_world(seed, chunks=seed % 2 == 0)
        rows = {
            kind: set(np.flatnonzero(dice.random(count(snapshot, kind)) < 0.3).tolist())
            for kind in RowKind
        }
        world = without(snapshot, rows)
        plan = Decider(build(PRESETS["conservative"])).decide(world)
        assert check(world, plan) == ()
        reason = Reason(ReasonCode.OTHER, "set aside")
        full = whole(snapshot, plan, dict.fromkeys(rows[RowKind.PENDING], reason))
        assert check(snapshot, full) == ()

    def test_a_reservation_s_nodes_are_closed(self):
        snapshot = a_snapshot(
            nodes=4, jobs=[a_job(nodes=1)] * 4, reservations=[a_reservation((0, 1), 0, 100)]
        )()
        world = without(snapshot, {RowKind.RESERVATION: {0}})
        assert world.nodes.usable.tolist() == [False, False, True, True]


@dataclass(frozen=True)
class _FailsOnAName:
    """A predictor that fails with one running job."""

    def predict(self, snapshot, context):
        del context
        if (snapshot.running.name == "bad").any():
            raise ValueError("bad name")
        return Predicted()


@pytest.mark.parametrize("releases", [False, True])
def test_a_running_job_is_set_aside_with_the_nodes_that_it_gives_back(releases):
    decider = Decider(dataclasses.replace(build(PRESETS["easy"]), predict=_FailsOnAName()))
    for now_s in (10, 11, 50, 51):  # the release is late from 40 on
        world = a_snapshot(
            nodes=4, now_s=now_s, jobs=[a_job(nodes=1)],
            running=[a_running_job((0, 1, 2), end_s=1000, min_nodes=1, max_nodes=4)],
        )()  # fmt: skip
        named = dataclasses.replace(world.running, name=np.array(["bad"], dtype=object))
        world = dataclasses.replace(world, running=named)
        if releases:
            row = (0, max(40, now_s + 1), np.array([0], np.int32), "")
            world = resized(world, Resizes.of([row]))
        plan = decider.decide(world)
        assert plan.policy == "easy"
        assert plan.starts_now.tolist() == [0]
        assert plan.nodes_of(0).tolist() == [3]
    assert decider.failures == 0
