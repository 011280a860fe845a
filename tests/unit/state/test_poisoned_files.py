# SPDX-License-Identifier: Apache-2.0
"""What is read at the start: one broken line or row leaves the others as they are without it."""

import json
import sqlite3
from contextlib import closing

from google.protobuf.json_format import MessageToDict

from bridge.rpc.operators.changes import changes_reply
from bridge.rpc.pb import operator_pb2 as pb
from bridge.state import announced_starts
from bridge.state.announced_starts import SCHEMA, summarise
from bridge.state.change_files import MAX_TEXT, others_file
from bridge.state.change_log import ChangeLog
from bridge.state.memory_writer import _read_promises
from tests.unit.state.test_change_log import a_change

NOW_S = 1_790_000_000
VALUES = (
    None, -1, 2**63, 10**400, 1.5, float("nan"), "x", "a\n\x1b[2J", "\ud800", "y" * 10_000, [], {},
)  # fmt: skip


def test_a_line_of_the_log_of_changes_that_holds_anything_hides_no_other(tmp_path):
    """The answer to operators is made, and lists the others."""
    path = tmp_path / "changes.jsonl"
    sound = [
        MessageToDict(a_change(at_s, user=name), preserving_proto_field_name=True)
        for at_s, name in ((1, "ann"), (2, "bob"))
    ]
    lines = [json.dumps(each).encode() for each in sound]
    odd = [json.dumps({**sound[0], name: value}).encode() for name in sound[0] for value in VALUES]
    odd += [b"", b"{", b"[" * 100_000, b"\xff\xfe", b"null", b'{"at_s": ' + b"9" * 5000 + b"}"]
    for line in odd:
        for file in (path, others_file(path)):
            file.write_bytes(b"\n".join([lines[0], line, lines[1]]) + b"\n")
        with closing(ChangeLog(path)) as log:
            answer = pb.ChangesReply.FromString(
                changes_reply(log, pb.ChangesRequest(limit=20).SerializeToString())
            )
        found = [each.user for each in answer.changes]
        assert found.count("ann") >= 2, line[:200]
        assert found.count("bob") >= 2, line[:200]
        assert max(len(each.after) for each in answer.changes) <= MAX_TEXT


def test_an_announced_start_that_holds_anything_drops_no_other():
    sound = {"1": NOW_S, "2": NOW_S + 60}
    for value in VALUES:
        text = json.dumps({"by": "easy", "planned_start_s": {"1": NOW_S, "9": value, **sound}})
        found = _read_promises(text)
        assert (found.by, found.start_s) == ("easy", sound), value


def a_memory(rows, gone):
    database = sqlite3.connect(":memory:")
    database.executescript(SCHEMA)
    for table, found in (("started", rows), ("gone", gone)):
        for row in found:
            marks = ", ".join("?" * len(row))
            database.execute(f"INSERT INTO {table} VALUES ({marks})", row)
    return summarise(database, NOW_S, 90, 0)


def test_a_row_of_the_records_of_starts_that_holds_anything_changes_no_other():
    width = 3 + len(announced_starts.FIELDS)
    sound = [
        (str(at), NOW_S - 60 * at, "p", *([NOW_S - 60 * at] * 4), 0, 0, 0) for at in range(1, 4)
    ]
    gone = [("7", NOW_S - 50, "p", *sound[0][3:]), ("8", NOW_S - 40, "p", *sound[0][3:])]
    expected = a_memory(sound, gone)
    values = ("x", b"\xff", -1, 0, 2**62, -(2**63), 1e300)
    for column in range(1, width):
        for value in values:
            if column == 2 or (value == 0 and column > 2):
                continue
            odd = ("9", NOW_S - 5, "p", *sound[0][3:])
            odd = (*odd[:column], value, *odd[column + 1 :])
            found = a_memory([*sound, odd], [*gone, odd])
            assert (found.since_s, found.step_s) == (expected.since_s, expected.step_s), odd
            assert list(map(str, found.lines)) == list(map(str, expected.lines)), odd
