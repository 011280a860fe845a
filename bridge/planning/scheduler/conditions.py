# SPDX-License-Identifier: Apache-2.0
"""What a plan is held to, beyond nodes and licences: by the site, and by the policy itself."""

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from bridge.model.site import Site


@dataclass(frozen=True)
class Conditions:
    """What a plan is held to, beyond nodes and licences.

    Attributes:
        site: limits, FreePools and protections.
        horizon_s: the policy plans no start later than so many seconds from now; None: no bound.
        whole_queue: the policy gives every row that can have a place one, however low its priority.
        period_s: the policy starts jobs at multiples of it only, and keeps no later place for
            anybody; 0: in every cycle. None: at any second, and places are kept.
        sure: who fits beside all that is planned gets that place.
    """

    site: Site = field(default_factory=Site)
    horizon_s: int | None = None
    whole_queue: bool = False
    period_s: int | None = None
    sure: bool = True


@runtime_checkable
class HasConditions(Protocol):
    """A plan stage that says what it holds its plans to."""

    def conditions(self, site: Site) -> Conditions:
        """At a site; the same for as long as the stage lives."""


def conditions_of(stage: object, site: Site) -> Conditions:
    """What a plan stage holds its plans to; the site alone, if it does not say."""
    return stage.conditions(site) if isinstance(stage, HasConditions) else Conditions(site)
