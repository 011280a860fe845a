# SPDX-License-Identifier: Apache-2.0
from zoneinfo import ZoneInfo

import pytest
from pydantic import TypeAdapter, ValidationError

from bridge.extensions.power.corridor.corridor_entries import CalendarEntry
from bridge.extensions.power.corridor.corridor_text import (
    CorridorCalendar,
    CorridorSection,
    check_calendar,
    openings,
)
from bridge.extensions.power.rules import NO_UPPER_W
from bridge.model.rules.limits import Validity

UTC = ZoneInfo("UTC")
READ = TypeAdapter(CorridorCalendar)


def test_an_entry_names_one_bound_or_both_and_when():
    calendar = READ.validate_python(
        [
            {"name": "contract", "upper": "300kW"},
            {"lower": 120_000, "upper": "none", "valid": {"from": "2018-01-01T00:00"}},
            {"upper": "0.24MW", "valid": {"cron": "0 17 * * mon-fri", "length": "3h"}},
        ]
    )
    assert [each.entry(UTC) for each in calendar] == [
        CalendarEntry("contract", None, 300_000),
        CalendarEntry("", 120_000, NO_UPPER_W, Validity(1_514_764_800)),
        CalendarEntry("", None, 240_000, Validity(cron="0 17 * * mon-fri", length_s=3 * 3600)),
    ]
    assert openings(calendar) == 1


def test_what_was_written_is_shown_as_it_was_written():
    said = {"name": "n", "upper": "2.5kW", "valid": {"cron": "0 1 * * *", "length": "8h"}}
    section = CorridorSection.model_validate(said)
    assert section.model_dump(mode="json", by_alias=True, exclude_defaults=True) == said


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ({}, "must name lower, upper or both"),
        ({"name": "x"}, "must name lower, upper or both"),
        ({"upper": "5 apples"}, "must be a power"),
        ({"lower": "none"}, "must be a power"),
        ({"lower": "2kW", "upper": "1kW"}, "lower 2kW above upper 1kW"),
        ({"upper": "1kW", "valid": {"cron": "61 * * * *", "length": "1h"}}, "cannot be understood"),
        ({"upper": "1kW", "valid": {"cron": "0 * * * *"}}, "belong together"),
        ({"upper": "1kW", "when": "always"}, "Extra inputs"),
    ],
)
def test_what_makes_no_sense_is_refused(entry, problem):
    with pytest.raises(ValidationError, match=problem):
        READ.validate_python([entry])


def test_an_entry_that_is_never_in_force_is_refused():
    mixed = {"from": "2018-01-01T12:00:00+00:00", "until": "2018-01-01T12:30"}  # 12:30 in Berlin
    calendar = READ.validate_python([{"upper": 5, "valid": mixed}])
    check_calendar(calendar, UTC)
    with pytest.raises(ValueError, match="before it begins"):
        check_calendar(calendar, ZoneInfo("Europe/Berlin"))
