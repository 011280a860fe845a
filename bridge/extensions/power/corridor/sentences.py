# SPDX-License-Identifier: Apache-2.0
"""Entries of a corridor in words."""

from bridge.extensions.power.corridor.corridor_entries import CalendarEntry, OperatorEntry
from bridge.extensions.power.corridor.watts_text import NONE, shown_watts
from bridge.units import NEVER, format_instant

_FORM = "%Y-%m-%d %H:%M:%S"


def bounds_text(lower_w: int | None, upper_w: int | None) -> str:
    """Bounds that an entry names: `1.7 kW to 2.5 kW`, `at most 2.5 kW`, `no upper bound`."""
    if upper_w is None:
        return f"at least {shown_watts(lower_w or 0)}"
    if (maximum := shown_watts(upper_w)) == NONE:
        return f"at least {shown_watts(lower_w)}, no upper bound" if lower_w else "no upper bound"
    return f"at most {maximum}" if lower_w is None else f"{shown_watts(lower_w)} to {maximum}"


def span_text(start_s: int, end_s: int) -> str:
    """When an entry is in force, in local time."""
    start = f"from {format_instant(start_s, _FORM)}" if start_s else "at once"
    return f"{start} until " + ("removed" if end_s == NEVER else format_instant(end_s, _FORM))


def source_text(entry: CalendarEntry | OperatorEntry | None) -> str:
    """Names the entry that a bound comes from; empty: it comes from none."""
    if entry is None:
        return ""
    if isinstance(entry, OperatorEntry):
        return f"entry {entry.id}"
    return f"calendar: {entry.name}" if entry.name else "calendar"


def state_text(entry: OperatorEntry, now_s: int) -> str:
    """`in force`, `later`, `over` or `removed`."""
    if entry.removed_s:
        return "removed"
    if entry.end_s <= now_s:
        return "over"
    return "later" if entry.start_s > now_s else "in force"
