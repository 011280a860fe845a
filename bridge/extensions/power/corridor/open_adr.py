# SPDX-License-Identifier: Apache-2.0
"""Demand response: events in the form of OpenADR 3, read as bounds of system power.

    {"programID": "1", "eventName": "evening peak",
     "payloadDescriptors": [{"payloadType": "IMPORT_CAPACITY_LIMIT", "units": "KW"}],
     "intervalPeriod": {"start": "2026-11-24T17:00:00Z", "duration": "PT1H"},
     "intervals": [{"id": 0, "payloads": [{"type": "IMPORT_CAPACITY_LIMIT", "values": [240]}]},
                   {"id": 1, "payloads": [{"type": "IMPORT_CAPACITY_LIMIT", "values": [200]}]}]}

Rules
    1. An interval with a payload IMPORT_CAPACITY_LIMIT is an upper bound; others are ignored.
       An event without such a payload is refused.
    2. Intervals follow each other from the event's start, each for the event's duration, unless
       they have a period of their own. A start in the year 1 is now; without a duration, or for
       P9999Y, an interval does not end.
    3. Units are those of the payload's descriptor, by default kW. Fractions of a watt are dropped.

Source: OpenADR 3.0 and 3.1, objects event, interval, intervalPeriod, valuesMap.
Deviates: programs, targets, priorities, reports and randomizeStart are not read.
"""

import math
import re
from datetime import UTC, datetime
from typing import Any, Final, NoReturn

from bridge import json_text
from bridge.errors import ConfigError
from bridge.extensions.power.corridor.entry_log import MAX_TEXT, Wish, check_bounds
from bridge.units import DAY_S, NEVER

LIMIT: Final = "IMPORT_CAPACITY_LIMIT"
MAX_INTERVALS = 100
MAX_DURATION_S = 10 * 366 * DAY_S
_UNITS: Final = {"W": 1, "KW": 10**3, "MW": 10**6}
_DURATION = re.compile(
    r"P(?:([0-9]{1,5})W)?(?:([0-9]{1,5})D)?"
    r"(?:T(?:([0-9]{1,7})H)?(?:([0-9]{1,7})M)?(?:([0-9]{1,9})S)?)?"
)
_FOREVER = "P9999Y"


def read_event(text: str | bytes) -> tuple[str, tuple[Wish, ...]]:
    """Reads an event.

    Returns:
        Its name, and its bounds.

    Raises:
        ConfigError: the first error, with its place in the event.
    """
    try:
        value = json_text.load(text, parse_constant=_no_number)
    except (ValueError, OSError) as error:
        _refuse("", f"is not valid JSON: {error}"[:200])
    event = _mapping(value, "event")
    name = event.get("eventName")
    if name is not None and not (isinstance(name, str) and len(name) <= MAX_TEXT):
        _refuse("eventName", f"must be a text of at most {MAX_TEXT} characters")
    intervals = _listed(event.get("intervals"), "intervals")
    scale = _scale(event)
    start_s, duration_s = _period(event.get("intervalPeriod"), "intervalPeriod")
    at_s: int | None = start_s
    wishes = []
    for number, each in enumerate(intervals):
        where = f"intervals.{number}"
        interval = _mapping(each, where)
        lasts_s = duration_s
        if interval.get("intervalPeriod") is not None:
            at_s, lasts_s = _period(interval["intervalPeriod"], f"{where}.intervalPeriod")
        if at_s is None:
            _refuse(where, "has no start, or follows an interval that does not end")
        end_s = NEVER if lasts_s is None else at_s + lasts_s
        watts = _limit(interval, where, scale)
        if watts is not None:
            wish = Wish(at_s, end_s, upper_w=watts, reason=name or "")
            check_bounds(wish)
            wishes.append(wish)
        at_s = None if end_s == NEVER else end_s
    if not wishes:
        _refuse("intervals", f"have no payload {LIMIT}: nothing else is understood here")
    return name or "", tuple(wishes)


def _scale(event: dict[str, Any]) -> int:
    descriptors = event.get("payloadDescriptors")
    units = "KW"
    for number, each in enumerate(_listed(descriptors or [], "payloadDescriptors")):
        found = _mapping(each, f"payloadDescriptors.{number}")
        if found.get("payloadType") == LIMIT and found.get("units") is not None:
            units = found["units"]
    if not (isinstance(units, str) and units in _UNITS):
        _refuse("payloadDescriptors", f"units must be one of {', '.join(_UNITS)}")
    return _UNITS[units]


def _limit(interval: dict[str, Any], where: str, scale: int) -> int | None:
    """The upper bound of an interval, W; None: it has none."""
    found = None
    for number, each in enumerate(_listed(interval.get("payloads"), f"{where}.payloads")):
        payload = _mapping(each, f"{where}.payloads.{number}")
        if payload.get("type") != LIMIT:
            continue
        key = f"{where}.payloads.{number}.values"
        values = _listed(payload.get("values"), key)
        number_given = len(values) == 1 and type(values[0]) in (int, float)
        if not number_given or not 0 <= values[0] < 10**12 or not math.isfinite(values[0]):
            _refuse(key, "must be one power of at least 0")
        if found is not None:
            _refuse(key, f"{LIMIT} is there twice")
        found = int(values[0] * scale)
    return found


def _period(value: Any, where: str) -> tuple[int | None, int | None]:
    """Start and duration of a period; None: not stated."""
    if value is None:
        return None, None
    period = _mapping(value, where)
    start = period.get("start")
    if not isinstance(start, str):
        _refuse(f"{where}.start", "must be an instant as 2026-11-24T17:00:00Z")
    try:
        at = datetime.fromisoformat(start.strip())
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        start_s = 0 if at.year == 1 else int(at.timestamp())
    except (ValueError, OverflowError):
        _refuse(f"{where}.start", "must be an instant as 2026-11-24T17:00:00Z")
    duration = period.get("duration")
    if duration is None or duration == _FOREVER:
        return max(start_s, 0), None
    found = _DURATION.fullmatch(duration) if isinstance(duration, str) else None
    if found is None:
        _refuse(f"{where}.duration", "must be a duration as PT2H30M, P1D or P9999Y")
    weeks, days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    total = (7 * weeks + days) * DAY_S + hours * 3600 + minutes * 60 + seconds
    if not 0 < total <= MAX_DURATION_S:
        _refuse(f"{where}.duration", "must be longer than 0 s and at most ten years")
    if not start_s:
        _refuse(f"{where}.start", "must be an instant, not 'now', where a duration is given")
    return start_s, total


def _mapping(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        _refuse(where, "must be an object")
    return value


def _listed(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list) or len(value) > MAX_INTERVALS:
        _refuse(where, f"must be a list of at most {MAX_INTERVALS}")
    return value


def _refuse(where: str, problem: str) -> NoReturn:
    raise ConfigError(where, problem)


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not a number")
