# SPDX-License-Identifier: Apache-2.0
"""When a rule is in force, as the check reads it: day by day, on the wall clock of the site.

Rules
    1. A cron expression opens at each minute that it names, for a length. Both are of the wall
       clock.
    2. Of a wall time that occurs twice, the first counts; one that is skipped is the moment of the
       change.
"""

from bisect import bisect_left
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import lru_cache
from zoneinfo import ZoneInfo

import numpy as np
from croniter import croniter
from numpy.typing import NDArray

from bridge.model.rules.limits import Validity
from bridge.units import DAY_S, local_time

_WEEK = 7  # days
_EPOCH = datetime(1970, 1, 1)


def windows(validity: Validity, timezone: str, from_s: int, until_s: int) -> NDArray[np.int64]:
    """(n, 2) the windows that end after `from_s`; those of cron end by `until_s`."""
    opened, end_s = [(validity.start_s, validity.end_s)], validity.end_s
    if validity.cron:
        first = from_s // DAY_S // _WEEK * _WEEK  # of whole weeks: the next cycles ask the same
        last = (until_s // DAY_S // _WEEK + 1) * _WEEK
        opened = _openings(validity.cron, validity.length_s, timezone, first, last)
        end_s = min(end_s, until_s)
    inside = ((max(begin, validity.start_s), min(end, end_s)) for begin, end in opened)
    found = [(begin, end) for begin, end in inside if max(begin, from_s) < end]
    return np.array(found, dtype=np.int64).reshape(-1, 2)


@lru_cache(maxsize=256)
def _openings(
    cron: str, length_s: int, timezone: str, first: int, last: int
) -> list[tuple[int, int]]:
    """The openings that reach into the days from `first` to `last`, in Unix seconds."""
    zone = ZoneInfo(timezone)
    first = max(first - length_s // DAY_S - 2, 0)  # wall clocks differ by less than a day
    wall: list[list[int]] = []
    for begin in _named(cron, first, last + 2):
        if wall and begin <= wall[-1][1]:
            wall[-1][1] = begin + length_s
        else:
            wall.append([begin, begin + length_s])
    return [(_instant(begin, zone), _instant(end, zone)) for begin, end in wall]


def _named(cron: str, first: int, last: int) -> Iterator[int]:
    """The wall times that a cron names, in seconds since 1970, ascending."""
    _, _, *day = cron.split()
    minutes, hours = (
        range(size) if field == ["*"] else sorted(map(int, field))
        for field, size in zip(croniter.expand(cron)[0], (60, 24), strict=False)
    )
    for number in range(first, last):
        if _is_named(" ".join(day), number):
            for hour in hours:
                yield from (number * DAY_S + hour * 3600 + minute * 60 for minute in minutes)


@lru_cache(maxsize=4096)
def _is_named(day_fields: str, number: int) -> bool:
    """Whether the fields for days name a day, counted from 1970."""
    return bool(croniter.match(f"0 0 {day_fields}", _EPOCH + timedelta(days=number)))


def _instant(wall_s: int, zone: ZoneInfo) -> int:
    """When a wall clock shows a time (rule 2)."""

    def offset(at_s: int) -> timedelta | None:
        return local_time(at_s, zone).utcoffset()

    wall = _EPOCH + timedelta(seconds=wall_s)
    instant = int(wall.replace(tzinfo=zone).timestamp())
    if local_time(instant, zone).replace(tzinfo=None) != wall:  # skipped
        before = int(wall.replace(tzinfo=zone, fold=1).timestamp())
        since = range(before, instant)
        instant = before + bisect_left(since, True, key=lambda at: offset(at) == offset(instant))
    return max(instant, 0)
