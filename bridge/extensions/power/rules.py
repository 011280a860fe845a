# SPDX-License-Identifier: Apache-2.0
"""Electric power: the power of nodes, and the bounds of system power.

Terms
    system power    a base, the idle power of all nodes that are on, and the draw of jobs beyond it.
    draw            of a job on a node: the power of that node, its idle power included.
    corridor        lower and upper bound of system power, over time.

All powers are whole watts.
"""

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from bridge.model.rules.node_set import NodeSet
from bridge.model.rules.site import Site
from bridge.units import NEVER

NAME: Final = "power"
"""Of the part of a site's rules."""
NO_UPPER_W = NEVER
"""An upper bound that is never reached."""


@dataclass(frozen=True, slots=True)
class Corridor:
    """Bounds of system power as step functions; each step holds until the next, the last forever.

    Attributes:
        starts_s: instants, ascending; the first is 0.
        lower_w: the minimum that should be drawn; 0: no bound. A goal: a plan may miss it.
        upper_w: the maximum that may be drawn; `NO_UPPER_W`: no bound. A rule: no start exceeds it.
    """

    starts_s: tuple[int, ...] = (0,)
    lower_w: tuple[int, ...] = (0,)
    upper_w: tuple[int, ...] = (NO_UPPER_W,)

    def __post_init__(self) -> None:
        if not len(self.starts_s) == len(self.lower_w) == len(self.upper_w):
            raise ValueError("each step needs a start, a lower and an upper bound")
        if self.starts_s[:1] != (0,):
            raise ValueError("the first step must start at 0")
        if any(later <= start for start, later in pairwise(self.starts_s)):
            raise ValueError("the steps' starts must ascend")
        for lower, upper in zip(self.lower_w, self.upper_w, strict=True):
            if not 0 <= lower <= upper:
                raise ValueError(f"lower bound {lower} W and upper bound {upper} W do not fit")

    def at(self, instant_s: int) -> tuple[int, int]:
        """The lower and the upper bound in force at an instant, W."""
        step = max(bisect_right(self.starts_s, instant_s) - 1, 0)
        return self.lower_w[step], self.upper_w[step]

    def next_change_s(self, instant_s: int) -> int:
        """When the next step after an instant starts; NEVER: there is none."""
        step = bisect_right(self.starts_s, instant_s)
        return self.starts_s[step] if step < len(self.starts_s) else NEVER

    def falls_s(self, instant_s: int) -> int:
        """When the upper bound next decreases after an instant; NEVER: it does not."""
        steps = zip(self.starts_s[1:], pairwise(self.upper_w), strict=True)
        falls = (at_s for at_s, (before, after) in steps if at_s > instant_s and after < before)
        return next(falls, NEVER)


@dataclass(frozen=True, slots=True)
class NodePower:
    """The power of nodes of one type.

    Attributes:
        name: the name of the type, for display.
        nodes: which nodes; the first type that matches a node counts.
        idle_w: power of a node that is on and has no job.
        max_w: maximum of a node.
    """

    name: str
    nodes: NodeSet
    idle_w: int
    max_w: int

    def __post_init__(self) -> None:
        if not 0 <= self.idle_w <= self.max_w:
            raise ValueError(f"node type {self.name}: 0 <= idle {self.idle_w} <= max {self.max_w}")


@dataclass(frozen=True, slots=True)
class PowerDown:
    """Which idle nodes may be powered down to save power, and when.

    Attributes:
        partitions: nodes all of whose partitions are among these; empty: of all partitions.
        hold_s: time for which a node stays on after it was in use or powered up, unless system
            power is above its upper bound.
    """

    partitions: tuple[str, ...] = ()
    hold_s: int = 300


@dataclass(frozen=True, slots=True)
class PowerRules:
    """A site's bounds of system power, and the data for checking them.

    Attributes:
        corridor: the bounds, with the entries of operators already applied.
        node_types: a node that no type matches has unknown power: 0 to 0 W.
        base_w: power of switches, storage, cooling etc.
        grace_s: how long system power may be outside after an unannounced change of a bound.
        power_down: None: idle nodes stay on.
    """

    corridor: Corridor = Corridor()
    node_types: tuple[NodePower, ...] = ()
    base_w: int = 0
    grace_s: int = 10
    power_down: PowerDown | None = None

    @property
    def resources(self) -> tuple[str, ...]:
        """See `SitePart.resources`."""
        return tuple(kind.nodes.having for kind in self.node_types)

    @property
    def binds_starts(self) -> bool:
        """See `SitePart.binds_starts`."""
        return True

    @property
    def unannounced(self) -> bool:
        """See `SitePart.unannounced`: operators and programs enter bounds at any time."""
        return True

    def changes_s(self, now_s: int) -> int:
        """See `SitePart.changes_s`."""
        return self.corridor.next_change_s(now_s)

    def tightens_s(self, now_s: int) -> int:
        """See `SitePart.tightens_s`."""
        return self.corridor.falls_s(now_s)


def power_of(site: Site) -> PowerRules | None:
    """Returns the bounds of power of a site; None: power is not bounded."""
    return site.parts.get(NAME)


def with_power(site: Site, rules: PowerRules | None) -> Site:
    """Returns a site with other bounds of power."""
    return site.having(NAME, rules)
