# SPDX-License-Identifier: Apache-2.0
"""The controller's clock, and times that users state."""

import pytest

from bridge.errors import SnapshotError
from bridge.model.job import Hold
from bridge.rpc.reported.clock import LEAP_S, STAYS_S
from bridge.rpc.reported.tables import LATEST_S
from bridge.units import UNLIMITED_S
from tests.unit.rpc.worlds import (
    NOW_S,
    a_delta,
    a_full,
    a_hello,
    a_job,
    a_session,
    hold_of,
)


def test_time_runs_back_a_little_and_nobody_wonders():
    session = a_session(a_full([a_job()]))
    assert session.apply(a_delta(1, now_s=NOW_S - 60))
    assert session.snapshot()[0].now_s == NOW_S - 60


def test_time_that_runs_back_is_begun_anew(caplog):
    session = a_session(a_full([a_job()]))
    session.refuse("1", 1, "no", NOW_S)
    assert not session.apply(a_delta(1, now_s=NOW_S - 3600))
    assert f"now_s: runs back from {NOW_S} to {NOW_S - 3600}" in caplog.text
    assert session.apply(a_full([a_job()], now_s=NOW_S - 3600))
    assert hold_of(session)[0] == Hold.NONE
    assert session.apply(a_delta(1, now_s=NOW_S - 3500))


def test_time_never_leaps_by_centuries():
    session = a_session(a_full([a_job()]))
    far = NOW_S + 200 * 365 * 86_400
    assert not session.apply(a_delta(1, now_s=far))
    with pytest.raises(SnapshotError, match="now_s: jumps from"):
        session.apply(a_full(now_s=far))
    session.greet(a_hello())  # says nothing new
    with pytest.raises(SnapshotError):
        session.apply(a_full(now_s=far))
    assert session.apply(a_full())
    session.greet(a_hello(epoch=2))
    assert session.apply(a_full(epoch=2, now_s=far))


def test_a_clock_that_was_wrong_once_locks_nobody_out(caplog):
    session = a_session(a_full([a_job()], now_s=10 * NOW_S + 2 * LEAP_S))
    assert not session.apply(a_full(generation=2, now_s=NOW_S))
    for generation, at_s in enumerate(range(NOW_S + 10, NOW_S + STAYS_S, 10), 3):
        with pytest.raises(SnapshotError, match="now_s: jumps from"):
            session.apply(a_full(generation=generation, now_s=at_s))
    assert session.apply(a_full([a_job()], generation=20, now_s=NOW_S + STAYS_S))
    assert "the controller's clock stays" in caplog.text
    assert session.apply(a_delta(20, now_s=NOW_S + STAYS_S + 10))


def test_a_clock_that_leaps_to_and_fro_is_never_trusted():
    session = a_session(a_full())
    session.apply(a_full(generation=2, now_s=NOW_S + LEAP_S))
    for generation in range(3, 12):
        at_s = NOW_S + (1 + generation % 2) * LEAP_S + generation * STAYS_S
        with pytest.raises(SnapshotError, match="now_s: jumps from"):
            session.apply(a_full(generation=generation, now_s=at_s))
    assert session.apply(a_full(generation=20, now_s=NOW_S + 60))


FAR = 1 << 62


@pytest.mark.parametrize(
    ("said", "column", "value"),
    [
        ({"submit_s": -1}, "submit_s", 0),
        ({"begin_s": FAR}, "begin_s", LATEST_S - 1),
        ({"begin_s": -FAR}, "begin_s", 0),
        ({"eligible_s": FAR}, "eligible_s", LATEST_S - 1),
        ({"deadline_s": FAR}, "deadline_s", LATEST_S - 1),
        ({"deadline_s": -1}, "deadline_s", 1),
        ({"time_limit_s": -1}, "time_limit_s", 0),
        ({"time_limit_s": FAR}, "time_limit_s", UNLIMITED_S),
        ({"min_time_s": -1}, "min_time_s", 0),
        ({"min_time_s": FAR}, "min_time_s", UNLIMITED_S),
    ],
)
def test_times_of_users_are_brought_within_bounds(said, column, value):
    session = a_session(a_full([a_job("1", **said), a_job("2")]))
    assert getattr(session.snapshot()[0].jobs, column)[0] == value
