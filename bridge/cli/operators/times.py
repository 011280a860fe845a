# SPDX-License-Identifier: Apache-2.0
"""Instants and durations as users type them, in the forms of Slurm's own commands.

instants    2026-12-24, 2026-12-24T18:00[:30], 18:00 (the next one), now, now+90 (seconds),
            now+2hours
durations   90 (minutes), 90:30 (minutes:seconds), 2:00:00, 1-12, 1-12:00, 1-12:00:00,
            45s, 90m, 4h, 1h30m, 2d
"""

import re
from datetime import datetime, timedelta

from bridge.errors import RequestError
from bridge.planning.site_rules.values_text import duration
from bridge.units import DAY_S, local_time

_UNITS_S = {"": 1, "second": 1, "minute": 60, "hour": 3600, "day": DAY_S, "week": 7 * DAY_S}
_NOW = re.compile(r"now(?:\+(\d{1,9})(|second|minute|hour|day|week)s?)?")
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d))?")
_DAYS = re.compile(r"(?:(\d{1,5})-)?(\d{1,9})(?::(\d\d))?(?::(\d\d))?")


def instant_s(text: str, now_s: int, after_s: int | None = None) -> int:
    """Reads an instant, in local time.

    Args:
        after_s: a time of day is the next one after this instant; None: after now.

    Raises:
        RequestError: it is not an instant.
    """
    if found := _NOW.fullmatch(text):
        return now_s + int(found[1] or 0) * _UNITS_S[found[2] or ""]
    try:
        if found := _CLOCK.fullmatch(text):
            after = local_time(now_s if after_s is None else after_s)
            hour, minute, second = (int(part or 0) for part in found.groups())
            at = after.replace(hour=hour, minute=minute, second=second, microsecond=0)
            return int((at if at > after else at + timedelta(days=1)).timestamp())
        return int(datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError, OSError) as error:
        raise RequestError(
            text, 0, "is not a time (2026-12-24T18:00, 18:00, now or now+2hours)"
        ) from error


def duration_s(text: str) -> int:
    """Reads a duration.

    Raises:
        RequestError: it is not a duration, or zero.
    """
    seconds = 0
    if found := _DAYS.fullmatch(text):
        days, *parts = found.groups()
        first, second, third = (int(part or 0) for part in parts)
        if days is not None:
            seconds = int(days) * DAY_S + first * 3600 + second * 60 + third
        elif parts[2] is not None:
            seconds = first * 3600 + second * 60 + third
        else:
            seconds = first * 60 + second
    else:
        try:
            seconds = duration(text)
        except ValueError:
            seconds = 0
    if seconds <= 0:
        raise RequestError(text, 0, "is not a duration (90, 2:00:00, 1-12:00:00, 90m, 4h or 2d)")
    return seconds
