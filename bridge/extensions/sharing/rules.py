# SPDX-License-Identifier: Apache-2.0
"""What a site says of two jobs on a node: who may share, with whom, and at which harm."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Final

from bridge.model.rules.limits import EACH
from bridge.model.rules.site import Site
from bridge.units import NEVER

NAME: Final = "sharing"
"""Of the part of a site's rules."""


class Coschedule(IntEnum):
    """What a job's user allows (`--coschedule`); numbers as on the wire."""

    SITE = 0
    """Not stated: as the site says."""
    HOST = 1
    """Another job may run on its nodes."""
    GUEST = 2
    """It may run on another job's nodes."""
    BOTH = 3
    NEVER = 4


class Scope(StrEnum):
    """Whose jobs may share nodes."""

    USER = "user"
    """Jobs of one user."""
    ACCOUNT = "account"
    """Jobs of one account."""
    ALL = "all"


@dataclass(frozen=True, slots=True)
class CoschedulingRules:
    """The rules of one partition.

    Attributes:
        partition: its name; EACH: of all that no other rules name.
        scope: whose jobs share.
        max_slowdown: by how much a host may be slowed down at most, as a share of its run time
            alone, where it does not say itself.
        memory_margin: share of a node's memory that host and guest leave free.
        max_mean_harm: mean slowdown of hosts at which sharing ends, of a user or the whole site.
    """

    partition: str
    scope: Scope = Scope.USER
    consent: Coschedule = Coschedule.NEVER
    max_slowdown: float = 0.10
    memory_margin: float = 0.05
    max_mean_harm: float = 0.05

    def allows_host(self, stated: int) -> bool:
        """Whether a job that stated so may be a host."""
        return self._meant(stated) in (Coschedule.HOST, Coschedule.BOTH)

    def allows_guest(self, stated: int) -> bool:
        """Whether a job that stated so may be a guest."""
        return self._meant(stated) in (Coschedule.GUEST, Coschedule.BOTH)

    def _meant(self, stated: int) -> int:
        return self.consent if stated == Coschedule.SITE else stated

    def bound(self, max_slowdown_permille: int) -> float:
        """The bound of a host that stated this one; 0: it stated none."""
        return max_slowdown_permille / 1000 if max_slowdown_permille > 0 else self.max_slowdown

    def together(self, host: tuple[str, str], guest: tuple[str, str]) -> bool:
        """Whether jobs of these users and accounts may share a node."""
        if self.scope is Scope.ALL:
            return True
        at = 0 if self.scope is Scope.USER else 1
        return bool(host[at]) and host[at] == guest[at]


@dataclass(frozen=True, slots=True)
class SharingRules:
    """In which partitions jobs share nodes, and how.

    They bind no ordinary start: guests have a check of their own.
    """

    partitions: tuple[CoschedulingRules, ...]

    @property
    def resources(self) -> tuple[str, ...]:
        """See `SitePart.resources`."""
        return ()

    @property
    def binds_starts(self) -> bool:
        """See `SitePart.binds_starts`."""
        return False

    @property
    def unannounced(self) -> bool:
        """See `SitePart.unannounced`."""
        return False

    def changes_s(self, now_s: int) -> int:
        """See `SitePart.changes_s`."""
        del now_s
        return NEVER

    def tightens_s(self, now_s: int) -> int:
        """See `SitePart.tightens_s`."""
        del now_s
        return NEVER


def sharing_rules(site: Site) -> tuple[CoschedulingRules, ...]:
    """Returns the rules of the partitions in which jobs share nodes; empty: in none."""
    part: SharingRules | None = site.parts.get(NAME)
    return () if part is None else part.partitions


def with_sharing(site: Site, *rules: CoschedulingRules) -> Site:
    """Returns a site with other rules of jobs that share nodes; none: no jobs share."""
    return site.having(NAME, SharingRules(rules) if rules else None)


def rules_of(rules: Iterable[CoschedulingRules], partition: str) -> CoschedulingRules | None:
    """The rules of a partition; None: nobody shares there."""
    by_name = {each.partition: each for each in rules}
    return by_name.get(partition, by_name.get(EACH))
