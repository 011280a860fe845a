# SPDX-License-Identifier: Apache-2.0
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from hypothesis import given, settings
from hypothesis import strategies as st

from bridge.model.rules.limits import ALWAYS, Validity
from bridge.planning.site_rules import validity
from bridge.planning.site_rules.validity import check_cron, period_s, wall_windows, windows
from bridge.units import DAY_S, NEVER

HOUR_S = 3600
BERLIN = "Europe/Berlin"


def at(text: str, zone: str = "UTC") -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp())


def shown(validity: Validity, zone: str, begin: str, end: str) -> list[str]:
    """Windows on the wall of the zone."""
    return [
        " - ".join(
            datetime.fromtimestamp(edge, UTC).astimezone(ZoneInfo(zone)).strftime("%m-%d %H:%M")
            for edge in window
        )
        for window in windows(validity, zone, at(begin, zone), at(end, zone)).tolist()
    ]


def test_always_and_absolute_bounds_need_no_horizon():
    assert windows(ALWAYS, "UTC", 100, 200).tolist() == [[0, NEVER]]
    assert windows(Validity(end_s=500), "UTC", 100, 200).tolist() == [[0, 500]]
    assert windows(Validity(300, 500), "UTC", 100, 200).tolist() == [[300, 500]]
    assert windows(Validity(300, 500), "UTC", 500, 900).tolist() == []


def test_the_papers_monday_and_friday_from_7_to_11():
    validity = Validity(cron="0 7 * * mon,fri", length_s=4 * HOUR_S)
    assert shown(validity, "UTC", "2018-01-01", "2018-01-09") == [
        "01-01 07:00 - 01-01 11:00",
        "01-05 07:00 - 01-05 11:00",
        "01-08 07:00 - 01-08 11:00",
    ]


def test_a_window_that_has_begun_counts():
    validity = Validity(cron="0 7 * * *", length_s=4 * HOUR_S)
    found = windows(validity, "UTC", at("2018-01-01 08:00"), at("2018-01-02"))
    assert found.tolist() == [[at("2018-01-01 07:00"), at("2018-01-01 11:00")]]


def test_cron_holds_only_within_the_absolute_bounds():
    validity = Validity(at("2018-01-01 09:00"), at("2018-01-03 08:00"), "0 7 * * *", 4 * HOUR_S)
    assert shown(validity, "UTC", "2017-12-01", "2018-02-01") == [
        "01-01 09:00 - 01-01 11:00",
        "01-02 07:00 - 01-02 11:00",
        "01-03 07:00 - 01-03 08:00",
    ]


def test_every_two_months_on_the_first_monday():
    validity = Validity(cron="0 8 * */2 mon#1", length_s=10 * HOUR_S)
    assert shown(validity, BERLIN, "2018-01-01", "2018-06-30") == [
        "01-01 08:00 - 01-01 18:00",
        "03-05 08:00 - 03-05 18:00",
        "05-07 08:00 - 05-07 18:00",
    ]


def test_windows_over_the_end_of_the_period_and_overlapping_ones_are_one():
    weekend = Validity(cron="0 20 * * wed,thu", length_s=30 * HOUR_S)  # 1970 began on a Thursday
    assert shown(weekend, "UTC", "2018-01-01", "2018-01-09") == ["01-03 20:00 - 01-06 02:00"]
    every_hour = Validity(cron="0 * * * *", length_s=HOUR_S)
    found = windows(every_hour, "UTC", 10 * DAY_S, 20 * DAY_S)
    assert len(found) == 1


def test_nights_are_nights_when_the_clock_is_set():
    night = Validity(cron="0 22 * * *", length_s=10 * HOUR_S)
    # Forward on 25 March 2018: 9 hours; back on 28 October 2018: 11 hours.
    assert shown(night, BERLIN, "2018-03-24 12:00", "2018-03-25 12:00") == [
        "03-24 22:00 - 03-25 08:00"
    ]
    spring = windows(night, BERLIN, at("2018-03-24 20:00"), at("2018-03-25 12:00"))
    autumn = windows(night, BERLIN, at("2018-10-27 19:00"), at("2018-10-28 12:00"))
    assert (spring[0, 1] - spring[0, 0]) == 9 * HOUR_S
    assert (autumn[0, 1] - autumn[0, 0]) == 11 * HOUR_S


def test_a_wall_time_that_is_left_out_is_the_moment_of_the_change():
    gone = Validity(cron="15 2 * * *", length_s=30 * 60)
    days = shown(gone, BERLIN, "2018-03-24", "2018-03-27")
    assert days == ["03-24 02:15 - 03-24 02:45", "03-26 02:15 - 03-26 02:45"]
    longer = Validity(cron="30 2 * * *", length_s=HOUR_S)
    assert "03-25 03:00 - 03-25 03:30" in shown(longer, BERLIN, "2018-03-24", "2018-03-27")


def test_a_wall_time_that_comes_twice_is_its_first():
    twice = Validity(cron="15 2 * * *", length_s=30 * 60)
    found = windows(twice, BERLIN, at("2018-10-28"), at("2018-10-28 12:00"))
    assert found.tolist() == [[at("2018-10-28 00:15"), at("2018-10-28 00:45")]]


@pytest.mark.parametrize(
    ("cron", "period"),
    [("5 * * * *", HOUR_S), ("5 1 * * *", DAY_S), ("5 1 * * 1-5", 7 * DAY_S),
     ("5 1 1 * *", None), ("5 1 * 2 *", None), ("5 1 * * mon#1", None)],
)  # fmt: skip
def test_periods(cron, period):
    assert period_s(cron) == period


field = st.sampled_from
crons = st.tuples(
    field(["0", "*/20", "5,50", "30-32"]), field(["*", "3", "*/7", "22-23"]),
    field(["*", "*", "13", "L"]), field(["*", "*", "2", "*/5"]),
    field(["*", "*", "1-5", "sun", "4", "fri#2"]),
).filter(lambda parts: parts[2] == "*" or "#" not in parts[4]).map(" ".join)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(crons, st.integers(60, 40 * HOUR_S), st.integers(0, 400))
def test_repeated_templates_equal_a_search_from_window_to_window(cron, length_s, day):
    begin = 1_500_000_000 // DAY_S * DAY_S + day * DAY_S
    end = begin + 20 * DAY_S
    expected: list[list[int]] = []
    times = croniter(cron, datetime.fromtimestamp(begin - 2 * DAY_S - 1, UTC), datetime)
    while (opens := times.get_next()) < datetime.fromtimestamp(end, UTC):
        start = int(opens.timestamp())
        if expected and start <= expected[-1][1]:
            expected[-1][1] = max(expected[-1][1], start + length_s)
        else:
            expected.append([start, start + length_s])
    expected = [[max(start, begin), min(stop, end)] for start, stop in expected if stop > begin]
    found = windows(Validity(cron=cron, length_s=length_s), "UTC", begin, end)
    found[:, 0] = found[:, 0].clip(min=begin)  # how long it has been open does not matter
    assert found.tolist() == expected


def test_a_long_horizon_is_repeated_not_searched():
    for_years = wall_windows("*/5 8-18 * * mon-fri", 60, 0, 20 * 366 * DAY_S)
    assert len(for_years) == pytest.approx(20 * 365.25 * 5 / 7 * 11 * 12, rel=0.01)


REFUSED = {
    "too few fields": ("0 8 * *", "five fields"),
    "seconds": ("0 0 8 * * *", "five fields"),
    "chance": ("R 8 * * *", "at 'R'"),
    "hash": ("H 8 * * *", "at 'H'"),
    "no weekday": ("0 8 * * monday", "at 'monday'"),
    "range": ("61 * * * *", "out of range"),
    "never": ("0 0 30 2 *", "never comes"),
    "day and nth weekday": ("0 8 13 * fri#2", "state one of them"),
    "words": ("every day at 8 h", "at 'every'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refuses(case):
    cron, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        check_cron(cron)


def test_windows_of_other_timezones_keep_to_their_wall():
    validity = Validity(cron="0 8 * * *", length_s=HOUR_S)
    for zone in (BERLIN, "America/New_York", "Asia/Kolkata", "Pacific/Auckland"):
        days = shown(validity, zone, "2018-01-01", "2018-12-31")
        assert len(days) == 364
        assert all(window[6:11] == "08:00" and window[-5:] == "09:00" for window in days)


@pytest.mark.parametrize(
    "cron", ["*/7 3-5 1-31 * *", "0 8 * */2 mon#1", "30 23 L * *", "15,45 * 13 * fri", "0 0 29 2 *"]
)
def test_days_are_searched_and_their_times_repeated(cron):
    from_s, until_s = 1_700_000_123, 1_700_000_123 + 500 * DAY_S
    slowly = list(validity._starts(cron, from_s, until_s))
    assert list(validity._starts_by_day(cron, from_s, until_s)) == slowly
