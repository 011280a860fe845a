# SPDX-License-Identifier: Apache-2.0
from dataclasses import replace

import pytest

from bridge.errors import ConfigError
from bridge.registry import PRESETS, build
from bridge.rpc.controller.policy_switch import PolicySwitch
from bridge.rpc.operators import queries
from bridge.rpc.operators.accuracy import accuracy_reply
from bridge.rpc.operators.process import Answers, ServiceFunctions
from bridge.rpc.operators.queries import Asking
from bridge.rpc.operators.view import View, unpack
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.pb import scheduler_pb2
from bridge.rpc.transport.private_channel import MessageKind
from bridge.safe_cycle.decider import Decider
from bridge.state.accuracy import Announced, Began, Happened
from bridge.state.announced_starts import StartRecords
from bridge.state.store import Slow, Store
from schedbridge_contracts.builders import a_running_job, a_snapshot
from tests.unit.rpc.worlds import a_full, a_job, some_cycles


@pytest.fixture
def decider():
    return Decider(build(PRESETS["easy"]))


@pytest.fixture
def cycles(decider):
    return some_cycles(decider.decide, "easy")


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


def a_desk(decider, cycles, **settings):
    """What the service's process does for operators."""
    usual = {
        "service": "test", "failures": lambda: 0, "accuracy": StartRecords,
        "record": lambda *_: None, "metrics": lambda: b"", "refused": lambda *_: None,
    }  # fmt: skip
    switch = PolicySwitch(PRESETS["easy"], decider)
    return Answers(ServiceFunctions(cycles=cycles, switch=switch, **(usual | settings)))


def a_view(decider, cycles):
    functions = a_desk(decider, cycles)
    return View(functions.live_state(), functions.in_force(), cycles.published)


def test_accuracy_names_no_job(decider, cycles):
    store = Store(None)
    promised = {"secret": Announced(100, "a"), "other": Announced(100, "b")}
    store.took(Happened(10, promised=promised))
    store.took(Happened(110, [Began("secret", 110, "a"), Began("other", 100, "b")]))
    functions = a_desk(decider, cycles, accuracy=store.accuracy)
    kind, parts = functions.reply(MessageKind.ACCURACY, [])
    assert kind is MessageKind.ANSWER
    reply, only = accuracy_reply(unpack(parts), ""), accuracy_reply(unpack(parts), "b")
    store.close()
    assert "secret" not in str(reply)
    newest = [line for line in reply.lines if line.period == pb.PERIOD_HOUR]
    assert [(line.partition, line.promised) for line in newest] == [("", 2), ("a", 1), ("b", 1)]
    assert newest[1].last.absolute_p90_s == 10
    assert len(newest[1].last.percentiles_s) == 101
    assert {line.partition for line in only.lines} == {"b"}
    assert {point.partition for point in only.series} == {"b"}


def test_without_records_there_is_an_empty_answer(decider, cycles):
    _, parts = a_desk(decider, cycles).reply(MessageKind.ACCURACY, [])
    reply = accuracy_reply(unpack(parts), "")
    assert (reply.now_s, list(reply.lines)) == (0, [])


def test_a_slow_disk_is_said(decider, cycles):
    def slow():
        raise Slow("try again later")

    said = a_desk(decider, cycles, accuracy=slow).reply(MessageKind.ACCURACY, [])
    assert said == (MessageKind.ERROR, [b"RESOURCE_EXHAUSTED", b"try again later"])


@pytest.mark.parametrize(
    ("admin", "limit", "given"), [(True, 0, 6), (True, 2, 2), (False, 0, 4), (False, 9, 4)]
)
def test_ordinary_users_get_a_bounded_part_of_the_plan(
    decider, cycles, monkeypatch, admin, limit, given
):
    monkeypatch.setattr(queries, "MAX_READ", 4)
    cycles.run(a_full([a_job(str(job)) for job in range(6)]))
    view = a_view(decider, cycles)
    reply = queries.plan(view, pb.PlanRequest(limit=limit), Asking(admin))
    assert len(reply.jobs) == given


def test_running_jobs_that_can_change_their_width_are_counted_apart(decider, cycles):
    jobs = [
        a_running_job((0, 1), id="rigid"),
        a_running_job((2,), id="malleable", min_nodes=1, max_nodes=4),
    ]
    cycles.run(a_full([]))
    view = a_view(decider, cycles)
    snapshot = a_snapshot(nodes=4, running=jobs)()
    view = replace(view, published=replace(view.published, snapshot=snapshot))
    reply = queries.status(view, pb.StatusRequest(), Asking(admin=False))
    assert (reply.jobs_running, reply.jobs_malleable) == (2, 1)


def test_what_no_service_can_have_is_marked(decider, cycles):
    reply = queries.policy(a_view(decider, cycles), pb.PolicyRequest(), Asking(admin=False))
    predict = next(line for line in reply.choices if line.startswith("predict: "))
    assert "last-two, " in predict
    assert "oracle (simulation only)" in predict
    with pytest.raises(ConfigError, match="simulations"):
        PolicySwitch(PRESETS["easy"], decider).replace("{preset: easy, predict: oracle}", cycles)


def test_a_refused_policy_is_logged_once(decider, cycles, caplog):
    kind, (code, text) = a_desk(decider, cycles).reply(MessageKind.POLICY, [bytearray(b"nosuch")])
    assert (kind, code) == (MessageKind.ERROR, b"INVALID_ARGUMENT")
    assert text.startswith(b"policy: no preset")
    assert len(caplog.messages) == 1
    assert "is refused: policy: no preset 'nosuch'" in caplog.messages[0]


def test_an_order_that_nobody_carries_out_is_told(decider, cycles):
    order = scheduler_pb2.Decision(unreserve=scheduler_pb2.Unreserve(name="r"))
    parts = [bytearray(order.SerializeToString()), bytearray(b"0.01")]
    kind, (code, text) = a_desk(decider, cycles).reply(MessageKind.ORDER, parts)
    assert (kind, code) == (MessageKind.ERROR, b"FAILED_PRECONDITION")
    assert b"the controller has not called" in text


def test_what_has_not_changed_is_not_sent_again(decider, cycles):
    cycles.run(a_full([a_job("1")]))
    functions = a_desk(decider, cycles)

    def ask(known):
        kind, parts = functions.reply(
            MessageKind.VIEW, [bytearray(str(one).encode()) for one in known]
        )
        assert kind is MessageKind.ANSWER
        serial, changes, _cost_s, _facts, in_force = unpack(parts[:1])
        return (serial, changes), in_force, parts[1:]

    known, in_force, cycle = ask((0, -1))
    assert "easy" in in_force.policy_yaml
    assert unpack(cycle).snapshot.jobs.id.tolist() == ["1"]
    assert ask(known) == (known, None, [])
    cycles.run(a_full([a_job("2")], generation=2))
    later, in_force, cycle = ask(known)
    assert in_force is None
    assert unpack(cycle).snapshot.jobs.id.tolist() == ["2"]
    functions.reply(MessageKind.POLICY, [bytearray(b"conservative")])
    _, in_force, cycle = ask(later)
    assert "conservative" in in_force.policy_yaml
    assert cycle == []
