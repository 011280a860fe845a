# SPDX-License-Identifier: Apache-2.0
"""The rules of a site, which hold for every plan under any policy."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

from bridge.model.parts import NO_PARTS, Parts
from bridge.model.rules.limits import Rules
from bridge.model.rules.resize_limits import ResizeLimit
from bridge.units import DAY_S

CRON_HORIZON_S = 60 * DAY_S
"""Default of how far from now repeated validities are expanded, s."""

Protection = Mapping[str, Mapping[str, int]]
"""Protected resource to the amounts, by resource, that a node with it keeps for jobs using it."""


class SitePart(Protocol):
    """What an extension adds to the rules of a site: a frozen dataclass."""

    @property
    def resources(self) -> tuple[str, ...]:
        """Names of resources that its rules mention; empty texts do not count."""

    @property
    def binds_starts(self) -> bool:
        """Whether a start may break its rules: `Stages.bounds` and `Check.rows` apply."""

    @property
    def unannounced(self) -> bool:
        """Whether they may change between two calls of the controller, e.g. by an operator."""

    def changes_s(self, now_s: int) -> int:
        """When they next change after an instant; NEVER: they do not."""

    def tightens_s(self, now_s: int) -> int:
        """When it next permits less than before, whatever jobs do; NEVER: not later than now."""


@dataclass(frozen=True)
class Site:
    """The rules for every start and every announced start.

    Attributes:
        rules: limits and FreePools.
        protect: amounts that nodes with a protected resource keep for jobs using it.
        cron_s: how far from now repeated validities are expanded, s.
        resizes: how often, and how far, running jobs are resized.
        parts: further rules, of extensions, by their names; each is a `SitePart`.
        binds_starts: whether a start may break one of these.
    """

    rules: Rules = field(default_factory=Rules)
    protect: Protection = field(default_factory=dict)
    cron_s: int = CRON_HORIZON_S
    resizes: tuple[ResizeLimit, ...] = ()
    parts: Parts = NO_PARTS
    binds_starts: bool = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        binds = any(part.binds_starts for part in self.parts.values())
        object.__setattr__(self, "binds_starts", binds)

    def having(self, name: str, part: SitePart | None) -> "Site":
        """Returns the same with another part of one extension; None: without one."""
        return replace(self, parts=self.parts.having(name, part))


NO_RULES = Site()
"""A site without limits, FreePools and protections."""
