# SPDX-License-Identifier: Apache-2.0
"""The log of changes: bounded, and whole after any end of the service."""

import os

import pytest

from bridge.state import change_log
from bridge.state.change_log import MOST_TEXT, ChangeLog, LoggedChange


def a_change(at_s, user="ann", **settings):
    usual = {"uid": 1000, "method": "Policy", "before": "a", "after": "b", "result": "done"}
    return LoggedChange(at_s=at_s, user=user, done=True, **(usual | settings))


def times(changes):
    return [each.at_s for each in changes]


def test_it_is_read_again_in_order(tmp_path):
    log = ChangeLog(tmp_path / "changes.jsonl")
    for at_s in range(5):
        log.add(a_change(at_s, "ann" if at_s % 2 else "bob\n\x1b[2J"))
    again = ChangeLog(tmp_path / "changes.jsonl")
    assert times(again.last(3)) == [2, 3, 4]
    assert times(again.last(10, since_s=4)) == [4]
    assert [each.user for each in again.last(2)] == ["ann", "bob\n\x1b[2J"]
    assert (tmp_path / "changes.jsonl").stat().st_mode & 0o777 == 0o600
    assert len((tmp_path / "changes.jsonl").read_bytes().splitlines()) == 5


def test_its_files_are_bounded_and_the_last_changes_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(change_log, "MOST_BYTES", 2000)
    log = ChangeLog(tmp_path / "changes.jsonl")
    for at_s in range(200):
        log.add(a_change(at_s, after="x" * 20 * MOST_TEXT if at_s == 3 else "b"))
        assert sum(each.stat().st_size for each in tmp_path.iterdir()) < 2 * 2000 + 2 * MOST_TEXT
    assert sorted(each.name for each in tmp_path.iterdir()) == ["changes.jsonl", "changes.jsonl.1"]
    found = times(log.last(1000))
    assert found == list(range(found[0], 200))
    assert len(found) > 10


@pytest.mark.parametrize("tail", [b'{"at_s": 9, "ui', b"\xff\xfe\n", b"[]\n", b'{"at_s": "x"}\n'])
def test_a_damaged_line_costs_no_other(tmp_path, tail):
    path = tmp_path / "changes.jsonl"
    ChangeLog(path).add(a_change(1))
    with path.open("ab") as file:
        file.write(tail)
    log = ChangeLog(path)
    log.add(a_change(2))
    assert times(log.last(10)) == [1, 2]


def test_where_it_cannot_be_written_the_last_are_held(tmp_path, caplog):
    log = ChangeLog(tmp_path / "nowhere" / "changes.jsonl")
    for at_s in range(3):
        log.add(a_change(at_s))
    assert times(log.last(10)) == [0, 1, 2]
    assert sum("are not written" in record.message for record in caplog.records) == 1


def test_it_follows_no_link(tmp_path):
    (tmp_path / "changes.jsonl").symlink_to(tmp_path / "target")
    ChangeLog(tmp_path / "changes.jsonl").add(a_change(1))
    assert not os.path.lexists(tmp_path / "target")
