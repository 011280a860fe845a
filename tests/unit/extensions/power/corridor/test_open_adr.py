# SPDX-License-Identifier: Apache-2.0
import json

import pytest

from bridge.errors import ConfigError
from bridge.extensions.power.corridor.entry_log import Wish
from bridge.extensions.power.corridor.open_adr import read_event
from bridge.units import NEVER

NEW_YEAR_S = 1_514_764_800
PERIOD = {"start": "2018-01-01T00:00:00Z", "duration": "PT1H"}


def limit(value):
    return {"payloads": [{"type": "IMPORT_CAPACITY_LIMIT", "values": [value]}]}


def event(*intervals, **more):
    return json.dumps({"programID": "1", "intervals": list(intervals), **more})


def test_intervals_follow_each_other():
    text = event(limit(240), limit(0.0015), intervalPeriod=PERIOD, eventName="peak")
    assert read_event(text) == (
        "peak",
        (
            Wish(NEW_YEAR_S, NEW_YEAR_S + 3600, upper_w=240_000, reason="peak"),
            Wish(NEW_YEAR_S + 3600, NEW_YEAR_S + 7200, upper_w=1, reason="peak"),
        ),
    )


def test_periods_of_their_own_units_and_other_payloads():
    own = {"start": "2018-01-01T05:00:00+01:00", "duration": "P1DT30M"}
    other = {"payloads": [{"type": "PRICE", "values": [0.2]}]}
    text = event(
        other,
        {**limit(2), "intervalPeriod": own},
        limit(3),
        intervalPeriod=PERIOD,
        payloadDescriptors=[{"payloadType": "IMPORT_CAPACITY_LIMIT", "units": "MW"}],
    )
    start_s, lasts_s = NEW_YEAR_S + 4 * 3600, 86_400 + 1800
    assert read_event(text)[1] == (
        Wish(start_s, start_s + lasts_s, upper_w=2 * 10**6),
        Wish(start_s + lasts_s, start_s + lasts_s + 3600, upper_w=3 * 10**6),
    )


@pytest.mark.parametrize("duration", [None, "P9999Y"])
def test_without_an_end_from_now_on(duration):
    text = event(limit(5), intervalPeriod={"start": "0001-01-01T00:00:00", "duration": duration})
    assert read_event(text)[1] == (Wish(0, NEVER, upper_w=5000),)


def period(**change):
    return event(limit(5), intervalPeriod={**PERIOD, **change})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not valid JSON"), ("[" * 100_000, "not valid JSON"), ("[]", "event: must be an obj"),
        ('{"intervals": NaN}', "NaN is not a number"), ("{}", "intervals: must be a list"),
        (b"\xff\xfe", "not valid JSON"), (event(), "have no payload IMPORT_CAPACITY_LIMIT"),
        (event(limit(5)), r"intervals.0: has no start"), (event(7), r"intervals.0: must be an obj"),
        (event(*[limit(5)] * 101, intervalPeriod=PERIOD), "at most 100"),
        (event(limit(-1), intervalPeriod=PERIOD), "values: must be one power"),
        (event(limit("5"), intervalPeriod=PERIOD), "values: must be one power"),
        (event(limit(True), intervalPeriod=PERIOD), "values: must be one power"),
        (event(limit(1e300), intervalPeriod=PERIOD), "values: must be one power"),
        (event(limit(10**400), intervalPeriod=PERIOD), "values: must be one power|not valid JSON"),
        (event(limit(10**10), intervalPeriod=PERIOD), "upper must be from 0"),
        (event({}, intervalPeriod=PERIOD), "payloads: must be a list"),
        (event({"payloads": limit(1)["payloads"] * 2}, intervalPeriod=PERIOD), "is there twice"),
        (event(limit(5), limit(4), intervalPeriod={"start": "2018-01-01"}), "does not end"),
        (period(duration="1h"), "duration: must be a duration as"),
        (period(duration="P1Y"), "duration: must be a duration as"),
        (period(duration="PT0S"), "longer than 0 s"), (period(duration="P99999W"), "ten years"),
        (period(start="soon"), "start: must be an instant"), (period(start=5), "start: must be"),
        (period(start="0001-01-01"), "not 'now', where a duration is given"),
        (period() [:-1] + ', "eventName": 7}', "eventName: must be a text"),
        (period()[:-1] + ', "payloadDescriptors": [{"payloadType": "IMPORT_CAPACITY_LIMIT",'
         ' "units": "HP"}]}', "units must be one of"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_named(text, problem):
    with pytest.raises(ConfigError, match=problem):
        read_event(text)
