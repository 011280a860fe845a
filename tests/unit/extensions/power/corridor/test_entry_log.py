# SPDX-License-Identifier: Apache-2.0
import json
from dataclasses import asdict

import pytest

from bridge.errors import ConfigError
from bridge.extensions.power.corridor import entry_log as module
from bridge.extensions.power.corridor.entry_log import KEEP_S, Author, EntryLog, Wish
from bridge.extensions.power.rules import NO_UPPER_W

ROOT = Author("root", "operator.socket")
ANNE = Author("anne", "operator.socket")


def entered(*wishes, now_s=100):
    entry_log = EntryLog()
    for wish in wishes:
        entry_log, _ = entry_log.add([wish], ROOT, now_s)
    return entry_log


def standing(entry_log, now_s=100):
    return [entry.id for entry in entry_log.entries if entry.stands_at(now_s)]


def test_entries_are_numbered_and_say_who_entered_them():
    entry_log = entered(Wish(0, upper_w=5))
    entry_log, (entry,) = entry_log.add([Wish(200, 300, 1, 2, "test")], ANNE, 150)
    assert (entry.id, entry.author, entry.origin) == (2, "anne", "operator.socket")
    assert (entry.entered_s, entry.start_s, entry.end_s) == (150, 200, 300)
    assert (entry.lower_w, entry.upper_w, entry.reason) == (1, 2, "test")


def test_the_latest_that_stands_is_removed_first_and_can_be_restored():
    entry_log = entered(Wish(0, upper_w=5), Wish(0, upper_w=4), Wish(0, 90, upper_w=3), now_s=50)
    entry_log, gone = entry_log.remove(0, ANNE, 100)  # the third is over
    assert (gone.id, gone.removed_s, gone.removed_by) == (2, 100, "anne (operator.socket)")
    entry_log, gone = entry_log.remove(0, ANNE, 100)
    assert (gone.id, standing(entry_log)) == (1, [])
    entry_log, back = entry_log.restore(2, ROOT, 100)
    assert (back.removed_s, back.removed_by, standing(entry_log)) == (0, "", [2])
    assert entry_log.add([Wish(0, upper_w=1)], ROOT, 100)[1][0].id == 4


@pytest.mark.parametrize(
    ("order", "number", "problem"),
    [
        ("remove", 9, "has no entry 9"), ("remove", 1, "is over"), ("remove", 2, "removed already"),
        ("restore", 3, "is not removed"), ("restore", 9, "has no entry 9"),
    ],
)  # fmt: skip
def test_what_cannot_be_undone_is_said(order, number, problem):
    entry_log = entered(Wish(0, 90, upper_w=3), Wish(0, upper_w=4), Wish(0, upper_w=5), now_s=50)
    entry_log, _ = entry_log.remove(2, ROOT, 60)
    with pytest.raises(ConfigError, match=problem):
        getattr(entry_log, order)(number, ROOT, 100)


def test_without_entries_nothing_is_undone():
    with pytest.raises(ConfigError, match="has no entry that could be removed"):
        EntryLog().remove(0, ROOT, 100)


def test_a_removed_entry_that_is_over_is_not_restored():
    entry_log = entered(Wish(0, 200, upper_w=3))
    entry_log, _ = entry_log.remove(1, ROOT, 100)
    with pytest.raises(ConfigError, match="is over"):
        entry_log.restore(1, ROOT, 200)


@pytest.mark.parametrize(
    ("wish", "problem"),
    [
        (Wish(0), "name a lower bound"), (Wish(0, lower_w=5, upper_w=4), "above the upper"),
        (Wish(0, lower_w=-1), "must be from 0"), (Wish(0, upper_w=10**12 + 1), "must be from 0"),
        (Wish(0, lower_w=NO_UPPER_W), "must be from 0"), (Wish(300, 300, upper_w=1), "before it"),
    ],
)  # fmt: skip
def test_bounds_that_make_no_sense_are_refused(wish, problem):
    with pytest.raises(ConfigError, match=problem):
        entered(wish)


def test_a_group_is_replaced_as_a_whole_and_only_if_it_says_something_else():
    two = [Wish(0, upper_w=5), Wish(200, 300, upper_w=4)]
    entry_log, added = entered(Wish(0, upper_w=9)).add(two, ROOT, 100, "signal")
    assert [entry.id for entry in added] == [2, 3]
    same, added = entry_log.add(two, ANNE, 150, "signal")
    assert (same, added) == (entry_log, ())
    same, added = entry_log.add([two[0]], ANNE, 300, "signal")  # the other is over by then
    assert (same, added) == (entry_log, ())
    entry_log, added = entry_log.add([Wish(0, upper_w=6)], ANNE, 160, "signal")
    assert ([entry.id for entry in added], standing(entry_log)) == ([4], [1, 4])
    entry_log, added = entry_log.add([], ANNE, 170, "signal")
    assert (added, standing(entry_log)) == ((), [1])


def test_what_is_over_is_forgotten_after_a_while():
    entry_log = entered(Wish(0, 200, upper_w=3), Wish(0, upper_w=4))
    assert len(entry_log.pruned(199 + KEEP_S).entries) == 2
    entry_log = entry_log.pruned(200 + KEEP_S)
    assert [entry.id for entry in entry_log.entries] == [2]
    entry_log, _ = entry_log.remove(2, ROOT, 200 + KEEP_S)
    assert entry_log.pruned(200 + 2 * KEEP_S).entries == ()
    assert entry_log.pruned(200 + 2 * KEEP_S).add([Wish(0, upper_w=1)], ROOT, 1)[1][0].id == 3


def test_there_is_a_bound_on_entries(monkeypatch):
    monkeypatch.setattr(module, "MAX_STANDING", 3)
    monkeypatch.setattr(module, "MAX_KEPT", 4)
    entry_log = entered(*[Wish(0, upper_w=3)] * 3)
    with pytest.raises(ConfigError, match="more than 3 entries"):
        entry_log.add([Wish(0, upper_w=1)], ROOT, 100)
    for number in range(1, 8):
        entry_log, _ = entry_log.remove(number, ROOT, 100)
        entry_log, _ = entry_log.add([Wish(0, upper_w=1)], ROOT, 100)
        assert len(entry_log.entries) <= 4
    assert standing(entry_log) == [8, 9, 10]


def test_it_is_written_and_read_again():
    entry_log = entered(Wish(0, upper_w=NO_UPPER_W, reason="ü"), Wish(5, 700, 1, 2))
    entry_log, _ = entry_log.remove(2, ANNE, 100)
    assert EntryLog.read(entry_log.text()) == entry_log
    assert EntryLog.read(EntryLog().text()) == EntryLog()


@pytest.mark.parametrize(
    "text",
    [
        "", "[", "[]", "{}", '{"next_id": 1}', '{"next_id": 1, "entries": 5}', "null",
        '{"next_id": -1, "entries": [{}]}', '{"next_id": "x", "entries": []}',
    ],
)  # fmt: skip
def test_what_is_no_log_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        EntryLog.read(text)


@pytest.mark.parametrize(
    "change",
    [
        {"id": 2}, {"id": 0}, {"id": -1}, {"id": "1"}, {"start_s": 1.5}, {"end_s": 2**70},
        {"upper_w": -3}, {"upper_w": True}, {"reason": 7}, {"author": None},
    ],
)  # fmt: skip
def test_entries_that_were_tampered_with_are_left_out(change, caplog):
    """Those before and after them are in force."""
    entry_log = entered(Wish(0, upper_w=5), Wish(0, upper_w=6), Wish(0, upper_w=7))
    first, second, third = entry_log.entries
    if change.get("id") == 2:
        change = {"id": 3}
    odd = {**asdict(second), **change}
    text = json.dumps({"next_id": 4, "entries": [asdict(first), odd, asdict(third)]})
    kept = EntryLog.read(text)
    assert [entry.upper_w for entry in kept.entries][:1] == [5]
    assert len(kept.entries) == 2
    assert (kept.next_id, caplog.text.count("is left out")) == (4, 1)
    assert EntryLog.read(json.dumps({"next_id": 4, "entries": [7, asdict(first), {}, None]})
                         ).entries == (first,)  # fmt: skip


def test_what_is_found_later_lies_below():
    found = entered(Wish(0, upper_w=5), Wish(0, upper_w=6))
    found, _ = found.add([Wish(0, upper_w=7)], ROOT, 100, "signal")
    mine, _ = entered(Wish(0, upper_w=8)).add([Wish(0, upper_w=9)], ROOT, 100, "signal")
    both = mine.after(found)
    assert [(entry.id, entry.upper_w) for entry in both.entries] == [(1, 5), (2, 6), (4, 8), (5, 9)]
    assert both.next_id == 6
    assert EntryLog().after(found) == found
    assert mine.after(EntryLog(next_id=50)).next_id == 50
