# SPDX-License-Identifier: Apache-2.0
"""Every method of the operators' service only reads, or logs what it changes."""

import asyncio
import json
from concurrent.futures import Future

import grpc
import pytest

from bridge.errors import ConfigError
from bridge.rpc.operators.change_methods import ChangeMethods
from bridge.rpc.operators.changes import DONE, ChangeLogging, ChangeMethod
from bridge.rpc.operators.open_calls import Call, _User
from bridge.rpc.operators.queries import Refused, refuse
from bridge.rpc.operators.read_methods import ReadMethods
from bridge.rpc.pb import operator_pb2 as pb
from bridge.rpc.pb.coscheduling_pb2 import CoschedulingRequest
from bridge.rpc.transport.private_channel import MessageKind, RemoteRefusal
from bridge.state.change_files import MAX_TEXT

READS = {
    "Status", "Plan", "Explain", "Topology", "Power", "Accuracy", "Record", "Elastic",
    "Calibrate", "Changes",
}  # fmt: skip
"""Methods that change nothing. A new one is here, or is a `ChangeMethod`."""


class Service:
    """The service's process: takes what is logged."""

    def __init__(self, fails=False):
        self.logged, self.by_admins, self.fails = [], [], fails

    def ask(self, kind, parts=()):
        assert kind == MessageKind.CHANGED
        self.logged.append(pb.OperatorChange.FromString(bytes(parts[0])))
        self.by_admins.append(bool(parts[1]))
        answer = Future()
        if self.fails:
            answer.set_exception(RemoteRefusal("INTERNAL", "no"))
        else:
            answer.set_result([])
        return answer


def the_methods():
    return {method.name for method in pb.DESCRIPTOR.services_by_name["Operator"].methods}


def test_every_method_reads_or_is_logged():
    reads = ReadMethods(None, None)
    changes = ChangeMethods(None, None, reads)
    changing = changes.methods() | changes.of_extensions()
    logged = {
        name for name, method in changing.items()
        if method.__qualname__ == "ChangeLogging.logged.<locals>.answer"
    }  # fmt: skip
    assert logged == set(changing)
    assert the_methods() == READS | logged
    assert not READS & logged
    assert set(reads.methods() | reads.of_extensions()) - {"Policy"} == READS


def called(work, *, uid=1000, admin=True, service=None, before="old", is_change=True, cancel=None):
    """What is logged of a call, and what it returned or raised."""
    service = service or Service()

    async def carry_out(question, call):
        return await work() if asyncio.iscoroutinefunction(work) else work()

    async def seen(request, call):
        return before() if callable(before) else before

    method = ChangeMethod(pb.PolicyRequest, carry_out, lambda _: is_change, seen)
    answer = ChangeLogging(service).logged("Policy", method)

    async def run():
        question = pb.PolicyRequest(set="easy").SerializeToString()
        task = asyncio.ensure_future(answer(question, Call(uid, admin, _User())))
        if cancel is not None:
            cancel.append(task)
        try:
            return await task
        except (Exception, asyncio.CancelledError) as error:
            return error

    found = asyncio.run(run())
    return service.logged, found


def test_a_change_is_logged_with_its_author_before_and_after():
    for uid in (0, 4_000_000):
        [logged], found = called(lambda: b"answer", uid=uid)
        assert found == b"answer"
        assert (logged.uid, logged.before, logged.result) == (uid, "old", DONE)
        assert logged.user == ("root" if uid == 0 else "4000000")
        assert json.loads(logged.after) == {"set": "easy"}


def test_a_request_that_only_looks_is_not():
    logged, found = called(lambda: b"answer", is_change=False)
    assert (logged, found) == ([], b"answer")


def no_admin():
    refuse(grpc.StatusCode.PERMISSION_DENIED, "only administrators")


def bad_policy():
    raise RemoteRefusal("INVALID_ARGUMENT", "no such preset")


def bad_request():
    raise ConfigError("nodes", "there are not so many")


def broken():
    raise RuntimeError("secret")


@pytest.mark.parametrize(
    ("work", "result"),
    [
        (no_admin, "refused: only administrators"), (bad_policy, "refused: no such preset"),
        (bad_request, "refused: nodes: there are not so many"), (broken, "failed: RuntimeError"),
    ],
)  # fmt: skip
def test_what_is_refused_is_logged_too(work, result):
    [logged], found = called(work)
    assert isinstance(found, Exception)
    assert (logged.result, logged.done) == (result, False)


def test_what_no_message_can_hold_is_logged_as_far_as_it_can_be():
    """Halves of characters, and very long texts; the caller gets his answer or refusal."""

    def odd():
        raise RemoteRefusal("INVALID_ARGUMENT", "no \udcff such preset")

    [logged], found = called(odd, before="\ud800" + "x" * 2 * MAX_TEXT)
    assert isinstance(found, RemoteRefusal)
    assert logged.result == "refused: no ? such preset"
    assert logged.before == "?" + "x" * (MAX_TEXT - 1)


def test_whose_change_it_is_is_logged():
    service = Service()
    for admin in (True, False):
        called(no_admin, admin=admin, service=service)
    assert service.by_admins == [True, False]


def test_a_change_that_the_caller_may_not_make_reads_nothing():
    """Of every method except the one for users; neither a view nor the service is asked."""
    methods = ChangeMethods(None, None, ReadMethods(None, None))
    names = set(methods.methods() | methods.of_extensions()) - {"ChangeWidth"}
    assert {"Corridor", "Coscheduling"} <= names
    for uid in (1000, 1001):
        service = Service()
        changes = ChangeMethods(service, None, ReadMethods(None, None))
        methods = changes.methods() | changes.of_extensions()
        for name in sorted(names):
            request = {
                "Policy": pb.PolicyRequest(set="easy"),
                "Coscheduling": CoschedulingRequest(order=CoschedulingRequest.OFF),
            }.get(name)
            question = b"" if request is None else request.SerializeToString()
            with pytest.raises(Refused, match="only administrators"):
                asyncio.run(methods[name](question, Call(uid, False, _User())))
        assert [each.method for each in service.logged] == sorted(names)
        assert {(each.uid, each.before) for each in service.logged} == {(uid, "")}
        assert not any(service.by_admins)


def test_one_whose_caller_leaves_is_logged():
    tasks = []

    async def left():
        tasks[0].cancel()
        await asyncio.get_running_loop().create_future()

    [logged], found = called(left, cancel=tasks)
    assert isinstance(found, asyncio.CancelledError)
    assert "caller left" in logged.result


def test_a_log_that_fails_and_a_state_that_is_not_known_stop_no_change():
    _, found = called(lambda: b"answer", service=Service(fails=True))
    assert found == b"answer"
    for before in (no_admin, broken):
        [logged], found = called(lambda: b"answer", before=before)
        assert found == b"answer"
        assert logged.before.startswith("not known")
