# SPDX-License-Identifier: Apache-2.0
from datetime import datetime

import pytest

from bridge.cli.operators.times import duration_s, instant_s
from bridge.errors import RequestError

NOW = int(datetime(2026, 11, 21, 12, 0, 0).timestamp())


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("now", datetime(2026, 11, 21, 12)),
        ("now+90", datetime(2026, 11, 21, 12, 1, 30)),
        ("now+2hours", datetime(2026, 11, 21, 14)),
        ("now+1day", datetime(2026, 11, 22, 12)),
        ("18:30", datetime(2026, 11, 21, 18, 30)),
        ("11:59:58", datetime(2026, 11, 22, 11, 59, 58)),
        ("2026-12-24", datetime(2026, 12, 24)),
        ("2026-12-24T18:00", datetime(2026, 12, 24, 18)),
        ("2026-12-24T18:00:01", datetime(2026, 12, 24, 18, 0, 1)),
    ],
)
def test_instants(text, at):
    assert instant_s(text, NOW) == int(at.timestamp())


def test_a_time_of_day_is_the_next_one_after_another_instant():
    """At noon, from 11:00 until 13:00 is tomorrow: both ends, not the beginning alone."""
    begins = instant_s("11:00", NOW)
    assert instant_s("13:00", NOW, begins) == int(datetime(2026, 11, 22, 13).timestamp())
    assert instant_s("10:00", NOW, begins) == int(datetime(2026, 11, 23, 10).timestamp())
    assert instant_s("now+2hours", NOW, begins) == int(datetime(2026, 11, 21, 14).timestamp())


@pytest.mark.parametrize("text", ["", "soon", "25:00", "now+", "now+2moons", "2026-13-01", "12"])
def test_what_is_no_instant(text):
    with pytest.raises(RequestError, match="is not a time"):
        instant_s(text, NOW)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 5400), ("90:30", 5430), ("2:00:00", 7200), ("1-12", 129600), ("1-0:30", 88200),
        ("1-00:00:05", 86405), ("45s", 45), ("90m", 5400), ("1h30m", 5400), ("2d", 172800),
    ],
)  # fmt: skip
def test_durations(text, seconds):
    assert duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0:00", "long", "-5", "1:2:3:4"])
def test_what_is_no_duration(text):
    with pytest.raises(RequestError, match="is not a duration"):
        duration_s(text)
