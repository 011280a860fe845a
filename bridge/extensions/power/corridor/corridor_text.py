# SPDX-License-Identifier: Apache-2.0
"""The calendar of the power corridor, as it is written in YAML: the list `planning.power.corridor`.

    corridor:
      - {name: contract, upper: 300kW}
      - {name: peak tariff, upper: 240kW, valid: {cron: 0 17 * * mon-fri, length: 3h}}
      - {name: night, lower: 120kW, valid: {cron: 0 22 * * *, length: 8h}}

Of the entries in force, later ones in the list take precedence. A bound that an entry does not name
is that of the entries before it.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Self
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, Field, model_validator

from bridge.extensions.power.corridor.corridor_entries import CalendarEntry
from bridge.extensions.power.corridor.watts_text import upper_watts, watts
from bridge.model.rules.limits import ALWAYS
from bridge.planning.site_rules.validity import openings_a_day
from bridge.planning.site_rules.validity_text import Valid
from bridge.planning.site_rules.values_text import Name, Section

MAX_ENTRIES = 1000


def power_text(value: object) -> object:
    """Checks a power; the text is kept as written, so that what is shown can be read again."""
    if value is not None:
        watts(value)
    return None if value is None else str(value)


def _upper(value: object) -> object:
    if value is not None:
        upper_watts(value)
    return None if value is None else str(value)


class CorridorBounds(Section):
    """A lower bound, an upper one or both; the other one stays as it is."""

    lower: Annotated[Name | None, BeforeValidator(power_text)] = Field(
        default=None, description="Lower bound: 120kW. Default: unchanged."
    )
    upper: Annotated[Name | None, BeforeValidator(_upper)] = Field(
        default=None,
        description="Upper bound: 300kW, or none. Default: unchanged.",
    )

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if self.lower is None and self.upper is None:
            raise ValueError("must name lower, upper or both")
        if (
            self.lower is not None
            and self.upper is not None
            and watts(self.lower) > upper_watts(self.upper)
        ):
            raise ValueError(f"has lower {self.lower} above upper {self.upper}")
        return self


class CorridorSection(CorridorBounds):
    """One entry of the calendar."""

    name: Name = Field(default="", description="Name for display.")
    valid: Valid = Field(default=None, description="When it is in force; default: always.")

    def entry(self, zone: ZoneInfo) -> CalendarEntry:
        """The same as a noun; dates are in the zone."""
        return CalendarEntry(
            name=self.name,
            lower_w=None if self.lower is None else watts(self.lower),
            upper_w=None if self.upper is None else upper_watts(self.upper),
            validity=ALWAYS if self.valid is None else self.valid.validity(zone),
        )


CorridorCalendar = Annotated[tuple[CorridorSection, ...], Field(max_length=MAX_ENTRIES)]
"""The list, as a field of a section."""


def check_calendar(entries: Sequence[CorridorSection], zone: ZoneInfo) -> None:
    """Raises unless each entry is in force at some time.

    Raises:
        ValueError: one ends before it begins.
    """
    for each in entries:
        if each.valid is None:
            continue
        when = each.valid.validity(zone)
        if when.start_s >= when.end_s:
            raise ValueError(f"valid ends ({each.valid.until}) before it begins")


def openings(entries: Sequence[CorridorSection]) -> int:
    """The maximum number of times per day at which recurring entries come into force."""
    crons = Counter(each.valid.cron for each in entries if each.valid is not None)
    return sum(count * openings_a_day(cron) for cron, count in crons.items() if cron is not None)
