# SPDX-License-Identifier: Apache-2.0
"""Prime time and dedicated time: when which queues' jobs may run.

Terms
    period      prime or non-prime time without interruption.

Rules
    1. `holidays` states for each day of the week when prime and when non-prime time begins; the
       days of the year that it lists are non-prime. Without `YEAR` it is always prime time.
    2. A day that it does not mention is prime time.
    3. Jobs of queues of prime time start in prime time only, those of non-prime time likewise. With
       backfill_prime, no job starts that would run on beyond the period and its spill.
    4. `dedicated_time` lists spans. Jobs of dedicated queues run within them only, all others
       outside of them only.
    5. Times of day are those of the server's machine.

Source: OpenPBS 23.06, the files holidays and dedicated_time as installed.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, tzinfo
from functools import lru_cache

from bridge.errors import BadRequest
from bridge.pbs.objects.sched_config import SchedConfig
from bridge.units import local_time

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
ALL, NONE = -1, -2
FOREVER = 1 << 60
MAX_SPANS = 1000
_MAX_PERIODS = 16
_DAY_S = 86_400


@dataclass(frozen=True)
class Holidays:
    """Prime and non-prime time.

    Attributes:
        in_force: the file states a year.
        starts: for each day of the week when prime and non-prime time begin, minutes; or ALL, NONE.
        days: days of the year that are non-prime, from 1.
    """

    in_force: bool = False
    starts: tuple[tuple[int, int], ...] = ((ALL, NONE),) * 7
    days: frozenset[int] = frozenset()
    problems: tuple[str, ...] = ()


@lru_cache(maxsize=8)
def read_holidays(text: str | None) -> Holidays:
    """Reads the file; None: there is none."""
    starts = [(ALL, NONE)] * 7
    days, problems, in_force = set(), [], False
    for number, line in enumerate((text or "").splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words or words[0] == "HOLIDAYFILE_VERSION1":
            continue
        name = words[0].lower()
        try:
            if name == "year":
                in_force = len(words) > 1 and words[1].isdecimal() and int(words[1]) > 0
            elif name == "weekday" or name in DAYS:
                begin = (_minutes(words, 1), _minutes(words, 2))
                for at in range(5) if name == "weekday" else (DAYS.index(name),):
                    starts[at] = _sound(begin)
            elif words[0].isdecimal() and 1 <= int(words[0][:4]) <= 366:
                days.add(int(words[0]))
            else:
                raise BadRequest("is neither a day nor YEAR")
        except BadRequest as error:
            problems.append(f"holidays: line {number}: '{words[0][:20]}' {error}")
    return Holidays(in_force, tuple(starts), frozenset(days), tuple(problems))


def _minutes(words: Sequence[str], at: int) -> int:
    word = words[at].lower() if len(words) > at else ""
    if word in ("all", "none"):
        return ALL if word == "all" else NONE
    if not re.fullmatch(r"[0-9]{1,4}", word) or int(word) % 100 > 59 or int(word) > 2359:
        raise BadRequest("needs two times of day as HHMM, all or none")
    return int(word) // 100 * 60 + int(word) % 100


def _sound(begin: tuple[int, int]) -> tuple[int, int]:
    """Both `all`, or both `none`, is prime time."""
    return (ALL, NONE) if begin in ((ALL, ALL), (NONE, NONE)) else begin


def is_prime(holidays: Holidays, at: datetime) -> bool:
    if not holidays.in_force:
        return True
    if at.timetuple().tm_yday in holidays.days:
        return False
    prime, other = holidays.starts[at.weekday()]
    if prime == ALL or other == NONE:
        return not (prime == NONE or other == ALL)
    if prime == NONE or other == ALL:
        return False
    now = at.hour * 60 + at.minute
    return prime <= now < other if prime < other else not other <= now < prime


def period_end_s(holidays: Holidays, now_s: int, zone: tzinfo | None = None) -> int:
    """Returns when the period ends, Unix seconds; FOREVER: not within a week."""
    if not holidays.in_force:
        return FOREVER
    now = local_time(now_s, zone)
    present = is_prime(holidays, now)
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    for ahead in range(9):
        at = day + timedelta(days=ahead)
        begins = [each for each in (0, *sorted(holidays.starts[at.weekday()])) if each >= 0]
        for minutes in begins:
            then = at + timedelta(minutes=minutes)
            if then > now and is_prime(holidays, then) is not present:
                return int(then.timestamp())
    return FOREVER


Span = tuple[int, int]


@lru_cache(maxsize=8)
def read_dedicated(text: str | None, zone: tzinfo | None = None) -> tuple[list[Span], list[str]]:
    """Reads the spans of dedicated time in ascending order, and what is not understood."""
    spans, problems = [], []
    for number, line in enumerate((text or "").splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            begin, end = (_instant(words[at : at + 2], zone) for at in (0, 2))
            if begin >= end:
                raise BadRequest("ends before it begins")
            spans.append((begin, end))
        except BadRequest as error:
            problems.append(f"dedicated_time: line {number} {error}")
    return sorted(spans)[-MAX_SPANS:], problems


def _instant(words: Sequence[str], zone: tzinfo | None) -> int:
    found = re.fullmatch(r"(\d{1,2})/(\d{1,2})/(\d{2,4}) (\d{1,2}):(\d{2})", " ".join(words))
    if found is None:
        raise BadRequest("is not MM/DD/YYYY HH:MM MM/DD/YYYY HH:MM")
    month, day, year, hour, minute = map(int, found.groups())
    year += 0 if year > 1900 else 2000 if year < 90 else 1900
    try:
        return int(datetime(year, month, day, hour, minute, tzinfo=zone).timestamp())
    except (ValueError, OverflowError):
        raise BadRequest("has a date that does not exist") from None


@dataclass(frozen=True)
class Calendar:
    """What the time of day means for queues.

    Attributes:
        dedicated: spans in ascending order.
        zone: the zone of the times of day; None: this machine's.
    """

    config: SchedConfig = field(default_factory=SchedConfig)
    holidays: Holidays = field(default_factory=Holidays)
    dedicated: tuple[Span, ...] = ()
    zone: tzinfo | None = None

    def is_prime(self, now_s: int) -> bool:
        return is_prime(self.holidays, local_time(now_s, self.zone))

    def is_dedicated(self, queue: str) -> bool:
        """Tells whether a queue's jobs run in dedicated time only."""
        return bool(self.config.dedicated) and queue.startswith(self.config.dedicated)

    def span(self, now_s: int) -> Span | None:
        """Returns the present or next dedicated time."""
        return next((span for span in self.dedicated if span[1] > now_s), None)

    def is_within(self, now_s: int) -> bool:
        """Tells whether it is dedicated time."""
        span = self.span(now_s)
        return span is not None and span[0] <= now_s

    def closed(self, queue: str, now_s: int, limit_s: int) -> str:
        """Returns why a job may not start now, by the time of day; empty: it may.

        Args:
            now_s: the clock.
            limit_s: its time limit; 0: none.
        """
        return self._outside_dedicated(queue, now_s, limit_s) or self._outside_period(
            queue, now_s, limit_s, self.is_prime(now_s)
        )

    def _outside_dedicated(self, queue: str, now_s: int, limit_s: int) -> str:
        span, within = self.span(now_s), self.is_within(now_s)
        if self.is_dedicated(queue):
            if not within:
                return f"queue {queue} runs jobs in dedicated time only"
        elif within:
            return "it is dedicated time"
        if span is None:
            return ""
        if within:
            return "" if limit_s and now_s + limit_s <= span[1] else "dedicated time ends before it"
        return "" if limit_s and now_s + limit_s <= span[0] else "would run into dedicated time"

    def _outside_period(self, queue: str, now_s: int, limit_s: int, prime: bool) -> str:
        bound = self._bound(queue)
        if bound is not None and bound is not prime:
            return f"queue {queue} runs jobs in {'' if bound else 'non-'}prime time only"
        settings = self.config.at(prime=prime)
        if not settings.backfill_prime or (self.config.exempt_anytime and bound is None):
            return ""
        end_s = period_end_s(self.holidays, now_s, self.zone)
        if end_s == FOREVER:
            return ""
        other = self.config.at(prime=not prime)
        if limit_s and now_s + limit_s <= end_s + other.spill_s:
            return ""
        return f"would run into {'non-' if prime else ''}prime time"

    def _bound(self, queue: str) -> bool | None:
        """Whether jobs of a queue run in prime time only, in non-prime time only, or any time."""
        if self.config.nonprimetime and queue.startswith(self.config.nonprimetime):
            return False
        if self.config.primetime and queue.startswith(self.config.primetime):
            return True
        return None

    def begin_s(self, queue: str, now_s: int, limit_s: int) -> int:
        """Returns the begin of the first period in which a job may start; now_s: the present one.

        FOREVER: in none. Dedicated time is left out.
        """
        at_s = now_s
        for _ in range(_MAX_PERIODS):
            if not self._outside_period(queue, at_s, limit_s, self.is_prime(at_s)):
                return at_s
            at_s = period_end_s(self.holidays, at_s, self.zone)
            if at_s == FOREVER:
                break
        return FOREVER


ANY_TIME = Calendar()
