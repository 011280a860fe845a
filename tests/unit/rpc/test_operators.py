# SPDX-License-Identifier: Apache-2.0
import pytest

from bridge.accuracy import Announced, Began, Happened
from bridge.errors import ConfigError
from bridge.loop import Decider
from bridge.registry import PRESETS, build
from bridge.rpc import operators
from bridge.rpc.announcements import Announcements
from bridge.rpc.cycles import Cycles
from bridge.rpc.operators import Operator, PolicySwitch
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.session import Session
from bridge.store import Slow, Store
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


def an_operator(decider, cycles, **settings):
    switch = PolicySwitch(PRESETS["easy"], decider)
    settings = {"service": "test", "failures": lambda: 0, "admin": False} | settings
    return Operator(cycles, switch, **settings)


def test_accuracy_names_no_job(decider, cycles):
    store = Store(None)
    promised = {"secret": Announced(100, "a"), "other": Announced(100, "b")}
    store.took(Happened(10, promised=promised))
    store.took(Happened(110, [Began("secret", 110, "a"), Began("other", 100, "b")]))
    operator = an_operator(decider, cycles, accuracy=store.accuracy)
    reply = operator.Accuracy(pb.AccuracyRequest(), None)
    only = operator.Accuracy(pb.AccuracyRequest(partition="b"), None)
    store.close()
    assert "secret" not in str(reply)
    newest = [line for line in reply.lines if line.period == pb.PERIOD_HOUR]
    assert [(line.partition, line.promised) for line in newest] == [("", 2), ("a", 1), ("b", 1)]
    assert newest[1].last.absolute_p90_s == 10
    assert len(newest[1].last.percentiles_s) == 101
    assert {line.partition for line in only.lines} == {"b"}
    assert {point.partition for point in only.series} == {"b"}


def test_without_records_there_is_an_empty_answer(decider, cycles):
    reply = an_operator(decider, cycles).Accuracy(pb.AccuracyRequest(), None)
    assert (reply.now_s, list(reply.lines)) == (0, [])


def test_a_slow_disk_is_said(decider, cycles):
    class Context:
        def abort(self, code, why):
            raise RuntimeError(f"{code.name}: {why}")

        def code(self):
            return "aborted"

    def slow():
        raise Slow("try again later")

    with pytest.raises(RuntimeError, match="RESOURCE_EXHAUSTED: try again later"):
        an_operator(decider, cycles, accuracy=slow).Accuracy(pb.AccuracyRequest(), Context())


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


def test_what_no_service_can_have_is_marked(decider, cycles):
    reply = an_operator(decider, cycles).Policy(pb.PolicyRequest(), None)
    predict = next(line for line in reply.choices if line.startswith("predict: "))
    assert "last-two, " in predict
    assert "oracle (simulation only)" in predict
    with pytest.raises(ConfigError, match="simulations"):
        PolicySwitch(PRESETS["easy"], decider).replace("{preset: easy, predict: oracle}", cycles)


def test_a_refused_policy_is_logged_once(decider, cycles, caplog):
    class Context:
        def abort(self, code, text):
            raise PermissionError(text)

    asked = pb.PolicyRequest(set="nosuch")
    with pytest.raises(PermissionError, match=r"^policy: no preset"):
        an_operator(decider, cycles, admin=True).Policy(asked, Context())
    assert caplog.messages[0].startswith("Policy is refused: policy: no preset 'nosuch'")
