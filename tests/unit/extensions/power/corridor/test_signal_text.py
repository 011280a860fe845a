# SPDX-License-Identifier: Apache-2.0
import json
from zoneinfo import ZoneInfo

import pytest

from bridge.errors import ConfigError
from bridge.extensions.power.corridor.entry_log import Wish
from bridge.extensions.power.corridor.signal_text import read_signal
from bridge.extensions.power.rules import NO_UPPER_W
from bridge.units import NEVER

BERLIN = ZoneInfo("Europe/Berlin")


def read(value):
    return read_signal(value if isinstance(value, str) else json.dumps(value), BERLIN, "f.json")


def test_an_entry_or_a_list_of_them():
    one = {"upper": "240kW", "until": "2018-01-01T01:00", "reason": "tariff"}
    assert read(one) == (Wish(0, 1_514_764_800, None, 240_000, "tariff"),)
    two = [one, {"lower": 5, "upper": "none", "from": "2018-01-01T00:00:00Z"}]
    assert read(two)[1] == Wish(1_514_764_800, NEVER, 5, NO_UPPER_W)
    assert read({"upper": 5, "from": 7, "until": 9}) == (Wish(7, 9, None, 5),)


@pytest.mark.parametrize("text", ["", " \n", "{}", "[]", "null"])
def test_no_entry(text):
    assert read(text) == ()


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("[", "f.json: is not valid JSON"), ('{"upper": NaN}', "NaN is not a number"),
        ("5", "object"),
        ("[" * 100_000, "is not valid JSON"), ([{"upper": 5}, 7], r"f.json: \[1\]: must be an"),
        ({"upper": "5 apples"}, "f.json: upper: must be a power"), ({"reason": "x"}, "must name"),
        ({"upper": 5, "until": "soon"}, "until: must be an instant"),
        ({"upper": 5, "until": 10**30}, "until: must be an instant"),
        ({"upper": 5, "until": -5}, "until: must be an instant"),
        ({"upper": 5, "from": "2018-01-02", "until": "2018-01-01"}, "ends before it begins"),
        ({"upper": 5, "for": "2h"}, "for: unknown key; there are lower, upper"),
        ({"lower": 6, "upper": 5}, "lower 6 above upper 5"),
        ([{"upper": 5}] * 101, "more than 100"),
        ({"upper": 5, "reason": "x" * 256}, "reason: is longer than 255"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(value, problem):
    with pytest.raises(ConfigError, match=problem):
        read(value)
