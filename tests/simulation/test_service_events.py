# SPDX-License-Identifier: Apache-2.0
"""Events of demand response over HTTP, through a real service."""

import http.client
import json
import socket

import pytest

from bridge.extensions.power.operators.event_page import MAX_BODY
from bridge.extensions.power.rules import power_of
from bridge.rpc.clients.operator_client import OperatorClient
from tests.simulation.services import a_home, a_service, operator_of
from tests.simulation.test_service_power import PLANNING, World

TOKEN = "a-token-of-some-length"
EVENT = {
    "programID": "1",
    "eventName": "peak",
    "intervalPeriod": {"start": "0001-01-01"},
    "intervals": [{"id": 0, "payloads": [{"type": "IMPORT_CAPACITY_LIMIT", "values": [0.9]}]}],
}


@pytest.fixture(scope="module")
def served():
    """A service, its world, and a function that sends a request."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with a_home() as home:
        file = home / "token"
        file.write_text(TOKEN + "\n")
        file.chmod(0o600)
        events = {"address": f"127.0.0.1:{port}", "token_file": str(file)}
        with (
            a_service(home, planning=PLANNING, power={"events": events}) as service,
            World(home) as world,
        ):

            def send(method, path, body=None, token=TOKEN, **fields):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                if token is not None:
                    fields["Authorization"] = f"Bearer {token}"
                try:
                    content = body if isinstance(body, bytes | None) else json.dumps(body)
                    connection.request(method, path, content, fields)
                    answer = connection.getresponse()
                    text = answer.read()
                    return answer.status, json.loads(text) if text else None
                finally:
                    connection.close()

            send.port, send.file = port, file
            yield service, world, send


def upper(service, world):
    world.cycle(1)
    return power_of(service.scheduling.cycles.site).corridor.at(world.now_s)[1]


def test_an_event_comes_is_changed_and_goes(served):
    service, world, send = served
    status, said = send("POST", "/events", EVENT)
    assert (status, said["eventName"], said["objectType"]) == (201, "peak", "EVENT")
    assert upper(service, world) == 900
    entry_log = service.scheduling.parts["power"].corridor.entry_log()
    assert send("POST", "/events", EVENT) == (201, said)  # the same again
    assert service.scheduling.parts["power"].corridor.entry_log() is entry_log
    with OperatorClient(operator_of(send.file.parent)) as operator:
        entry = operator.power().entries[-1]
        assert (entry.author, entry.origin, entry.reason, entry.state) == (
            f"event {said['id']}", "demand response", "peak", "in force",
        )  # fmt: skip
    changed = json.loads(json.dumps(EVENT).replace("0.9", "0.8"))
    status, answer = send("PUT", f"/events/{said['id']}", changed)
    assert (status, answer["id"]) == (200, said["id"])
    assert upper(service, world) == 800
    assert send("DELETE", f"/events/{said['id']}") == (204, None)
    assert upper(service, world) == 2000
    status, answer = send("DELETE", f"/events/{said['id']}")
    assert (status, answer["title"]) == (404, "Not Found")


def test_an_event_is_logged_with_the_bounds_that_it_had(served):
    """Of two events; the bounds of the other are none of its own."""
    _, _, send = served
    changed = json.loads(json.dumps(EVENT).replace("0.9", "0.8"))
    for event in ("one", "two"):
        assert send("PUT", f"/events/{event}", EVENT)[0] == 200
    assert send("PUT", "/events/one", changed)[0] == 200
    assert send("DELETE", "/events/two")[0] == 204
    with OperatorClient(operator_of(send.file.parent)) as operator:
        one, two, again, gone = operator.changes().changes[-4:]
    assert (one.before, two.before) == ("", "")
    assert (again.before, gone.before) == (one.after, two.after)
    assert one.after.startswith("one peak: [[")
    assert again.after == one.after.replace("900", "800")
    assert gone.after.startswith("two ")


@pytest.mark.parametrize(
    ("method", "path", "body", "fields", "status", "detail"),
    [
        ("POST", "/events", EVENT, {"token": None}, 401, "send the token"),
        ("POST", "/events", EVENT, {"token": "wrong"}, 401, "send the token"),
        ("POST", "/events", EVENT, {"token": ""}, 401, "send the token"),
        ("POST", "/events", b"[" * 60_000, {}, 400, "not valid JSON"),
        ("POST", "/events", b"\xff" * 100, {}, 400, "not valid JSON"),
        ("POST", "/events", b'{"intervals": [NaN]}', {}, 400, "NaN is not a number"),
        ("POST", "/events", [1], {}, 400, "event: must be an object"),
        ("POST", "/events", {**EVENT, "intervals": []}, {}, 400, "have no payload"),
        ("POST", "/events", b" " * (MAX_BODY + 1), {}, 413, "at most 65536 bytes"),
        ("POST", "/events", None, {"Transfer-Encoding": "chunked"}, 411, "send Content-Length"),
        ("POST", "/events", None, {"Content-Length": "many"}, 400, "Content-Length"),
        ("POST", "/events", None, {"Content-Length": "9" * 30}, 400, "Content-Length"),
        ("POST", "/events", None, {"Content-Length": "9" * 15}, 413, "at most 65536 bytes"),
        (
            "POST", "/events",
            {**EVENT, "intervalPeriod": {"start": "1970-01-01T00:00:01Z", "duration": "PT1S"}},
            {}, 409, "over already",
        ),
        ("GET", "/events", None, {}, 405, "POST"), ("POST", "/events/1", EVENT, {}, 405, "PUT"),
        ("DELETE", "/events/../../x", None, {}, 404, "there are"),
        ("POST", "/", EVENT, {}, 404, "there are"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_and_changes_nothing(
    served, method, path, body, fields, status, detail
):
    service, _world, send = served
    entry_log = service.scheduling.parts["power"].corridor.entry_log()
    code, problem = send(method, path, body, **fields)
    assert (code, problem["status"]) == (status, status)
    assert detail in problem["detail"]
    assert service.scheduling.parts["power"].corridor.entry_log() is entry_log


def test_who_has_sent_the_token_makes_room_for_nobody(served):
    _service, _world, send = served
    body = json.dumps(EVENT).encode()
    heads = [
        f"{method} HTTP/1.1\r\nHost: here\r\nAuthorization: Bearer {TOKEN}\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        for method in ("PUT /events/one", "PUT /events/two")
    ]
    callers = [socket.create_connection(("127.0.0.1", send.port), 60) for _ in heads]
    for caller, head in zip(callers, heads, strict=True):
        caller.sendall(head + body[:10])
    assert send("GET", "/events")[0] == 405  # so the heads have been read
    silent = [socket.create_connection(("127.0.0.1", send.port), 60) for _ in range(50)]
    assert send("GET", "/events")[0] == 405
    for caller, name in zip(callers, ("one", "two"), strict=True):
        caller.sendall(body[10:])
        assert caller.recv(12) == b"HTTP/1.1 200"
        assert send("DELETE", f"/events/{name}")[0] == 204
    for each in (*silent, *callers):
        each.close()


def test_callers_that_say_nothing_or_nonsense_do_not_keep_others_out(served):
    _service, _world, send = served
    silent = [socket.create_connection(("127.0.0.1", send.port)) for _ in range(50)]
    silent[-1].sendall(b"\x16\x03\x01\x00\n\r\n\r\n")
    silent[-2].sendall(b"A" * 20_000)
    twice = f"Authorization: Bearer {TOKEN}\r\n" * 2
    silent[-3].sendall(f"GET /events HTTP/1.1\r\nHost: here\r\n{twice}\r\n".encode())
    assert silent[-3].recv(12) == b"HTTP/1.1 400"
    assert send("GET", "/events")[0] == 405
    for each in silent:
        each.close()


@pytest.mark.parametrize(
    ("mode", "token"), [(0o644, TOKEN), (0o600, "short"), (0o600, ""), (0o600, None)]
)
def test_without_a_good_token_file_nobody_is_let_in(served, mode, token):
    _service, _world, send = served
    try:
        if token is None:
            send.file.unlink()
        else:
            send.file.write_text(token)
            send.file.chmod(mode)
        assert send("POST", "/events", EVENT, token=token or "")[0] == 503
    finally:
        send.file.write_text(TOKEN)
        send.file.chmod(0o600)
    assert send("GET", "/events")[0] == 405


def test_events_leave_room_for_operators(served):
    service, _world, send = served
    many = {**EVENT, "intervals": [
        {**EVENT["intervals"][0], "intervalPeriod": {"start": f"1970-01-02T{at % 24:02}:00:00Z",
                                                     "duration": "PT1H"}} for at in range(100)
    ]}  # fmt: skip
    assert send("PUT", "/events/a", many)[0] == 200
    assert send("PUT", "/events/b", many)[0] == 200
    status, problem = send("PUT", "/events/c", EVENT)
    assert (status, "more than 200 intervals" in problem["detail"]) == (409, True)
    assert send("DELETE", "/events/a")[0] == send("DELETE", "/events/b")[0] == 204
    assert not [
        e
        for e in service.scheduling.parts["power"].corridor.entry_log().entries
        if e.stands_at(2000)
    ]
