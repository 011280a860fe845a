# SPDX-License-Identifier: Apache-2.0
"""Two active extensions, of which one fails: jobs start, and the other one acts."""

import sys
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from bridge import extension_packages
from bridge.errors import Overtime
from bridge.extension_packages import GROUP, gathered
from bridge.extensions.port import Check, Extension, Face, Stages
from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.builders import a_job, a_snapshot
from schedbridge_contracts.cycles import check


@dataclass(frozen=True)
class Colour:
    name: str


class Paint(Stages):
    """Give each plan a part."""

    name = "paint"

    def after_plan(self, planned, cycle):
        return replace(planned, plan=planned.plan.having(self.name, Colour("red")))


class Judge(Check):
    def broken(self, snapshot, site, plan):
        for name, part in plan.parts.items():
            if part.name != "red":
                yield "", f"has a part of {name} that is {part.name}"


class Faulty(Paint):
    """Fail as a test demands."""

    name = "faulty"

    def before_plan(self, snapshot, preference):
        self.fail("before", snapshot)
        return preference

    def after_plan(self, planned, cycle):
        self.fail("after", cycle.predicted)
        return super().after_plan(planned, cycle)

    def fail(self, stage, snapshot):
        """What a test replaces."""


@pytest.fixture
def snapshot(monkeypatch):
    """A cluster with room for its four jobs, in which both extensions are active."""
    points = []
    for stages in (Paint, Faulty):
        module = ModuleType(f"extension_of_{stages.name}")
        faces = {
            "stages": Face(f"{__name__}:{stages.__name__}"),
            "check": Face(f"{__name__}:Judge"),
        }
        module.EXTENSION = Extension(stages.name, nodes=Colour, plan=Colour, **faces)
        monkeypatch.setitem(sys.modules, module.__name__, module)
        points.append(EntryPoint(stages.name, f"{module.__name__}:EXTENSION", GROUP))
    both = gathered(points)
    assert not both.problems
    monkeypatch.setattr(extension_packages, "installed", lambda: both)
    seen = a_snapshot(nodes=8, jobs=[a_job(id=f"{n}", user=f"u{n % 2}") for n in range(4)])()
    nodes = seen.nodes
    for name in both.by_name:
        nodes = nodes.having(name, Colour("white"))
    return replace(seen, nodes=nodes)


@pytest.fixture
def decider():
    return Decider(build(PRESETS["easy"]))


def decide(decider, snapshot):
    plan = decider.decide(snapshot)
    assert check(snapshot, plan) == ()
    return plan, {str(snapshot.jobs.id[row]) for row in plan.job[plan.starts_now].tolist()}


ALL = {"0", "1", "2", "3"}


@pytest.mark.parametrize("stage", ["before", "after"])
def test_one_that_always_fails_is_left_out(snapshot, decider, monkeypatch, caplog, stage):
    def fail(self, here, seen):
        if here == stage:
            raise ZeroDivisionError("no paint")

    monkeypatch.setattr(Faulty, "fail", fail)
    for _ in range(5):
        plan, started = decide(decider, snapshot)
        assert started == ALL
        assert plan.policy == decider.policy.name
        assert list(plan.parts) == ["paint"]
        assert plan.notes == ("left out: extension faulty: ZeroDivisionError: no paint",)
    assert decider.failures == 0
    assert sum(record.exc_info is not None for record in caplog.records) == 1


def test_the_job_over_which_one_fails_waits_and_the_others_start(snapshot, decider, monkeypatch):
    def fail(self, here, seen):
        if "2" in seen.jobs.id.tolist():
            raise ValueError("job 2 has no colour")

    monkeypatch.setattr(Faulty, "fail", fail)
    for _ in range(2):
        plan, started = decide(decider, snapshot)
        assert started == ALL - {"2"}
        assert set(plan.parts) == {"paint", "faulty"}
        [why] = [why for why in plan.reasons if why is not None]
        assert "job 2 has no colour" in why.text


def test_one_that_fails_over_most_jobs_sets_none_aside(snapshot, decider, monkeypatch):
    def fail(self, here, seen):
        if set(seen.jobs.id.tolist()) & {"0", "1", "2"}:
            raise ValueError("too dark")

    monkeypatch.setattr(Faulty, "fail", fail)
    for _ in range(3):
        plan, started = decide(decider, snapshot)
        assert started == ALL
        assert list(plan.parts) == ["paint"]


def test_one_whose_part_is_refused_does_not_keep_jobs_from_starting(snapshot, decider, monkeypatch):
    def after_plan(self, planned, cycle):
        return replace(planned, plan=planned.plan.having(self.name, Colour("blue")))

    monkeypatch.setattr(Faulty, "fail", lambda *_: None)
    monkeypatch.setattr(Faulty, "after_plan", after_plan)
    plan, started = decide(decider, snapshot)
    assert started == ALL
    assert plan.only_rows
    assert "is blue" in plan.notes[-1]


def test_one_that_takes_too_long_does_not_keep_jobs_from_starting(snapshot, decider, monkeypatch):
    def fail(self, here, seen):
        raise Overtime

    monkeypatch.setattr(Faulty, "fail", fail)
    for _ in range(2):
        plan, started = decide(decider, snapshot)
        assert started == ALL
        assert plan.only_rows


def test_two_that_fail_are_both_left_out(snapshot, decider, monkeypatch):
    def fail(*_):
        raise ZeroDivisionError

    monkeypatch.setattr(Faulty, "fail", fail)
    monkeypatch.setattr(Paint, "after_plan", fail)
    plan, started = decide(decider, snapshot)
    assert started == ALL
    assert plan.policy == decider.policy.name
    assert plan.only_rows
    assert len(plan.notes) == 2
