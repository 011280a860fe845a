# SPDX-License-Identifier: Apache-2.0
"""Extensions at entry points: which are used, in which order, and what their parts are worth."""

import sys
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from types import ModuleType
from typing import ClassVar

import numpy as np
import pytest

from bridge import extension_packages
from bridge.cycle import run_cycle
from bridge.errors import ConfigError, InvalidPlan
from bridge.extension_packages import (
    GROUP,
    active_stages,
    as_reported,
    counted,
    gathered,
    overlaid,
)
from bridge.extensions.port import Check, Extension, Face, Stages
from bridge.model.rules.site import NO_RULES
from bridge.planning.site_rules.rules_text import parse_site
from bridge.ports import NoStage, State
from bridge.registry import PRESETS, build
from bridge.safe_cycle.decider import Decider
from bridge.units import NEVER
from schedbridge_contracts.builders import a_job, a_snapshot
from schedbridge_contracts.sharing import a_guest, a_host, a_world


@dataclass(frozen=True)
class Colour:
    """A part."""

    name: str


class Painter(Stages):
    """Stages that count their calls, and give each plan a part."""

    calls: ClassVar[list[str]] = []

    def overlay(self, snapshot):
        self.calls.append("overlay")
        return snapshot

    def before_plan(self, snapshot, preference):
        self.calls.append("before")
        return preference

    def after_plan(self, planned, cycle):
        self.calls.append("after")
        assert len(cycle.world().jobs) == 2
        return replace(planned, plan=planned.plan.having("paint", Colour("red")))


class Critic(Check):
    """A check that dislikes one colour; `shut`: one of two worlds has no usable node."""

    hated = "blue"
    shut = False

    def broken(self, snapshot, site, plan):
        if plan.parts["paint"].name == self.hated:
            yield "", f"is {self.hated}"

    def worlds(self, snapshot, site, plan):
        if not self.shut:
            return ()
        none = replace(snapshot.nodes, usable=np.zeros(len(snapshot.nodes), dtype=bool))
        plain = plan.having("paint", None)
        return [(snapshot, plain), (replace(snapshot, nodes=none), plain)]


PAINTER, CHECK = Face(f"{__name__}:Painter"), Face(f"{__name__}:Critic")
PAINT = Extension("paint", nodes=Colour, plan=Colour, stages=PAINTER, check=CHECK)
MALFORMED = {
    "another name": Extension("ink"),
    "no word": Extension("bad name"),
    "names that are none": Extension("bad", after=("x", 3)),
    "no tuple": Extension("bad", after="x"),
    "keeps a text": Extension("bad", keeps="x"),
    "a stage that policies do not have": Extension("bad", stage="paint"),
    "a column that running jobs do not have": Extension("bad", marks=("host_id", "paint")),
    "counting without columns": Extension("bad", counting=PAINTER),
    "a part that is no dataclass": Extension("bad", nodes=str),
    "a part that nothing checks": Extension("bad", plan=Colour),
    "a face without a module": Extension("bad", stages=Face("no_such_module_anywhere:X")),
    "a face without a class": Extension("bad", stages=Face("bridge.units")),
    "a face that is a text": Extension("bad", stages="bridge.units:X"),
    "no extension": "a text",
}


def points(**extensions):
    """Entry points with these objects, in modules of their own."""
    made = []
    for name, extension in extensions.items():
        module = ModuleType(f"extension_{name}")
        module.EXTENSION = extension
        sys.modules[module.__name__] = module
        made.append(EntryPoint(name, f"{module.__name__}:EXTENSION", GROUP))
    return made


@pytest.mark.parametrize("bad", MALFORMED)
def test_one_that_is_malformed_is_left_out_and_named(bad):
    found = gathered(points(bad=MALFORMED[bad], paint=PAINT))
    assert list(found.by_name) == ["paint"]
    (problem,) = found.problems
    assert "entry point 'bad'" in problem


def test_they_act_after_those_that_they_name_then_by_name():
    given = points(
        a=Extension("a", after=("c", "elsewhere")), b=Extension("b"),
        c=Extension("c", after=("d",)), d=Extension("d"),
    )  # fmt: skip
    order = list(gathered(given).by_name)
    assert order.index("d") < order.index("c") < order.index("a")
    assert order == list(gathered(given[::-1]).by_name)


def test_those_of_a_circle_are_left_out_and_the_others_stay():
    found = gathered(
        points(a=Extension("a", after=("b",)), b=Extension("b", after=("a",)), paint=PAINT)
    )
    assert list(found.by_name) == ["paint"]
    (problem,) = found.problems
    assert "a, b" in problem


def test_of_two_with_one_name_the_first_is_used():
    (one,), (two,) = points(paint=PAINT), points(paint=replace(PAINT, after=("x",)))
    found = gathered([one, EntryPoint("paint", two.value + " ", GROUP)])
    assert len(found.by_name) == len(found.problems) == 1


@pytest.fixture
def painted(monkeypatch):
    """Makes `paint` the only extension, and returns a snapshot in which it is active."""
    there = gathered(points(paint=PAINT))
    monkeypatch.setattr(extension_packages, "installed", lambda: there)
    monkeypatch.setattr(Painter, "calls", [])
    snapshot = a_snapshot(nodes=3, jobs=[a_job(), a_job()])()
    return replace(snapshot, nodes=snapshot.nodes.having("paint", Colour("green")))


def cycle(snapshot):
    policy = build(PRESETS["easy"])
    return run_cycle(snapshot, NO_RULES, State(), policy, lambda: None).plan


def test_an_active_one_sees_the_report_and_acts_before_and_after_the_plan(painted):
    plan = cycle(overlaid(painted))
    assert Painter.calls == ["overlay", "before", "after"]
    assert plan.parts["paint"] == Colour("red")
    assert not plan.only_rows


class Sharer(Stages):
    """Acts in the stage `share` of policies; fails if the plan is to be made again at `bad_s`."""

    bad_s: ClassVar[int] = NEVER

    def after_plan(self, planned, cycle):
        again_s = 1 if isinstance(cycle.policy.share, NoStage) else cycle.policy.share.again_s
        if again_s == self.bad_s:
            raise ValueError("bad")
        assert cycle.is_legal(planned.plan)
        assert len(cycle.planned_again(cycle.predicted).plan) == len(planned.plan)
        return replace(planned, plan=replace(planned.plan, again_s=again_s))


@dataclass(frozen=True)
class Again:
    """An algorithm of a stage."""

    again_s: int


@pytest.fixture
def sharer(monkeypatch):
    """Makes one that acts in the stage `share` the only extension."""
    face = Face(f"{__name__}:Sharer")
    one = Extension("sharer", stage="share", marks=("host_id", "rigid"), stages=face)
    there = gathered(points(other=Extension("other"), sharer=one))
    monkeypatch.setattr(extension_packages, "installed", lambda: there)
    return build(PRESETS["easy"])


def test_one_is_active_where_a_running_job_has_a_value_in_its_columns(sharer):
    for running, again_s in (
        ([a_host(), a_host((1,))], NEVER),
        ([a_host(), a_guest(), a_host((1,))], 1),
        ([a_host(), a_host((1,), rigid=True)], 1),
    ):
        found = run_cycle(a_world(running), NO_RULES, State(), sharer, lambda: None)
        assert found.plan.again_s == again_s


def test_one_is_active_where_the_policy_has_an_algorithm_of_its_stage(sharer, monkeypatch):
    """What it raises is the policy's, as that algorithm is."""
    policy, world = replace(sharer, share=Again(7)), a_world([a_host()], [a_job(), a_job()])
    assert run_cycle(world, NO_RULES, State(), policy, lambda: None).plan.again_s == 7
    assert active_stages(world) == ()
    monkeypatch.setattr(Sharer, "bad_s", 7)
    with pytest.raises(ValueError, match="bad"):
        run_cycle(world, NO_RULES, State(), policy, lambda: None)
    decider = Decider(policy)
    plan = decider.decide(world)
    assert plan.notes == ("fell back: policy easy: ValueError: bad",)
    assert decider.failures == 1


class Doubling:
    """Counts each job twice."""

    def counted(self, running):
        return replace(running, use=2 * running.use)

    def reported(self, running):
        return running.use // 2


def test_one_counts_the_use_of_running_jobs_where_one_has_a_value_in_its_columns(monkeypatch):
    face = Face(f"{__name__}:Doubling")
    there = gathered(points(twice=Extension("twice", marks=("host_id",), counting=face)))
    monkeypatch.setattr(extension_packages, "installed", lambda: there)
    plain, pair = (a_world(jobs).running for jobs in ([a_host()], [a_host(), a_guest()]))
    assert counted(plain) is plain
    assert as_reported(plain) is plain.use
    assert np.array_equal(counted(pair).use, 2 * pair.use)
    assert np.array_equal(as_reported(counted(pair)), pair.use)


def test_one_that_is_not_active_does_nothing(painted):
    plain = replace(painted, nodes=painted.nodes.having("paint", None))
    assert active_stages(plain) == ()
    assert overlaid(plain) is plain
    assert cycle(plain).only_rows
    assert Painter.calls == []


def test_a_part_that_its_own_check_refuses_makes_the_plan_illegal(painted, monkeypatch):
    monkeypatch.setattr(Critic, "hated", "red")
    with pytest.raises(InvalidPlan, match="is red"):
        cycle(painted)


def test_rows_must_be_legal_in_each_world_that_an_extension_states(painted, monkeypatch):
    monkeypatch.setattr(Critic, "shut", True)
    with pytest.raises(InvalidPlan, match="a node that is not usable"):
        cycle(painted)


@pytest.mark.parametrize(("name", "part"), [("ink", Colour("red")), ("paint", "red")])
def test_a_part_that_nothing_can_judge_makes_the_plan_illegal(painted, monkeypatch, name, part):
    monkeypatch.setattr(
        Painter, "after_plan",
        lambda _, planned, cycle: replace(planned, plan=planned.plan.having(name, part)),
    )  # fmt: skip
    with pytest.raises(InvalidPlan, match=f"a part of the extension '{name}'"):
        cycle(painted)


def test_a_section_of_one_that_is_left_out_is_refused(monkeypatch):
    circle = points(power=Extension("power", after=("a",)), a=Extension("a", after=("power",)))
    monkeypatch.setattr(extension_packages, "installed", lambda: gathered(circle))
    with pytest.raises(ConfigError, match=r"planning\.power: needs .* a, power are left out.*mend"):
        parse_site({"power": {}})
    assert parse_site({"power": None}) == parse_site(None)


def test_the_extensions_that_come_with_schedbridge_can_be_used():
    found = extension_packages.installed()
    assert "power" in found.by_name
    assert found.problems == []
