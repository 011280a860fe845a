# SPDX-License-Identifier: Apache-2.0
"""Changes by a signal file are logged, and one that changes every second does not fill the log."""

from itertools import pairwise

import pytest

from bridge.extensions.power.corridor.signal_changes import METHOD, PAUSE_S, SignalChanges


class Log:
    """A log whose clock is set by the test; the file has an owner, or is gone (-1)."""

    def __init__(self):
        self.found, self.clock_s = [], 1000.0
        self.changes = SignalChanges(
            self.found.append, clock=lambda: self.clock_s, now_s=lambda: self.clock_s
        )

    def write(self, *bounds, uid=0, every_s=1):
        """Changes from each of these bounds to the next."""
        for before, after in pairwise(bounds):
            self.changes.changed(uid, before, after)
            self.let_pass(every_s)

    def let_pass(self, seconds):
        for _ in range(int(seconds)):
            self.clock_s += 1
            self.changes.settle()

    def told(self):
        return [(each.before, each.after) for each in self.found]


@pytest.fixture
def log():
    return Log()


def test_changes_with_pauses_are_logged_one_by_one_at_once(log):
    for uid, pair in ((0, ("", "900 W")), (4_000_000, ("900 W", "800 W")), (-1, ("800 W", ""))):
        log.changes.changed(uid, *pair)
        assert log.told()[-1] == pair
        log.let_pass(PAUSE_S)
    assert [(each.uid, each.user) for each in log.found] == [
        (0, "root"), (4_000_000, "4000000"), (-1, "the file was removed"),
    ]  # fmt: skip
    assert {(each.method, each.done, each.result) for each in log.found} == {(METHOD, True, "done")}


def test_what_follows_within_a_while_is_one_entry_from_the_first_to_the_last(log):
    log.write("", "1", "2", "3", "4")
    assert log.told() == [("", "1")]
    log.let_pass(PAUSE_S)
    assert log.told() == [("", "1"), ("1", "4")]
    assert "the last of 3 changes since " in log.found[1].result
    log.let_pass(10 * PAUSE_S)
    log.write("4", "5")
    assert log.told()[2:] == [("4", "5")]


def test_a_file_that_changes_every_second_does_not_fill_the_log(log):
    minutes = 60
    log.write(*map(str, range(minutes * 60 + 1)))
    assert minutes - 2 <= len(log.found) <= minutes + 1
    assert log.told()[0] == ("0", "1")
    assert all(one[1] == two[0] for one, two in pairwise(log.told()))


def test_what_is_owed_is_logged_when_the_service_ends(log):
    log.write("", "1", "2", "3")
    log.changes.settle(ending=True)
    log.changes.settle(ending=True)
    assert log.told() == [("", "1"), ("1", "3")]


def test_bounds_that_are_as_before_after_several_changes_are_told(log):
    log.write("1", "2", "1", "2")
    log.let_pass(PAUSE_S)
    assert log.told() == [("1", "2"), ("2", "2")]
    assert "the last of 2 changes" in log.found[1].result


def test_refused_files_are_logged_once_in_a_while(log):
    for minute in range(3):
        for second in range(int(PAUSE_S)):
            log.changes.refused(4_000_000 + minute, f"problem {minute}-{second}")
            log.let_pass(1)
    assert [each.result for each in log.found] == [f"refused: problem {n}-0" for n in range(3)]
    assert [each.uid for each in log.found] == [4_000_000, 4_000_001, 4_000_002]
    assert not any(each.done for each in log.found)
