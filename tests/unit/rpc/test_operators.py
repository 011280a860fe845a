# SPDX-License-Identifier: Apache-2.0
import pytest

from bridge.errors import ConfigError
from bridge.loop import Decider
from bridge.registry import PRESETS, build
from bridge.rpc import operators
from bridge.rpc.announcements import Announcements
from bridge.rpc.cycles import Cycles
from bridge.rpc.operators import Operator, PolicySwitch
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.session import Session
from tests.unit.rpc.worlds import a_full, a_hello, a_job


@pytest.fixture
def decider():
    return Decider(build(PRESETS["easy"]))


@pytest.fixture
def cycles(decider):
    made = Cycles(
        decider.decide,
        session=Session(),
        announcements=Announcements(),
        service="test",
        policy=lambda: "easy",
    )
    made.greet(a_hello())
    return made


def test_a_policy_is_exchanged_and_told(decider, cycles):
    told = []
    switch = PolicySwitch(PRESETS["easy"], decider, told.append)
    switch.replace("conservative", cycles)
    assert (decider.policy.name, switch.name()) == ("conservative", "conservative")
    switch.replace("policy: {order: fcfs, plan: {name: easy, depth: 3}}", cycles)
    assert decider.policy.plan.depth == 3
    assert "depth: 3" in switch.yaml()
    again = switch.yaml()
    switch.replace(again, cycles)
    assert switch.yaml() == again
    assert len(told) == 3


@pytest.mark.parametrize(
    "text", ["magic", "[1", "3", "{plan: x}", "{plan: {name: easy, depth: -1}}"]
)
def test_what_is_no_policy_changes_nothing(decider, cycles, text):
    switch = PolicySwitch(PRESETS["easy"], decider)
    with pytest.raises(ConfigError):
        switch.replace(text, cycles)
    assert (decider.policy.name, switch.name()) == ("easy", "easy")


@pytest.mark.parametrize(
    ("admin", "limit", "given"), [(True, 0, 6), (True, 2, 2), (False, 0, 4), (False, 9, 4)]
)
def test_ordinary_users_get_a_bounded_part_of_the_plan(
    decider, cycles, monkeypatch, admin, limit, given
):
    monkeypatch.setattr(operators, "MOST_READ", 4)
    cycles.run(a_full([a_job(str(job)) for job in range(6)]))
    operator = Operator(
        cycles,
        PolicySwitch(PRESETS["easy"], decider),
        service="test",
        failures=lambda: 0,
        admin=admin,
    )
    assert len(operator.Plan(pb.PlanRequest(limit=limit), None).jobs) == given
