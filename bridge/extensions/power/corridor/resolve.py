# SPDX-License-Identifier: Apache-2.0
"""From entries to one corridor: which bounds are in force when.

Rules
    1. Entries lie on top of each other: the calendar in the order of the configuration, then
       operators' entries in the order in which they were entered. Each bound is that of the topmost
       entry that is in force and names it; without one there is no bound.
    2. So removing an entry restores the bounds below it, and a bound that it does not name is
       inherited.
    3. Where the bounds cross, the upper one counts, as it is a rule; the lower one is lowered.
    4. Recurring times are expanded like those of limits (`bridge.planning.site_rules.validity`).
       Recurring entries are not in force beyond the last requested second.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.power.corridor.corridor_entries import CalendarEntry, OperatorEntry
from bridge.extensions.power.rules import NO_UPPER_W, Corridor, power_of, with_power
from bridge.model.rules.site import Site
from bridge.planning.site_rules.validity import windows
from bridge.units import DAY_S, NEVER

CorridorEntry = CalendarEntry | OperatorEntry


@dataclass(frozen=True)
class Entries:
    """The sources of a corridor.

    Attributes:
        calendar: the calendar of the configuration, in its order.
        entered: by operators and programs, ascending ids; those that were removed do not count.
        timezone: IANA name; of the calendar's cron.
        cron_s: how far from now recurring times are expanded, s.
    """

    calendar: tuple[CalendarEntry, ...] = ()
    entered: tuple[OperatorEntry, ...] = ()
    timezone: str = "UTC"
    cron_s: int = 60 * DAY_S

    def from_the_bottom(self) -> Iterator[CorridorEntry]:
        """Those that count, lowest first (rule 1)."""
        yield from self.calendar
        yield from (entry for entry in self.entered if not entry.removed_s)


def corridor_at(entries: Entries, now_s: int) -> Corridor:
    """The corridor for a cycle: the same for all instants of a day (UTC)."""
    day_s = now_s // DAY_S * DAY_S
    return resolve(entries, day_s, day_s + DAY_S + entries.cron_s)


def resolve(entries: Entries, from_s: int, until_s: int) -> Corridor:
    """The bounds over time.

    Args:
        from_s: the bounds before this instant are those at it.
        until_s: cron is expanded up to then.
    """
    layers = [
        (entry, _windows(entry, entries.timezone, from_s, until_s))
        for entry in entries.from_the_bottom()
    ]
    edges = np.concatenate([[from_s], *(found.ravel() for _, found in layers)])
    starts = np.unique(edges[(edges >= from_s) & (edges < NEVER)]).astype(np.int64)
    lower, upper = np.zeros_like(starts), np.full_like(starts, NO_UPPER_W)
    for entry, found in layers:
        begin, end = np.searchsorted(starts, found[:, 0]), np.searchsorted(starts, found[:, 1])
        for first, last in zip(begin.tolist(), end.tolist(), strict=True):
            if entry.lower_w is not None:
                lower[first:last] = entry.lower_w
            if entry.upper_w is not None:
                upper[first:last] = entry.upper_w
    lower = np.minimum(lower, upper)
    changes = np.flatnonzero((np.diff(lower) != 0) | (np.diff(upper) != 0)) + 1
    keep = np.concatenate(([0], changes))
    return Corridor(
        (0, *starts[changes].tolist()), tuple(lower[keep].tolist()), tuple(upper[keep].tolist())
    )


def bounded_by(site: Site, corridor: Corridor) -> Site:
    """A site with another corridor; one that does not bound power stays as it is."""
    power = power_of(site)
    return site if power is None else with_power(site, replace(power, corridor=corridor))


def sources_at(
    entries: Entries, instant_s: int
) -> tuple[CorridorEntry | None, CorridorEntry | None]:
    """The entries that the lower and the upper bound of an instant come from; None: no entry."""
    lower = upper = None
    for entry in entries.from_the_bottom():
        if in_force(entry, entries.timezone, instant_s):
            lower = lower if entry.lower_w is None else entry
            upper = upper if entry.upper_w is None else entry
    return lower, upper


def in_force(entry: CorridorEntry, timezone: str, instant_s: int) -> bool:
    found = _windows(entry, timezone, instant_s, instant_s + 1)
    return bool(((found[:, 0] <= instant_s) & (instant_s < found[:, 1])).any())


def steps(corridor: Corridor, from_s: int, until_s: int) -> Iterator[tuple[int, int, int, int]]:
    """The steps within a span: start, end, lower and upper bound.

    Yields:
        Instants, clipped to the span, and W.
    """
    starts: Sequence[int] = [
        from_s, *(at for at in corridor.starts_s if from_s < at < until_s)
    ]  # fmt: skip
    for start, end in zip(starts, [*starts[1:], until_s], strict=True):
        yield start, end, *corridor.at(start)


def _windows(entry: CorridorEntry, timezone: str, from_s: int, until_s: int) -> NDArray[np.int64]:
    """(n, 2) starts and ends within [from_s, ...), ascending and disjoint."""
    if isinstance(entry, CalendarEntry):
        found = windows(entry.validity, timezone, from_s, until_s)
    else:
        found = np.array([[entry.start_s, entry.end_s]], dtype=np.int64)
        found = found[(found[:, 1] > found[:, 0]) & (found[:, 1] > from_s)]
    return np.maximum(found, from_s)
