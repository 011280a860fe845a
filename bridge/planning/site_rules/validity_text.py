# SPDX-License-Identifier: Apache-2.0
"""When a limit or FreePool is in force, as text: the key `valid`."""

from datetime import date, datetime, timedelta
from typing import Annotated, Self
from zoneinfo import ZoneInfo

from pydantic import (
    BeforeValidator,
    Field,
    field_validator,
    model_validator,
)

from bridge.model.rules.limits import (
    Validity,
)
from bridge.planning.site_rules.validity import check_cron
from bridge.planning.site_rules.values_text import Duration, Section, seconds
from bridge.units import NEVER


class ValidSection(Section):
    """When a rule is in force; dates and cron are in the timezone of the section."""

    from_: date | datetime | None = Field(
        default=None, alias="from", description="First day, or first instant."
    )
    until: date | datetime | None = Field(
        default=None, description="Last day (inclusive), or the instant at which it ends."
    )
    cron: str | None = Field(
        default=None,
        max_length=200,
        description="Five fields: minute, hour, day, month, day of week.",
    )
    length: Duration = Field(
        default=None, description="How long it is in force, from each time that cron names."
    )

    @field_validator("from_", "until", mode="before")
    @classmethod
    def _instant(cls, value: object) -> object:
        if value is None or isinstance(value, date):  # YAML reads dates; a datetime is one
            return value
        try:
            text = str(value)
            return date.fromisoformat(text) if len(text) <= 10 else datetime.fromisoformat(text)
        except ValueError as error:
            raise ValueError("must be a date such as 2017-08-31, or 2017-08-31 18:00") from error

    @field_validator("cron")
    @classmethod
    def _known_cron(cls, value: str | None) -> str | None:
        if value is not None:
            check_cron(value)
        return value

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if (self.cron is None) != (self.length is None):
            raise ValueError("cron and length belong together")
        if self.cron is None and self.from_ is None and self.until is None:
            raise ValueError("must state from, until, or cron and length; or leave it out: always")
        aware = [
            isinstance(at, datetime) and at.tzinfo is not None for at in (self.from_, self.until)
        ]
        if self.from_ is not None and self.until is not None and aware[0] == aware[1]:
            stated = self.validity(ZoneInfo("UTC"))
            if stated.start_s >= stated.end_s:
                raise ValueError(f"ends ({self.until}) before it begins ({self.from_})")
        return self

    def validity(self, zone: ZoneInfo) -> Validity:
        """The same, in Unix seconds."""
        return Validity(
            start_s=0 if self.from_ is None else _instant_s(self.from_, zone),
            end_s=NEVER if self.until is None else _instant_s(self.until, zone, whole_day=True),
            cron=" ".join((self.cron or "").split()),
            length_s=seconds(self.length) or 0,
        )


def _instant_s(at: date | datetime, zone: ZoneInfo, *, whole_day: bool = False) -> int:
    try:
        if not isinstance(at, datetime):
            at = datetime.combine(at + timedelta(days=whole_day), datetime.min.time())
        return max(int((at if at.tzinfo else at.replace(tzinfo=zone)).timestamp()), 0)
    except OverflowError:  # the first or the last day of the calendar
        return 0 if at.year == 1 else NEVER


def _always(value: object) -> object:
    return None if value == "always" else value


Valid = Annotated[ValidSection | None, BeforeValidator(_always)]
