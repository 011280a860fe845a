# SPDX-License-Identifier: Apache-2.0
"""Units and special instants; names elsewhere contain their unit (`_s`, `_mib`, `_w`).

Instants are Unix seconds, durations seconds, both int64. Intervals are half open.
"""

from datetime import datetime, tzinfo
from math import isfinite
from typing import Final

NEVER: Final = 2**63 - 1
"""Start of a job that cannot run, even on an empty system."""

UNPLANNED: Final = -1
"""Start of a job that was not planned: it is held, or beyond the reservation depth."""

DAY_S: Final = 86_400
BOUND_S: Final = 10
"""Jobs shorter than this count as this long in the bounded slowdown."""

UNLIMITED_S: Final = 365 * DAY_S
"""Time limit with which unlimited jobs are planned; a year, so that sums do not overflow."""


STEPS_PER_MS: Final = 1_000_000
"""Kernel steps that count as a millisecond of work. Budgets are counted in steps, so that results
do not depend on the machine; a step takes about a nanosecond."""

_CYCLE_YEARS: Final = 400
_CYCLE_S: Final = 146_097 * DAY_S
"""The Gregorian calendar repeats after 400 years, days of the week included."""

_CALENDAR_S: Final = (DAY_S, 253_402_128_000)
"""Between these `datetime` knows every instant in every timezone: 1970-01-02, 9999-12-30."""


def _in_calendar(at_s: int) -> tuple[int, int]:
    """Returns an instant in the range of `datetime`, and the years by which the given is later."""
    at_s = int(at_s)
    if _CALENDAR_S[0] <= at_s < _CALENDAR_S[1]:
        return at_s, 0
    cycles = (at_s - _CYCLE_S) // _CYCLE_S
    return at_s - cycles * _CYCLE_S, cycles * _CYCLE_YEARS


def local_time(at_s: int, zone: tzinfo | None = None) -> datetime:
    """Returns the wall clock at an instant, in this machine's timezone or in a given one.

    Outside the range of `datetime` the year is wrong; all else is right.
    """
    return datetime.fromtimestamp(_in_calendar(at_s)[0], zone)


def format_instant(at_s: int, form: str = "%Y-%m-%dT%H:%M:%S") -> str:
    """Writes an instant in local time, as Slurm's commands do: `2026-11-21T09:30:00`.

    Any integer is accepted, as times come from users and other programs. `NEVER` is written
    `never`. All instants in the package are formatted by this function.

    Args:
        form: a format of `strftime`.
    """
    if at_s == NEVER:
        return "never"
    there, later = local_time(at_s), _in_calendar(at_s)[1]
    return there.strftime(form.replace("%Y", f"{there.year + later:04d}"))


def format_clock(at_s: int, now_s: int) -> str:
    """Writes an instant as a time of day, with the date if it is not today: `09:30:00`."""
    day = "%Y-%m-%d"
    if format_instant(at_s, day) == format_instant(now_s, day):
        return format_instant(at_s, "%H:%M:%S")
    return format_instant(at_s, f"{day} %H:%M")


def format_duration(duration_s: float) -> str:
    """Writes a duration for display: `45 s`, `12 min`, `3 h 20 min`, `2 d 4 h`.

    Infinite values and NaN are written `unknown`.
    """
    if not isfinite(duration_s):
        return "unknown"
    seconds = round(duration_s)
    if seconds < 60:
        return f"{seconds} s"
    if seconds < 3600:
        return f"{seconds // 60} min"
    if seconds < DAY_S:
        hours, minutes = seconds // 3600, seconds % 3600 // 60
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = seconds // DAY_S, seconds % DAY_S // 3600
    return f"{days} d {hours} h" if hours else f"{days} d"
