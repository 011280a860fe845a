# SPDX-License-Identifier: Apache-2.0
"""When a rule is in force: a validity expanded to windows [start, end) of time.

Rules
    1. A cron expression opens a window at each minute it names, for a length. Windows that overlap
       are one.
    2. Cron and the length are in local time of the site's timezone: 22:00 to 8:00 remains that on
       every day. When the clock is set forward, a local time that is skipped is the moment of
       the change; when it is set back, a local time that occurs twice is the first one.
    3. A cron of minutes, hours and days of the week has a period (hour, day or week): its windows
       are found once and repeated. Of others (days of a month, months) days are searched, and the
       times of one day repeated.
    4. Cron has the usual five fields; days of the month and days of the week that are both stated
       mean either. `mon#1` is the month's first Monday, `L` a month's last day.

Source: Keller, JSSPP 2017, sections 3 (validity) and 5.4 (cronToRUSV).
Deviates: the paper does not say what its cron means when clocks change.
"""

import re
from collections.abc import Iterator
from datetime import timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
from croniter import CroniterBadDateError, CroniterError, croniter
from numpy.typing import NDArray

from bridge.model.rules.limits import Validity
from bridge.units import DAY_S, NEVER, local_time

HOUR_S = 3600
WEEK_S = 7 * DAY_S
_FIELD = re.compile(r"[0-9*,/\-]+")
_NAMED = re.compile(r"[0-9*,/\-A-Za-z#]+")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_NAMES = frozenset((*_MONTHS, "sun", "mon", "tue", "wed", "thu", "fri", "sat"))
_MAX_WINDOWS = 1_000_000


def check_cron(text: str) -> None:
    """Raises unless the text is a cron expression of five fields.

    Raises:
        ValueError: names the wrong field.
    """
    fields = text.split()
    if len(fields) != 5:
        raise ValueError("has five fields: minute, hour, day of month, month, day of week")
    for position, field in enumerate(fields):
        pattern = _NAMED if position >= 2 else _FIELD
        words = {word.lower() for word in re.findall(r"[A-Za-z]+", field)}
        if not pattern.fullmatch(field) or words - _NAMES - {"l"}:
            raise ValueError(f"cannot be understood at '{field}'")
    if fields[2] != "*" and re.search("[#lL]", fields[4]):
        raise ValueError(f"has days of the month and '{fields[4]}': state one of them")
    try:
        next(_starts(text, 0, 40 * 366 * DAY_S))
    except StopIteration:
        raise ValueError("never comes") from None
    except (CroniterError, ValueError, KeyError, TypeError) as error:
        raise ValueError(f"cannot be understood: {error}") from error


def period_s(cron: str) -> int | None:
    """The cron's period (hour, day or week), or None if it has none of these."""
    _, hour, day, month, weekday = cron.split()
    if day != "*" or month != "*" or "#" in weekday or "l" in weekday.lower():
        return None
    if weekday != "*":
        return WEEK_S
    return DAY_S if hour != "*" else HOUR_S


def windows(validity: Validity, timezone: str, from_s: int, until_s: int) -> NDArray[np.int64]:
    """Expands a validity.

    Args:
        timezone: IANA name.
        from_s: windows that end by then are left out.
        until_s: cron is evaluated up to then; absolute bounds reach beyond it.

    Returns:
        (n, 2) int64 starts and ends, ascending and disjoint; NEVER: without end.
    """
    if not validity.cron:
        found = np.array([[validity.start_s, validity.end_s]], dtype=np.int64)
    else:
        # Whole weeks, so that the next cycles find the same again.
        first, last = from_s // WEEK_S * WEEK_S, -(-until_s // WEEK_S) * WEEK_S
        found = _cron_windows(validity.cron, validity.length_s, timezone, first, last)
        found = np.clip(found, validity.start_s, min(validity.end_s, until_s))
    keep: NDArray[np.bool_] = (found[:, 1] > found[:, 0]) & (found[:, 1] > from_s)
    return found[keep]


@lru_cache(maxsize=256)
def _cron_windows(
    cron: str, length_s: int, timezone: str, from_s: int, until_s: int
) -> NDArray[np.int64]:
    # Two days more on either side: wall times differ from instants by less.
    begin = max(from_s - length_s - 2 * DAY_S, 0)
    wall = wall_windows(cron, length_s, begin, until_s + 2 * DAY_S)
    changes = _changes(timezone, begin, until_s + length_s + 4 * DAY_S)
    instants = _to_instants(wall, *changes)
    return instants[instants[:, 1] > instants[:, 0]]


def wall_windows(cron: str, length_s: int, from_s: int, until_s: int) -> NDArray[np.int64]:
    """The windows of a cron on a clock without changes; (n, 2), merged."""
    period = period_s(cron)
    if period is None:
        starts = np.fromiter(_starts_by_day(cron, from_s, until_s), dtype=np.int64)
        return _merged(np.stack((starts, starts + length_s), axis=1))
    offsets = np.arange(from_s // period, until_s // period + 1, dtype=np.int64) * period
    repeated = offsets[:, np.newaxis, np.newaxis] + _template(cron, length_s, period)
    within = np.clip(repeated.reshape(-1, 2), from_s, until_s)
    return _merged(within[within[:, 1] > within[:, 0]])


@lru_cache(maxsize=256)
def _template(cron: str, length_s: int, period: int) -> NDArray[np.int64]:
    """One period of a cron, cyclic: (n, 2) within [0, period], merged."""
    starts = np.fromiter(_starts(cron, 0, period), dtype=np.int64)
    ends = starts + min(length_s, period)
    over = ends[ends > period] - period  # of the period before
    pieces = (starts, np.minimum(ends, period)), (np.zeros_like(over), over)
    return _merged(np.concatenate([np.stack(piece, axis=1) for piece in pieces]))


def _merged(windows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same seconds as windows in order that neither overlap nor touch."""
    windows = windows[np.argsort(windows[:, 0], kind="stable")]
    until = np.maximum.accumulate(windows[:, 1])
    first = np.ones(len(windows), dtype=np.bool_)
    first[1:] = windows[1:, 0] > until[:-1]
    return np.stack((windows[first, 0], until[np.roll(first, -1)]), axis=1)


def openings_a_day(cron: str) -> int:
    """How often a cron opens on a day that it names."""
    minutes, hours = croniter.expand(cron)[0][:2]
    return (60 if minutes == ["*"] else len(minutes)) * (24 if hours == ["*"] else len(hours))


def _starts_by_day(cron: str, from_s: int, until_s: int) -> Iterator[int]:
    """As `_starts`, but a thousand times as fast if a day has many."""
    minute, hour, *day = cron.split()
    times = list(_starts(f"{minute} {hour} * * *", 0, DAY_S))
    for midnight in _starts(" ".join(("0 0", *day)), from_s // DAY_S * DAY_S, until_s):
        yield from (at for time in times if from_s <= (at := midnight + time) < until_s)


def _starts(cron: str, from_s: int, until_s: int) -> Iterator[int]:
    """Wall times in [from_s, until_s) that the cron names."""
    times = croniter(cron, float(from_s - 60 if from_s >= 60 else from_s - 1), ret_type=float)
    for _ in range(_MAX_WINDOWS):
        try:
            at = int(times.get_next())
        except CroniterBadDateError:
            return
        if at >= until_s:
            return
        if at >= from_s:
            yield at


@lru_cache(maxsize=64)
def _changes(
    timezone: str, from_s: int, until_s: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Changes of the zone's offset: (n,) instants, (n + 1,) offsets before, between and after."""
    zone = ZoneInfo(timezone)

    def offset(at: int) -> int:
        shift = local_time(at, zone).utcoffset() or timedelta()
        return int(shift.total_seconds())

    instants: list[int] = []
    offsets = [offset(from_s)]
    for day in range(from_s, until_s, DAY_S):
        low, high = day, day + DAY_S
        if offset(high) == offset(low):
            continue
        target = offset(low)
        while high - low > 1:
            middle = (low + high) // 2
            if offset(middle) == target:
                low = middle
            else:
                high = middle
        instants.append(high)
        offsets.append(offset(high))
    return np.array(instants, dtype=np.int64), np.array(offsets, dtype=np.int64)


def _to_instants(
    wall: NDArray[np.int64], changes: NDArray[np.int64], offsets: NDArray[np.int64]
) -> NDArray[np.int64]:
    """From wall time to Unix seconds (rule 2)."""
    before, after = offsets[:-1], offsets[1:]
    era = np.searchsorted(changes + np.maximum(before, after), wall, side="right")
    latest = np.concatenate((changes, [NEVER]))[era]
    instants: NDArray[np.int64] = np.minimum(wall - offsets[era], latest)
    return np.maximum(instants, 0)
