# SPDX-License-Identifier: Apache-2.0
"""Instants and durations have a text whatever they are."""

import datetime
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.units import DAY_S, NEVER, format_clock, format_duration, format_instant, local_time

ANY = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    st.integers(253_402_300_800 - 2 * DAY_S, 253_402_300_800 + 2 * DAY_S),
    st.integers(-2 * DAY_S, 2 * DAY_S),
)


@given(ANY, ANY)
def test_every_instant_has_a_text(at_s, now_s):
    assert format_instant(at_s)
    assert format_clock(at_s, now_s)
    assert format_instant(np.int64(at_s)) == format_instant(at_s)
    local_time(at_s)


@given(st.integers(0, 253_402_300_799 - DAY_S))
def test_instants_of_the_calendar_are_as_datetime_writes_them(at_s):
    assert format_instant(at_s) == datetime.datetime.fromtimestamp(at_s).isoformat()


@given(st.integers(253_402_300_800, 2**63 - 2))
def test_later_years_go_on_counting(at_s):
    year, rest = format_instant(at_s).split("-", 1)
    cycles = (int(year) - 2000) // 400
    there = datetime.datetime.fromisoformat(f"{int(year) - 400 * cycles}-{rest}")
    # Around the change to winter time a wall clock means two instants.
    assert abs(there.timestamp() + cycles * 146_097 * DAY_S - at_s) <= 7200


def test_special_instants():
    assert format_instant(NEVER) == "never"
    assert format_instant(253_402_300_800 + 30 * DAY_S).startswith("10000-01-")
    assert format_clock(1_000_000, 1_000_060) == format_instant(1_000_000, "%H:%M:%S")
    assert format_clock(253_402_300_800 + DAY_S, 0).startswith("10000-01-0")


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_duration_is_unknown(value):
    assert format_duration(value) == "unknown"


@given(st.floats(allow_nan=True, allow_infinity=True))
def test_every_duration_has_a_text(value):
    assert format_duration(value)
