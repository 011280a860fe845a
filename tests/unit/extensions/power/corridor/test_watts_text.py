# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.extensions.power.corridor.corridor_entries import MAX_W
from bridge.extensions.power.corridor.watts_text import corridor, shown_watts, upper_watts, watts
from bridge.extensions.power.rules import NO_UPPER_W


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1700W", 1700), ("1700", 1700), (1700, 1700), ("1.7kW", 1700), ("2.5 kw", 2500),
        ("0.8MW", 800_000), ("0.8M", 800_000), ("0W", 0), (" 12 W ", 12), (2.0, 2),
    ],
)  # fmt: skip
def test_a_power_has_a_unit_or_is_in_watts(text, expected):
    assert watts(text) == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "must be a power"), ("abc", "must be a power"), ("-5W", "must be a power"),
        ("1e3", "must be a power"), ("nan", "must be a power"), (True, "must be a power"),
        (None, "must be a power"), ([1], "must be a power"), (float("nan"), "must be a power"),
        ("5mW", "milliwatts"), ("1.5W", "not a whole number"), ("1.0005kW", "not a whole number"),
        ("1000001MW", "more than"), ("9" * 400, "must be a power"), ("1kWh", "must be a power"),
        ("١٠W", "must be a power"),
    ],
)  # fmt: skip
def test_what_is_no_power_is_refused(text, problem):
    with pytest.raises(ValueError, match=problem):
        watts(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1700W-2500W", (1700, 2500)), ("1.7-2.5kW", (1700, 2500)), ("0-1MW", (0, 10**6)),
        ("1700 W - 2.5 kW", (1700, 2500)), ("1700-2500", (1700, 2500)),
        ("1700W-none", (1700, NO_UPPER_W)),
        ("800-0.9MW", None), ("2500W-1700W", None), ("2500W", None), ("-2500W", None),
        ("1700W-", None), ("", None), ("none-5W", None), ("1-2-3", None),
    ],
)  # fmt: skip
def test_a_corridor_is_two_powers(text, expected):
    if expected is None:
        with pytest.raises(ValueError, match=r"must be|above the upper"):
            corridor(text)
    else:
        assert corridor(text) == expected


@given(st.integers(0, MAX_W))
def test_what_is_shown_can_be_read_again(amount):
    assert watts(shown_watts(amount)) == amount


def test_no_bound_has_a_word():
    assert (shown_watts(NO_UPPER_W), upper_watts("None")) == ("none", NO_UPPER_W)
    assert [shown_watts(each) for each in (1700, 2500, 20_345, 1_200_000, 71)] == [
        "1.7 kW", "2.5 kW", "20.345 kW", "1.2 MW", "71 W",
    ]  # fmt: skip
