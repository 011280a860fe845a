# SPDX-License-Identifier: Apache-2.0
"""Methods of extensions: logged, for administrators, and never in place of the service's own."""

import asyncio
from concurrent.futures import Future
from types import SimpleNamespace

import pytest

from bridge.extension_packages import Installed
from bridge.extensions.operators_port import OperatorMethods, ServicePart
from bridge.extensions.port import Extension, Face
from bridge.registry import PRESETS, build
from bridge.rpc.controller.policy_switch import PolicySwitch
from bridge.rpc.operators import extension_methods
from bridge.rpc.operators.change_methods import ChangeMethods
from bridge.rpc.operators.extension_methods import Look, ServedChange
from bridge.rpc.operators.http_pages import HttpPages
from bridge.rpc.operators.open_calls import Call, _User
from bridge.rpc.operators.process import Answers, ServiceFunctions
from bridge.rpc.operators.program import _changing
from bridge.rpc.operators.queries import READS, Read, Refused
from bridge.rpc.operators.read_methods import ReadMethods
from bridge.rpc.operators.requester import Requester, change_parts, read_parts
from bridge.rpc.operators.server import OperatorService
from bridge.rpc.operators.view import View
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.transport.private_channel import MessageKind
from bridge.safe_cycle.decider import Decider
from bridge.service.extension_parts import stop
from bridge.state.announced_starts import StartRecords
from tests.unit.rpc.worlds import some_cycles

ASKED = pb.PolicyRequest(set="easy").SerializeToString()
LOOKED = pb.PolicyRequest().SerializeToString()


def a_change(word, **given):
    async def look(looking, request):
        await looking.view()
        reply = pb.PolicyReply(yaml=f"{word} for {looking.who.uid}")
        return await looking.compute(reply.SerializeToString)

    async def before(looking):
        [told] = await looking.ask("Before", word.encode())
        return told.decode()

    return ServedChange(
        pb.PolicyRequest,
        purpose=f"change the {word}",
        looks=lambda request: not request.set,
        look=look,
        before=before,
        **given,
    )


async def tides(looking, request):
    [told] = await looking.ask("Tides", b"?")
    return pb.StatusReply(service=f"{told.decode()} for {looking.who.uid}").SerializeToString()


class Methods(OperatorMethods):
    """Changes, one of them for users; reads; and the names of two methods of the service."""

    def __init__(self):
        status = pb.StatusRequest
        self.reads = {
            "Weather": Read(status, lambda *_: pb.StatusReply(service="sun"), of_cycle=False),
            "Policy": Read(status, lambda *_: pb.StatusReply(service="mine"), of_cycle=False),
        }  # fmt: skip
        self.looks = {"Tides": Look(status, tides), "Accuracy": Look(status, tides)}
        self.changes = {word.title(): a_change(word) for word in ("flood", "wind", "status")}
        self.changes["Rain"] = a_change("rain", for_users=lambda request: True)

    def lines(self, published, row):
        yield f"line of {row}"
        raise ZeroDivisionError

    def page(self, settings, change):
        return HttpPages(None, 1)


class Broken:
    def __init__(self):
        raise ZeroDivisionError


class Service:
    """The service's process; remembers what was requested, and what was logged."""

    def __init__(self):
        self.requested, self.logged = [], []

    def ask(self, kind, parts=()):
        answer = Future()
        if kind == MessageKind.CHANGED:
            self.logged.append(pb.OperatorChange.FromString(bytes(parts[0])))
        else:
            self.requested.append([bytes(part) for part in parts])
        answer.set_result([bytearray(b"told")])
        return answer

    async def answer(self, kind, parts=()):
        return await asyncio.wrap_future(self.ask(kind, parts))


class Views:
    """Of a service without cycles."""

    def __init__(self):
        self.expired, self.tide = 0, "ebb"

    def expire(self):
        self.expired += 1

    async def current(self):
        in_force = SimpleNamespace(conditions=None, **({"tide": self.tide} if self.tide else {}))
        return SimpleNamespace(view=View(None, in_force, None), cycle=(0, 0), count=0)


@pytest.fixture(autouse=True)
def extensions(monkeypatch):
    there = {
        "broken": Extension("broken", methods=Face(f"{__name__}:Broken")),
        "plain": Extension("plain"),
        "sea": Extension("sea", methods=Face(f"{__name__}:Methods")),
    }
    monkeypatch.setattr(extension_methods, "installed", lambda: Installed(there))
    extension_methods.methods.cache_clear()
    yield
    extension_methods.methods.cache_clear()


def call(name, question, *, admin, uid=0):
    """What a call returns or raises; and the service's process and its views after it."""
    service, views = Service(), Views()

    async def run():
        reads = ReadMethods(service, views)
        changes = ChangeMethods(service, views, reads)
        methods = reads.of_extensions() | changes.of_extensions()
        try:
            return await methods[name](question, Call(uid, admin, _User()))
        except Refused as error:
            return error

    return asyncio.run(run()), service, views


def test_one_that_has_no_methods_stops_no_other(caplog):
    assert list(extension_methods.methods()) == ["sea"]
    assert "operators are not answered by the extension broken" in caplog.text


def test_a_change_is_carried_out_for_administrators_and_logged():
    for name, word in (("Flood", "flood"), ("Wind", "wind")):
        answer, service, views = call(name, ASKED, admin=True)
        assert (answer, views.expired) == (b"told", 1)
        before, [extension, method, question, uid, user, admin] = service.requested
        assert before == [b"sea", b"Before", word.encode()]  # without a requester: a read
        assert (extension, method, question) == (b"sea", name.encode(), ASKED)
        assert (uid, user, admin) == (b"0", b"root", b"admin")
        [logged] = service.logged
        assert (logged.method, logged.before, logged.done) == (name, "told", True)
        assert (logged.uid, logged.user) == (0, "root")


def test_other_users_change_nothing_and_are_logged():
    """Also where users may look."""
    for name, word in (("Flood", "flood"), ("Rain", "rain")):
        refused, service, views = call(name, ASKED, admin=False, uid=4_000_000)
        assert refused.text == f"only administrators may change the {word} (operator.admins)"
        assert (service.requested, views.expired) == ([], 0)
        [logged] = service.logged
        assert (logged.uid, logged.before, logged.done) == (4_000_000, "", False)


def test_a_look_is_answered_from_the_view_and_not_logged():
    for name, admin in (("Flood", True), ("Rain", False)):
        answer, service, views = call(name, LOOKED, admin=admin)
        assert pb.PolicyReply.FromString(answer).yaml == f"{name.lower()} for 0"
        assert (service.requested, service.logged, views.expired) == ([], [], 0)
    refused, service, _ = call("Flood", LOOKED, admin=False)
    assert isinstance(refused, Refused)
    assert (service.requested, service.logged) == ([], [])


def test_reads_get_no_further_than_the_view_or_what_is_told():
    question = pb.StatusRequest().SerializeToString()
    answer, service, _ = call("Weather", question, admin=False)
    assert (pb.StatusReply.FromString(answer).service, service.requested) == ("sun", [])
    answer, service, _ = call("Tides", question, admin=False, uid=7)
    assert pb.StatusReply.FromString(answer).service == "told for 7"
    assert service.requested == [[b"sea", b"Tides", b"?"]]  # without a requester: a read


def test_no_extension_replaces_a_method_of_the_service():
    async def run():
        return OperatorService(Service(), who=lambda peer: 0, admins=frozenset())._methods

    methods = asyncio.run(run())
    assert {"Flood", "Wind", "Weather", "Tides"} <= methods.keys()
    assert methods["Accuracy"].__name__ == "_accuracy"
    assert methods["Status"].func.__name__ == "read"
    assert methods["Status"].args[1] is READS["Status"]
    assert methods["Policy"].__qualname__ == "ChangeLogging.logged.<locals>.answer"


def test_what_a_page_changes_is_logged():
    """With what it replaces; where that cannot be told, it is changed and logged all the same."""
    service = Service()

    def before(view):
        return f"{view.in_force.tide} tide"

    async def run():
        operators = OperatorService(service, who=lambda peer: 0, admins=frozenset())
        operators.views = Views()
        change = _changing("sea", service, operators)
        for event in ("high", "low"):
            await change("a buoy", "Tide", event.encode(), before, f"tide {event}")
        operators.views.tide = None
        await change("a buoy", "Tide", b"none", before, "tide none")

    asyncio.run(run())
    assert [parts[2:] for parts in service.requested] == [
        [event, b"-1", b"a buoy", b""] for event in (b"high", b"low", b"none")
    ]
    assert {(one.method, one.user, one.uid) for one in service.logged} == {("Tide", "a buoy", -1)}
    assert [one.after for one in service.logged] == ["tide high", "tide low", "tide none"]
    first, second, third = (one.before for one in service.logged)
    assert (first, second) == ("ebb tide", "ebb tide")
    assert third.startswith("not known: ")


def test_the_rest_is_explained_if_an_extension_fails(caplog):
    assert list(extension_methods.lines(None, 3)) == ["line of 3"]
    assert "the extension sea does not explain a job" in caplog.text


class Part(ServicePart):
    """A part of the service's process."""

    def __init__(self):
        self.stopped = False
        self.reads = {"Tides": lambda question: [b"read", question]}
        self.changes = {"Flood": lambda question, who: [question, who.name.encode()]}

    def status(self, reply):
        reply.power_losses.append("n1")
        return ("it rains",)

    def in_force(self):
        return "high"

    def stop(self):
        self.stopped = True


class BrokenPart(Part):
    def status(self, reply):
        raise ZeroDivisionError

    in_force = stop = lambda self, *_: 1 / 0


def answers_of(parts):
    decider = Decider(build(PRESETS["easy"]))
    return Answers(
        ServiceFunctions(
            cycles=some_cycles(decider.decide, "easy"),
            switch=PolicySwitch(PRESETS["easy"], decider),
            service="s", failures=lambda: 0, accuracy=StartRecords, record=lambda *_: None,
            metrics=lambda: b"", refused=lambda *_: None, parts=parts,
        )
    )  # fmt: skip


def test_a_read_reaches_no_change_and_a_change_no_read():
    answers, who = answers_of({"sea": Part(), "air": Part()}), Requester(7, "eva", admin=False)
    for name in ("sea", "air"):
        for parts, answer in (
            (read_parts(name, "Tides", b"?"), [b"read", b"?"]),
            (change_parts(name, "Flood", b"?", who), [b"?", b"eva"]),
        ):
            given = [bytearray(part) for part in parts]
            assert answers.reply(MessageKind.EXTENSION, given) == (MessageKind.ANSWER, answer)
        for parts in (read_parts(name, "Flood", b"?"), change_parts(name, "Tides", b"?", who)):
            kind, answer = answers.reply(MessageKind.EXTENSION, [bytearray(each) for each in parts])
            assert (kind, answer[0]) == (MessageKind.ERROR, b"INTERNAL")


def test_a_part_that_fails_hides_neither_the_status_nor_the_others(caplog):
    answers = answers_of({"broken": BrokenPart(), "sea": Part(), "air": Part()})
    live = answers.live_state()
    assert list(pb.StatusReply.FromString(live.status).power_losses) == ["n1", "n1"]
    assert live.problems == {
        "broken": ("the status of broken is unknown: see the service's log",),
        "sea": ("it rains",), "air": ("it rains",),
    }  # fmt: skip
    assert answers.in_force().parts == {"sea": "high", "air": "high"}
    assert caplog.text.count("of the extension broken is unknown") == 2


def test_each_part_is_stopped(caplog):
    parts = {"broken": BrokenPart(), "sea": Part(), "air": Part()}
    stop(parts)
    assert parts["sea"].stopped
    assert parts["air"].stopped
    assert "the extension broken has not stopped" in caplog.text
