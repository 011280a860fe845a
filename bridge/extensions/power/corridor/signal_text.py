# SPDX-License-Identifier: Apache-2.0
"""Bounds stated by another program, as JSON: the text of a signal file.

    {"upper": "240kW", "from": "2026-11-24T17:00:00+01:00", "until": "2026-11-24T20:00:00+01:00",
     "reason": "demand response"}

One entry, or a list of them, later ones on top. `lower` and `upper` are as in the configuration;
`from` and `until` are instants of ISO 8601, in the site's timezone if they name none, or Unix
seconds. Without `from` an entry is in force at once, without `until` as long as it is in the file.
Empty text, `{}` or `[]`: no entry.
"""

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import Field, ValidationError, field_validator

from bridge import json_text
from bridge.errors import ConfigError
from bridge.extensions.power.corridor.corridor_text import CorridorBounds
from bridge.extensions.power.corridor.entry_log import Wish, check_bounds
from bridge.extensions.power.corridor.watts_text import upper_watts, watts
from bridge.input_problems import problems_of
from bridge.planning.site_rules.values_text import Name
from bridge.units import NEVER

MAX_ENTRIES = 100
MAX_INSTANT_S = 253_402_128_000
"""The end of the calendar, 9999-12-30."""


class _SignalSection(CorridorBounds):
    from_: str | int | None = Field(default=None, alias="from")
    until: str | int | None = None
    reason: Name = ""

    @field_validator("from_", "until")
    @classmethod
    def _instant(cls, value: str | int | None) -> str | int | None:
        instant_s(value, ZoneInfo("UTC"))
        return value


def read_signal(text: str, zone: ZoneInfo, name: str) -> tuple[Wish, ...]:
    """Reads a signal.

    Args:
        text: JSON.
        name: the name of the file, for messages.

    Raises:
        ConfigError: the first error, with file and key.
    """
    try:
        value = json_text.load(text, parse_constant=_no_number) if text.strip() else []
    except (ValueError, OSError) as error:
        raise ConfigError("", f"is not valid JSON: {error}"[:200], file=name) from None
    listed = value if isinstance(value, list) else [value] if value else []
    if len(listed) > MAX_ENTRIES:
        raise ConfigError("", f"has more than {MAX_ENTRIES} entries", file=name)
    return tuple(
        _wish(each, zone, f"[{at}]" if isinstance(value, list) else "", name)
        for at, each in enumerate(listed)
    )


def _wish(value: Any, zone: ZoneInfo, where: str, name: str) -> Wish:
    if not isinstance(value, dict):
        problem = 'must be an object as {"upper": "240kW", "until": "2026-11-24T20:00"}'
        raise ConfigError(where, problem, file=name)
    try:
        stated = _SignalSection.model_validate(value)
    except ValidationError as error:
        raise problems_of(error, _SignalSection, key=where, file=name)[0] from None
    start_s, end_s = instant_s(stated.from_, zone), instant_s(stated.until, zone)
    wish = Wish(
        start_s=0 if start_s is None else start_s,
        end_s=NEVER if end_s is None else end_s,
        lower_w=None if stated.lower is None else watts(stated.lower),
        upper_w=None if stated.upper is None else upper_watts(stated.upper),
        reason=stated.reason,
    )
    try:
        check_bounds(wish)
    except ConfigError as error:
        raise ConfigError(where, error.problem, file=name) from None
    return wish


def instant_s(value: str | int | None, zone: ZoneInfo) -> int | None:
    """Reads an instant: ISO 8601, in the zone if it names none, or Unix seconds; None: none.

    Raises:
        ValueError: it is something else, or outside the calendar.
    """
    if value is None:
        return None
    at_s = value if isinstance(value, int) else -1
    if isinstance(value, str):
        try:
            at = datetime.fromisoformat(value.strip())
            at_s = int((at if at.tzinfo else at.replace(tzinfo=zone)).timestamp())
        except (ValueError, OverflowError):
            at_s = -1
    if not 0 <= at_s < MAX_INSTANT_S:
        raise ValueError(f"must be an instant as 2026-11-24T17:00:00+01:00, not {value!r:.60}")
    return at_s


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not a number")
