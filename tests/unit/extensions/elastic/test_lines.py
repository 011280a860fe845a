# SPDX-License-Identifier: Apache-2.0
import contextlib
import json
import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.errors import LineError, UnknownOp
from bridge.extensions.elastic import lines
from bridge.extensions.elastic.lines import (
    Attach,
    Attached,
    Bounds,
    Error,
    Grow,
    Lines,
    Progress,
    Result,
    Shrink,
    Withdraw,
    encode,
    from_agent,
    from_launcher,
)

GROW = Grow("7", ("n1", "n2", "n3"), ("n2", "n3"), 60.0)
SHRINK = Shrink("8", ("n1",), ("n2", "n3"), 0.5)
LAUNCHERS = [
    Attach(1, "41_7", ("n1",), "join"),
    Attach(1, "41", ("n1",), "relaunch", GROW),
    Attach(1, "41", ("n1", "n2", "n3"), "program", SHRINK),
    Progress("7", "window"),
    Result("7", "refused", "The new processes did not start within 60 s.", ("n1",)),
    Result("7", "done", "", ("n1", "n2")),
    Bounds(1, 8),
]
AGENTS = [Attached(), Error("No such job."), GROW, SHRINK, Withdraw("7")]


@pytest.mark.parametrize("message", LAUNCHERS, ids=repr)
def test_an_agent_reads_what_a_launcher_wrote(message):
    assert from_launcher(encode(message)) == message


@pytest.mark.parametrize("message", AGENTS, ids=repr)
def test_a_launcher_reads_what_an_agent_wrote(message):
    assert from_agent(encode(message)) == message


def test_every_message_is_covered_here():
    assert {type(message) for message in LAUNCHERS} == set(lines.FromLauncher.__args__)
    assert {type(message) for message in AGENTS} == set(lines.FromAgent.__args__)


def test_a_line_looks_as_the_design_says():
    assert encode(GROW) == (
        b'{"op":"grow","id":"7","nodes":["n1","n2","n3"],"add":["n2","n3"],"within_s":60.0}\n'
    )
    assert json.loads(encode(Attach(1, "41", ("n1",), "join")))["pending"] is None


def test_unknown_keys_are_ignored():
    assert from_agent(b'{"op":"withdraw","id":"7","why":{"x":[1]}}') == Withdraw("7")


def test_pending_may_be_left_out():
    line = b'{"op":"attach","version":1,"job":"4","nodes":["n1"],"engine":"join"}'
    assert from_launcher(line).pending is None


def test_an_unknown_op_has_an_error_of_its_own():
    with pytest.raises(UnknownOp, match="dance: unknown op"):
        from_agent(b'{"op":"dance"}')
    with pytest.raises(UnknownOp):
        from_agent(encode(Bounds(1, 2)))  # a launcher's line from an agent


def altered(message, **changes):
    said = {**json.loads(encode(message)), **changes}
    return json.dumps({key: value for key, value in said.items() if value is not ...}).encode()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"", "not a line of JSON"),
        (b"\xff\xfe", "not a line of JSON"),
        (b"[" * 50_000, "not a line of JSON"),
        (b"[]", "not a JSON object"),
        (b"{}", "op is missing"),
        (b'{"op":["grow"]}', "op is missing"),
        (b" " * 70_000, "more than 65536 bytes"),
        (altered(GROW, id=...), "grow: id is missing"),
        (altered(GROW, id=7), "id must be a text"),
        (altered(GROW, id=""), "id must be a text"),
        (altered(GROW, id="7\n8"), "id has characters"),
        (altered(GROW, nodes="n1"), "nodes must be a list"),
        (altered(GROW, nodes=[]), "nodes must be a list"),
        (altered(GROW, nodes=["n1", "n2", "n2"]), "names a node twice"),
        (altered(GROW, nodes=["n1", "n[2-3]", "n3"]), "invalid node name"),
        (altered(GROW, nodes=["n1", "-w", "n3"]), "invalid node name"),
        (altered(GROW, nodes=["n1", 2, "n3"]), "invalid node name"),
        (altered(GROW, add=["n4"]), "add must be some"),
        (altered(GROW, add=["n1"]), "add must be some"),
        (altered(GROW, add=["n1", "n2", "n3"]), "add must be some"),
        (altered(GROW, within_s=0), "within_s must be above 0"),
        (altered(GROW, within_s=math.nan), "within_s must be above 0"),
        (altered(GROW, within_s=True), "within_s must be a number"),
        (altered(GROW, within_s="1"), "within_s must be a number"),
        (altered(SHRINK, remove=["n1"]), "remove must name"),
        (altered(SHRINK, remove=[]), "remove must be a list"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else None,
)
def test_what_an_agent_cannot_mean_is_refused(line, problem):
    with pytest.raises(LineError, match=problem):
        from_agent(line)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (altered(LAUNCHERS[0], version=0), "version must be a whole number"),
        (altered(LAUNCHERS[0], version=1.0), "version must be a whole number"),
        (altered(LAUNCHERS[0], engine="steam"), "engine must be one of join"),
        (altered(LAUNCHERS[0], pending={"op": "withdraw", "id": "7"}), "pending: withdraw"),
        (altered(LAUNCHERS[1], pending=[]), "pending: not a JSON object"),
        (altered(LAUNCHERS[3], stage="dancing"), "stage must be one of"),
        (altered(LAUNCHERS[4], outcome="perhaps"), "outcome must be one of"),
        (altered(LAUNCHERS[4], reason="x" * 501), "reason must be a text"),
        (altered(Bounds(1, 8), min=9), "min 9 is above max 8"),
        (altered(Bounds(1, 8), min=True), "min must be a whole number"),
    ],
)
def test_what_a_launcher_cannot_mean_is_refused(line, problem):
    with pytest.raises(LineError, match=problem):
        from_launcher(line)


def test_nothing_is_sent_that_the_peer_would_refuse():
    with pytest.raises(LineError, match="nodes must be a list"):
        encode(Result("7", "done", "", ()))
    many = tuple(f"node-with-a-rather-long-name-{number}" for number in range(2000))
    with pytest.raises(LineError, match="at most 65536"):
        encode(Attach(1, "4", many, "join"))


@given(st.lists(st.sampled_from(AGENTS), max_size=6), st.integers(1, 50))
def test_lines_arrive_whole_however_the_stream_is_cut(messages, size):
    stream = b"".join(encode(message) for message in messages)
    buffer, found = Lines(), []
    for begin in range(0, len(stream), size):
        found += [from_agent(line) for line in buffer.feed(stream[begin : begin + size])]
    assert found == messages


def test_a_line_without_end_is_cut_off():
    buffer = Lines()
    assert list(buffer.feed(b"x" * 65_000)) == []
    with pytest.raises(LineError, match="more than 65536"):
        list(buffer.feed(b"x" * 1000))


@given(st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(["op", "id", "nodes", "add", "pending", "x"]), inner, max_size=5),
    max_leaves=20,
))  # fmt: skip
def test_senseless_lines_raise_nothing_else(said):
    for read in (from_agent, from_launcher):
        with contextlib.suppress(LineError):
            read(json.dumps(said).encode())


def test_the_room_imports_nothing_heavy():
    heavy = "{'numpy', 'grpc', 'pydantic', 'typer', 'google.protobuf', 'bridge.model'}"
    code = f"import sys, bridge.extensions.elastic.lines; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
