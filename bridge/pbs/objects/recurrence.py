# SPDX-License-Identifier: Apache-2.0
"""When standing reservations begin, each time, and on which vnodes.

Rules
    1. The rule repeats from the occurrence that `reserve_start` states, which is number
       `reserve_index` (from 1) of `reserve_count`; it is interpreted in `reserve_timezone`.
    2. A rule that has no further occurrence is searched until the year 9999. So it is evaluated in
       a later cycle of 400 years, after which the calendar repeats, weekdays included.
    3. `reserve_execvnodes` has the vnodes of all occurrences: `3#(n1:ncpus=1){0,2}(n2:ncpus=1){1}`.

Source: OpenPBS 23.06, pbs_rsub(1B); RFC 5545.
"""

import datetime
import re
from datetime import UTC
from zoneinfo import ZoneInfo

from dateutil.rrule import rrulestr  # type: ignore[import-untyped,unused-ignore]

from bridge.errors import BadRequest
from bridge.pbs.tables import Attributes, text
from bridge.units import local_time

MAX_OCCURRENCES = 1000
MAX_RULE = 512
_CYCLE_YEARS, _HORIZON_YEARS = 400, 20
_OF_VNODES = re.compile(r"([^{}#]+)\{([0-9,-]+)\}")
_SPAN = re.compile(r"([0-9]{1,4})(?:-([0-9]{1,4}))?")


def count_of(attributes: Attributes) -> int:
    """Returns how many occurrences a reservation has in all."""
    word = text(attributes, "reserve_count")
    return int(word) if word.isdecimal() and len(word) < 6 else 1


def index_of(attributes: Attributes) -> int:
    """Returns the number of the present or next occurrence, from 1."""
    word = text(attributes, "reserve_index")
    return max(int(word), 1) if word.isdecimal() and len(word) < 6 else 1


def begins(attributes: Attributes, start_s: int, count: int) -> list[int]:
    """Returns when a standing reservation begins, from the occurrence of `start_s` on.

    Args:
        start_s: the start of the first of them.

    Raises:
        BadRequest: its recurrence is not understood, or has too many or too few occurrences.
    """
    rule = text(attributes, "reserve_rrule")
    if not 1 <= count <= MAX_OCCURRENCES or len(rule) > MAX_RULE:
        raise BadRequest(f"more than {MAX_OCCURRENCES} occurrences")
    try:
        zone_name = text(attributes, "reserve_timezone")
        zone = ZoneInfo(zone_name) if zone_name else UTC
        begin = local_time(start_s, zone).replace(tzinfo=None)
        later = (datetime.MAXYEAR - _HORIZON_YEARS - begin.year) // _CYCLE_YEARS * _CYCLE_YEARS
        moved = begin.replace(year=begin.year + max(later, 0))
        found = []
        rest = ";".join(part for part in rule.split(";") if not part.upper().startswith("UNTIL="))
        for each in rrulestr(rest.removeprefix("RRULE:"), dtstart=moved):
            then = each.replace(year=each.year - max(later, 0), tzinfo=zone)
            found.append(int(then.timestamp()))
            if len(found) == count:
                break
    except (ValueError, KeyError, OverflowError, OSError) as error:
        raise BadRequest(f"recurrence rule is not understood: {error}") from None
    if len(found) < count:
        raise BadRequest("recurrence rule has fewer occurrences than the reservation")
    return found


def vnodes_by_occurrence(written: str) -> dict[int, str]:
    """Returns the vnodes of each occurrence, which are numbered from 0 there (rule 3)."""
    found: dict[int, str] = {}
    for vnodes, spans in _OF_VNODES.findall(written.partition("#")[2]):
        for span in spans.split(","):
            matched = _SPAN.fullmatch(span)
            if matched is not None:
                first, last = matched.group(1), matched.group(2) or matched.group(1)
                for index in range(int(first), min(int(last), MAX_OCCURRENCES) + 1):
                    found[index] = vnodes
    return found
