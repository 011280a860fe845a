# SPDX-License-Identifier: Apache-2.0
"""Two running guests in cycles in which policies fail; and what else extensions then decide."""

from dataclasses import replace
from types import MappingProxyType

import pytest

from bridge import extension_packages
from bridge.errors import PolicyError
from bridge.extension_packages import installed
from bridge.extensions.port import Extension, Face
from bridge.extensions.sharing.orders import FLOOR
from bridge.extensions.sharing.part import shared_of
from bridge.extensions.sharing.switch import NAME, off_since_s, turned_off
from bridge.model.learnt import Learnt
from bridge.ports import State
from bridge.registry import PRESETS, build
from bridge.safe_cycle import without_policy
from bridge.safe_cycle.decider import Decider
from schedbridge_contracts.sharing import NOW_S, SHARING, a_guest, a_host, a_waiting_job, a_world

OFF = turned_off(Learnt(), NOW_S - 10, by_policy=False)
PLANNER = type(build(PRESETS["easy"]).plan)
LEARNT = MappingProxyType({NAME: OFF, "last-two": Learnt()})


def world():
    running = [a_host(), a_guest(), a_host((1,)), a_guest((1,))]
    return a_world(running, [a_waiting_job(user=name) for name in ("ann", "bob")])


@pytest.fixture
def all_fail(monkeypatch):
    """Lets no policy have a plan."""

    def plan(*_):
        raise PolicyError("easy", "has no plan")

    monkeypatch.setattr(PLANNER, "plan", plan)


@pytest.mark.usefixtures("all_fail")
def test_guests_are_held_to_the_floor_if_no_policy_has_a_plan():
    plan = Decider(build(PRESETS["easy"]), site=SHARING).decide(world())
    assert not len(plan.starts_now)
    assert shared_of(plan).quotas.id.tolist() == ["g0", "g1"]
    assert shared_of(plan).quotas.milli_cpus_per_node.tolist() == [round(4000 * FLOOR)] * 2


@pytest.mark.parametrize("off", [True, False])
def test_that_sharing_is_off_is_kept_when_what_was_learnt_is_discarded(monkeypatch, off):
    policy = build(PRESETS["easy"])
    own = PLANNER.plan

    def plan(self, snapshot, order, preference, context):
        if "last-two" in context.state.learnt:
            raise ValueError("fails with what was learnt")
        return own(self, snapshot, order, preference, context)

    monkeypatch.setattr(PLANNER, "plan", plan)
    state = State(learnt={name: LEARNT[name] for name in LEARNT if off or name != NAME})
    decider = Decider(policy, state, site=SHARING)
    plan = decider.decide(world())
    assert "discarded" in plan.notes[0]
    assert set(decider.state.learnt) == ({NAME} if off else set())
    assert (off_since_s(decider.state) is not None) == off
    assert shared_of(plan).requeues.id.tolist() == (["g0", "g1"] if off else [])


class Broken:
    def completed(self, snapshot, plan):
        raise ZeroDivisionError


class Noted:
    def completed(self, snapshot, plan):
        return replace(plan, notes=(*plan.notes, "noted"))


@pytest.mark.usefixtures("all_fail")
def test_one_that_fails_stops_no_other(monkeypatch, caplog):
    there = {
        "broken": Extension("broken", fallback=Face(f"{__name__}:Broken")),
        "noted": Extension("noted", fallback=Face(f"{__name__}:Noted"), keeps=("last-two",)),
        "plain": Extension("plain"),
        "sharing": installed().by_name["sharing"],
    }
    both = extension_packages.Installed(there)
    monkeypatch.setattr(without_policy, "installed", lambda: both)
    plan = Decider(build(PRESETS["easy"]), site=SHARING).decide(world())
    assert "noted" in plan.notes
    assert len(shared_of(plan).quotas) == 2
    assert any("extension broken" in record.message for record in caplog.records)
    assert set(without_policy.kept(State(learnt=LEARNT))) == set(LEARNT)
