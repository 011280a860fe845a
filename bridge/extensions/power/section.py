# SPDX-License-Identifier: Apache-2.0
"""A site's bounds of power in YAML: the section `planning.power`.

    base: 12kW
    nodes:
      - {name: gpu, nodes: {having: gpu}, idle: 300W, max: 2.4kW}
      - {name: thin, idle: 71W, max: 250W}
    corridor:
      - {name: contract, upper: 120kW}
    power_down: {partitions: [batch], hold: 5m}

The list `corridor` is in `corridor/corridor_text.py`; it is resolved for each cycle
(`corridor/resolve.py`).
"""

from typing import Annotated, Self
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, Field, field_validator, model_validator

from bridge.extensions.power.corridor.corridor_entries import CalendarEntry
from bridge.extensions.power.corridor.corridor_text import (
    CorridorCalendar,
    check_calendar,
    openings,
    power_text,
)
from bridge.extensions.power.corridor.watts_text import watts
from bridge.extensions.power.rules import NAME, NodePower, PowerDown, PowerRules
from bridge.model.rules.node_set import NodeSet
from bridge.planning.site_rules.pools_text import NodesSection
from bridge.planning.site_rules.values_text import MAX_NODES, Duration, Section, seconds

MAX_TYPES = 200
_GRACE_S = 10

Power = Annotated[str, Field(max_length=255), BeforeValidator(power_text)]


class NodePowerSection(Section):
    """Power of nodes of one type."""

    name: str = Field(min_length=1, max_length=255, description="Name for display.")
    nodes: NodesSection | None = Field(
        default=None, description="Nodes of this type; last entry without nodes: all others."
    )
    idle: Power = Field(description="Power of a node that is on and has no job: 71W.")
    max: Power = Field(description="Maximum power of a node: 250W.")

    @model_validator(mode="after")
    def _sensible(self) -> Self:
        if watts(self.idle) > watts(self.max):
            raise ValueError(f"has idle {self.idle} above max {self.max}")
        return self

    def node_power(self) -> NodePower:
        """The same as a noun."""
        nodes = NodeSet() if self.nodes is None else self.nodes.node_set()
        return NodePower(self.name, nodes, watts(self.idle), watts(self.max))


class PowerDownSection(Section):
    """Idle nodes that may be powered down if an upper bound requires it."""

    partitions: tuple[Annotated[str, Field(min_length=1, max_length=255)], ...] = Field(
        default=(),
        max_length=1000,
        description="Only nodes all of whose partitions are among these; empty: of all partitions.",
    )
    hold: Duration = Field(
        default=None,
        description="Minimum time for which a node stays on after use or power-up: 5m.",
    )

    def power_down(self) -> PowerDown:
        """The same as a noun."""
        hold_s = seconds(self.hold)
        return PowerDown(self.partitions, *(() if hold_s is None else (hold_s,)))


class PowerSection(Section):
    """Bounds of system power, and power of nodes."""

    base: Power = Field(default="0", description="Power of all other equipment: 12kW.")
    nodes: tuple[NodePowerSection, ...] = Field(
        min_length=1,
        max_length=MAX_TYPES,
        description="Power of nodes, by type; the first entry that names a node applies.",
    )
    corridor: CorridorCalendar = Field(
        default=(), description="Bounds over time; later entries override earlier ones."
    )
    grace: Duration = Field(
        default=None,
        description="How long system power may violate a bound after an unannounced change: 10s.",
    )
    power_down: PowerDownSection | None = Field(
        default=None,
        description="Powers down idle nodes if jobs can then start within the upper bound, or a "
        "violation of it ends; without it they stay on.",
    )

    @field_validator("nodes")
    @classmethod
    def _every_node_has_one(
        cls, value: tuple[NodePowerSection, ...]
    ) -> tuple[NodePowerSection, ...]:
        names = [each.name for each in value]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two entries are called '{name:.60}'")
        for each in value[:-1]:
            if each.nodes is None:
                raise ValueError(f"'{each.name:.60}' is without nodes, but not the last entry")
        if value[-1].nodes is not None:
            raise ValueError("the last entry must be without nodes, so that every node has a power")
        if sum(len(each.nodes.hostnames) for each in value[:-1] if each.nodes) > MAX_NODES:
            raise ValueError(f"entries together name more than {MAX_NODES} nodes")
        return value

    def check(self, zone: ZoneInfo) -> None:
        """Raises unless each entry of the calendar is in force at some time.

        Raises:
            ValueError: one is not.
        """
        try:
            check_calendar(self.corridor, zone)
        except ValueError as error:
            raise ValueError(f"power.corridor: {error}") from error

    def calendar(self, zone: ZoneInfo) -> tuple[CalendarEntry, ...]:
        return tuple(entry.entry(zone) for entry in self.corridor)

    def repeated(self) -> set[tuple[str | None, str | None]]:
        """Cron and length of the times that repeat."""
        return {(each.valid.cron, each.valid.length) for each in self.corridor if each.valid}

    def openings(self) -> int:
        """The maximum number of times per day at which recurring entries come into force."""
        return openings(self.corridor)

    def part(self) -> PowerRules:
        """The same as nouns, but for the corridor."""
        grace_s = seconds(self.grace)
        return PowerRules(
            node_types=tuple(kind.node_power() for kind in self.nodes),
            base_w=watts(self.base),
            grace_s=_GRACE_S if grace_s is None else grace_s,
            power_down=None if self.power_down is None else self.power_down.power_down(),
        )


class PowerSiteRules:
    """Reads the section; see `bridge.extensions.service_port.SiteRules`."""

    key = NAME
    section = PowerSection
    default = None
    description = "Power of nodes, and bounds of system power; null: no bounds."
