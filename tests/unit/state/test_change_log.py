# SPDX-License-Identifier: Apache-2.0
"""The log of changes: bounded for each author, whole after any end, and nobody waits for it."""

import json
import os
import threading
from contextlib import closing

import pytest

from bridge.rpc.pb import operator_pb2 as pb
from bridge.state import change_files, change_log
from bridge.state.change_files import MAX_TEXT
from bridge.state.change_log import (
    MAX_AUTHORS,
    MAX_HELD,
    MAX_OWED,
    MAX_PER_AUTHOR,
    SHORT,
    ChangeLog,
)
from bridge.units import NEVER


@pytest.fixture
def path(tmp_path):
    return tmp_path / "changes.jsonl"


def a_change(at_s, user="root", **settings):
    usual = {"uid": 0, "method": "Policy", "before": "a", "after": "b", "result": "done"}
    return pb.OperatorChange(**({"at_s": at_s, "user": user, "done": True} | usual | settings))


def a_refusal(at_s, uid, user=None):
    refused = {"result": "refused: only administrators", "after": "x" * MAX_TEXT, "done": False}
    return a_change(at_s, user or f"user{uid}", uid=uid, **refused)


def wrote(path, *changes):
    """Logs an administrator's changes; those that the log lists then."""
    with closing(ChangeLog(path)) as log:
        for change in changes:
            log.add(change, admin=True)
        return log.last(MAX_HELD)


def times(changes):
    return [each.at_s for each in changes]


def test_it_is_read_again_in_order(tmp_path, path):
    wrote(path, *(a_change(at_s, "ann" if at_s % 2 else "bob\n\x1b[2J") for at_s in range(5)))
    with closing(ChangeLog(path)) as again:
        assert times(again.last(3)) == [2, 3, 4]
        assert times(again.last(10, since_s=4)) == [4]
        assert [each.user for each in again.last(2)] == ["ann", "bob\n\x1b[2J"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(path.read_bytes().splitlines()) == 5


def test_its_files_are_bounded_and_the_last_changes_kept(tmp_path, path, monkeypatch):
    monkeypatch.setattr(change_files, "MAX_BYTES", 2000)
    for at_s in range(200):
        change = a_change(at_s, after="x" * 20 * MAX_TEXT if at_s == 3 else "b")
        change_files.append(path, change_log._bounded(change, MAX_TEXT))
        assert sum(each.stat().st_size for each in tmp_path.iterdir()) < 2 * 2000 + 2 * MAX_TEXT
    assert sorted(each.name for each in tmp_path.iterdir()) == ["changes.jsonl", "changes.jsonl.1"]
    found = times(wrote(path))
    assert found == list(range(found[0], 200))
    assert len(found) > 10


def a_line(**odd):
    sound = {"at_s": 9, "uid": 0, "user": "eve", "method": "Policy", "done": True}
    return json.dumps(sound | odd).encode() + b"\n"


def test_lines_have_all_fields_and_numbers_are_numbers(path):
    wrote(path, a_change(9), a_change(10, uid=1001, done=False))
    fields = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [(each["at_s"], each["uid"], each["done"]) for each in fields] == [
        (9, 0, True), (10, 1001, False),
    ]  # fmt: skip
    assert [(each.at_s, each.done) for each in wrote(path)] == [(9, True), (10, False)]


DAMAGED = {
    "cut off": b'{"at_s": 9, "ui',
    "no text": b"\xff\xfe\n",
    "no object": b"[]\n",
    "no number": b'{"at_s": "x"}\n',
    "no fields": b"{}\n",
    "half a character": a_line(user="\ud800"),
    "an instant beyond all": a_line(at_s=NEVER),
    "a user beyond all": a_line(uid=1 << 32),
    "a text beyond all": a_line(after="x" * (MAX_TEXT + 1)),
    "a field of another version": a_line(why="x"),
}


@pytest.mark.parametrize("tail", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_line_costs_no_other(path, tail):
    """Nor is it listed: no answer to operators could hold it."""
    wrote(path, a_change(1))
    with path.open("ab") as file:
        file.write(tail)
    wrote(path, a_change(2))
    assert times(wrote(path)) == [1, 2]


def test_where_it_cannot_be_written_the_last_are_held(tmp_path, caplog):
    found = wrote(tmp_path / "nowhere" / "changes.jsonl", *map(a_change, range(3)))
    assert times(found) == [0, 1, 2]
    assert sum("are not written" in record.message for record in caplog.records) == 1


def test_it_follows_no_link(tmp_path, path):
    for name in ("changes.jsonl", "changes-of-others.jsonl.new"):
        (tmp_path / name).symlink_to(tmp_path / "target")
    with closing(ChangeLog(path)) as log:
        log.add(a_change(1), admin=True)
        log.add(a_refusal(2, 1000), admin=False)
    assert not os.path.lexists(tmp_path / "target")


def test_a_flood_of_users_pushes_out_nobody_else(tmp_path, path, monkeypatch):
    monkeypatch.setattr(change_files, "MAX_BYTES", 20_000)
    with closing(ChangeLog(path)) as log:
        log.add(a_change(1), admin=True)
        log.add(a_change(2, "ann", uid=1001), admin=True)
        log.add(a_refusal(3, 2002), admin=False)
        for at_s in range(4, 3000):
            log.add(a_refusal(at_s, 2001), admin=False)
        listed = log.last(MAX_HELD)
    with closing(ChangeLog(path)) as again:
        assert again.last(MAX_HELD) == listed
        # The shortest list has the last entries of administrators, too.
        assert times(again.last(2)) == [1, 2, 2998, 2999]
    flood = list(range(3000 - MAX_PER_AUTHOR, 3000))
    assert times(listed) == [1, 2, 3, *flood]
    assert times(each for each in listed if each.uid == 2001) == flood
    assert max(len(each.after) for each in listed) == SHORT
    assert len(path.read_bytes().splitlines()) == 2
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "changes-of-others.jsonl", "changes.jsonl",
    ]  # fmt: skip


def test_a_user_with_many_ids_is_one_author():
    log = ChangeLog(None)
    log.add(a_refusal(1, 2001), admin=False)
    log.add(a_refusal(2, 2002), admin=False)
    for uid in range(100_000, 100_000 + 2 * MAX_AUTHORS):
        log.add(a_refusal(uid, uid, str(uid)), admin=False)
    found = [each.uid for each in log.last(MAX_HELD)]
    assert found[:2] == [2001, 2002]
    assert len(found) == 2 + MAX_PER_AUTHOR


def test_authors_are_bounded():
    log = ChangeLog(None)
    for uid in range(2 * MAX_AUTHORS):
        log.add(a_refusal(uid, uid), admin=False)
    assert times(log.last(MAX_HELD)) == list(range(MAX_AUTHORS, 2 * MAX_AUTHORS))


def test_nobody_waits_for_a_hung_disk(path, monkeypatch, caplog):
    """Every entry is listed at once; those for which there is room are written later."""
    hangs, answers, waited = threading.Event(), threading.Event(), []

    def fsync(_):
        hangs.set()
        waited.append(all(waited) and answers.wait(60))

    monkeypatch.setattr(os, "fsync", fsync)
    with closing(ChangeLog(path)) as log:
        log.add(a_change(0), admin=True)
        hangs.wait()
        for at_s in range(1, MAX_OWED + 3):
            log.add(a_change(at_s), admin=True)
            log.add(a_refusal(at_s, 2001), admin=False)
        listed = times(each for each in log.last(MAX_HELD) if each.uid == 0)
        assert listed == list(range(MAX_OWED + 3))[-MAX_HELD:]
        assert sum("are not written" in record.message for record in caplog.records) == 1
        answers.set()
    assert all(waited), "an answer waited for the disk"
    assert len(path.read_bytes().splitlines()) == 1 + MAX_OWED


def test_what_is_in_force_is_known_after_a_restart(path):
    """The last of two texts, also if the disk refuses it at first."""
    with closing(ChangeLog(path)) as log:
        assert log.was_in_force is None
        log.keep("one")
        log.keep("two")
    with closing(ChangeLog(path)) as log:
        assert log.was_in_force == "two"
    assert path.with_name(change_files.IN_FORCE).stat().st_mode & 0o777 == 0o600


def test_what_is_in_force_is_written_again_if_the_disk_was_full(path, monkeypatch, caplog):
    monkeypatch.setattr(change_log, "SAVE_EVERY_S", 0.01)
    tried, written, write = [], threading.Event(), change_files.replace_in_force

    def refuse_twice(path, text):
        tried.append(text)
        if len(tried) <= 2:
            raise OSError(28, "No space left on device")
        write(path, text)
        written.set()

    monkeypatch.setattr(change_files, "replace_in_force", refuse_twice)
    with closing(ChangeLog(path)) as log:
        log.keep("one")
        assert written.wait(60)
    assert change_files.read_in_force(path) == "one"
    assert caplog.text.count("No space left") == 1
