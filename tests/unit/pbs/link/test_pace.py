# SPDX-License-Identifier: Apache-2.0
"""How often the service is asked, and how much is written into jobs."""

import pytest

from bridge.pbs.link.announcer import REWRITE_S, Announcer, Backlog, TimeAllowance
from bridge.pbs.link.pace import LONGEST_S, Pace


def rests(pace, call_s, period_s, calls):
    """The rest before each of some calls that become due at a period, s."""
    now, found = 100.0, []
    for _ in range(calls):
        found.append(pace.rests_s(now))
        now += found[-1]
        pace.pay(now)
        pace.took(call_s)
        now += period_s
    return found


def test_short_calls_of_single_jobs_never_rest():
    assert rests(Pace(), 0.004, 0.05, 100) == [0.0] * 100


def test_calls_without_a_pause_take_a_share_of_the_time():
    found = rests(Pace(), 0.02, 0.02, 100)
    assert found[:3] == [0.0] * 3
    assert found[-1] == pytest.approx(0.04, abs=0.005)


def test_long_calls_are_not_spaced_further_than_the_longest():
    assert max(rests(Pace(), 3.0, 0.0, 50)) <= LONGEST_S


def test_what_was_saved_is_written_at_once_and_the_rest_at_its_share():
    allowance, now, waited = TimeAllowance(0.25), 50.0, 0.0
    for _ in range(100):
        now += 0.01
        rest = allowance.rests_s(0.01, now)
        waited += rest
        now += rest
    assert now - 50.0 == pytest.approx((1.0 - 0.3) / 0.25, rel=0.02)
    assert allowance.rests_s(0.0, now + 60) == 0.0
    assert allowance.rests_s(0.29, now + 60) == 0.0
    assert allowance.rests_s(0.02, now + 60) > 0.0


def test_an_announcement_that_moves_is_written_at_once_and_then_at_intervals():
    backlog, written = Backlog(), []
    for tenth in range(300):
        now = 100.0 + tenth / 10
        backlog.add("1.srv", {"comment": str(tenth)}, now)
        backlog.ripen(now)
        written += [(now, attributes["comment"]) for _, attributes in backlog.take(5, now)]
    assert [text for _, text in written] == ["0", "100", "200"]
    assert written[1][0] - written[0][0] == pytest.approx(REWRITE_S)


def test_the_newest_announcement_is_written_when_its_time_has_come():
    backlog = Backlog()
    backlog.add("1.srv", {"comment": "old"}, 0.0)
    assert backlog.take(5, 0.0) == [("1.srv", {"comment": "old"})]
    backlog.add("1.srv", {"comment": "newer"}, 1.0)
    backlog.add("1.srv", {"comment": "newest"}, 2.0)
    backlog.ripen(REWRITE_S - 0.1)
    assert backlog.take(5, REWRITE_S - 0.1) == []
    backlog.ripen(REWRITE_S)
    assert backlog.take(5, REWRITE_S) == [("1.srv", {"comment": "newest"})]


def test_an_announcement_that_is_as_it_was_is_not_written():
    backlog = Backlog()
    backlog.add("1.srv", {"comment": "old"}, 0.0)
    backlog.take(5, 0.0)
    backlog.add("1.srv", {"comment": "other"}, 1.0)
    backlog.add("1.srv", {"comment": "old"}, 2.0)
    backlog.ripen(100.0)
    assert len(backlog) == 0


def test_jobs_that_start_or_leave_are_forgotten():
    backlog = Backlog()
    for job_id in ("1.srv", "2.srv", "3.srv"):
        backlog.add(job_id, {"comment": "waits"}, 0.0)
    backlog.take(1, 0.0)
    backlog.add("1.srv", {"comment": "differs"}, 1.0)
    backlog.forget(["2.srv"])
    backlog.keep_only({"3.srv": {}})
    backlog.ripen(100.0)
    assert backlog.take(5, 100.0) == [("3.srv", {"comment": "waits"})]


def test_what_does_not_hold_any_more_is_not_written():
    backlog = Backlog()
    for job_id in ("1.srv", "2.srv"):
        backlog.add(job_id, {"estimated": "then"}, 0.0)
    backlog.withdraw("1.srv")
    assert backlog.take(5, 0.0) == [("2.srv", {"estimated": "then"})]
    backlog.add("2.srv", {"estimated": "later"}, 1.0)
    backlog.withdraw("2.srv")
    backlog.ripen(100.0)
    assert len(backlog) == 0


def test_what_is_written_again_is_counted():
    backlog = Backlog()
    for now in (0.0, 2 * REWRITE_S):
        for job_id in ("1.srv", "2.srv"):
            backlog.add(job_id, {"comment": str(now)}, now)
        backlog.add(f"new at {now}", {"comment": "new"}, now)
        assert len(backlog.take(5, now)) == 3
        assert backlog.written_again == (2 if now else 0)


def taken(announcer, batches):
    """The job and the attribute of each write of some batches, and the limited part of each."""
    found = [announcer._take() for _ in range(batches)]
    writes = [[(job_id, *attributes) for job_id, attributes in batch] for batch, _ in found]
    return writes, [limited for _, limited in found]


def test_the_first_comments_go_before_all_estimates_and_without_a_pause(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("bridge.pbs.link.announcer.time.monotonic", lambda: now[0])
    announcer = Announcer(None, 0.25)
    for number in range(7):
        announcer.write(str(number), {"comment": "later", "estimated": {"start_time": "9"}})
    writes, limited = taken(announcer, 5)
    kinds = [kind for batch in writes for _, kind in batch]
    assert kinds == ["comment"] * 7 + ["estimated"] * 7
    assert [job for batch in writes for job, _ in batch] == [*map(str, range(7))] * 2
    assert limited == [0.0, 0.0, 1.0, 1.0, 0.0]
    now[0] += 2 * REWRITE_S
    for number in range(12):
        announcer.write(str(number), {"comment": "soon", "estimated": {"start_time": "8"}})
    announcer.forget("3")
    writes, limited = taken(announcer, 6)
    assert [batch[0][1] for batch in writes[:4]] == [
        "comment", "estimated", "comment", "comment",
    ]  # fmt: skip
    assert limited[:3] == [1.0, 1.0, pytest.approx(0.2)]
    assert "3" not in {job for batch in writes for job, _ in batch}
