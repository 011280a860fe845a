# SPDX-License-Identifier: Apache-2.0
"""Sites whose corridor is resolved: for recordings, replays and simulations.

The section `planning` alone has a calendar, not the bounds of an instant.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from bridge.extensions.power.corridor.corridor_entries import CalendarEntry
from bridge.extensions.power.corridor.corridor_text import MAX_ENTRIES
from bridge.extensions.power.corridor.resolve import Entries, bounded_by, resolve, steps
from bridge.extensions.power.corridor.watts_text import NONE
from bridge.extensions.power.rules import NAME, NO_UPPER_W, Corridor, power_of
from bridge.model.rules.site import Site
from bridge.planning.site_rules.rules_text import PlanningSection, parse_site
from bridge.units import DAY_S, NEVER

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_CALENDAR_END_S = 253_402_127_999


def site_at(planning: Mapping[str, Any] | None, from_s: int, until_s: int | None = None) -> Site:
    """The rules of a section `planning`, with its calendar resolved.

    Args:
        planning: plain values, as YAML gives them; None: nothing.
        from_s: the first requested instant.
        until_s: the last one; None: the same. Cron is expanded for `cron_days` more.

    Raises:
        ConfigError: the first error, with its key.
    """
    site = parse_site(planning)
    if power_of(site) is None:
        return site
    calendar = calendar_of(PlanningSection.model_validate(planning))
    entries = Entries(calendar, (), site.rules.timezone, site.cron_s)
    day_s = from_s // DAY_S * DAY_S
    last_s = (from_s if until_s is None else until_s) + DAY_S + site.cron_s
    return bounded_by(site, resolve(entries, day_s, last_s))


def calendar_of(planning: PlanningSection) -> tuple[CalendarEntry, ...]:
    """The calendar of the corridor in a section `planning`."""
    power = planning.section(NAME)
    return () if power is None else power.calendar(ZoneInfo(planning.timezone))


def with_bounds(planning: Mapping[str, Any], corridor: Corridor) -> Mapping[str, Any]:
    """A section `planning` whose calendar equals a corridor, entries of operators included.

    At most `MAX_ENTRIES` steps.
    """
    power = planning.get("power")
    if not power:
        return planning
    found = []
    for start, end, lower, upper in list(steps(corridor, 0, NEVER))[:MAX_ENTRIES]:
        valid = {}
        if start:
            valid["from"] = _text(start)
        if end != NEVER:
            valid["until"] = _text(end)
        bounds = {"lower": str(lower), "upper": NONE if upper == NO_UPPER_W else str(upper)}
        found.append({**bounds, **({"valid": valid} if valid else {})})
    return {**planning, "power": {**power, "corridor": found}}


@dataclass(frozen=True)
class ResolvedCorridor:
    """The corridor of an instant; a `bridge.rpc.controller.policy_switch.Resolved`."""

    corridor: Corridor

    def site(self, site: Site) -> Site:
        """The rules with these bounds."""
        return bounded_by(site, self.corridor)

    def section(self, planning: Mapping[str, Any]) -> Mapping[str, Any]:
        """The section `planning` with these bounds."""
        return with_bounds(planning, self.corridor)


def _text(at_s: int) -> str:
    """An instant as the configuration takes it: `2026-11-24 17:00:00+00:00`."""
    return str(_EPOCH + timedelta(seconds=min(at_s, _CALENDAR_END_S)))
