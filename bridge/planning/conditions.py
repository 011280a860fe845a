# SPDX-License-Identifier: Apache-2.0
"""What a policy holds its plans to, beyond nodes and licences."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from bridge.errors import ConfigError
from bridge.model.limits import Rules
from bridge.planning.cluster_book import Protection
from bridge.units import DAY_S

CRON_HORIZON_S = 60 * DAY_S
"""How far repeated validities are written out where no horizon is set."""


@dataclass(frozen=True)
class Conditions:
    """What a policy holds its plans to, beyond nodes and licences.

    Attributes:
        rules: limits and FreePools.
        cron_s: how far repeated validities are looked at.
        horizon_s: no start later than so many seconds from now; None: no bound.
        protect: what nodes keep for jobs with a protected resource.
        whole_queue: every row that can have a place has one, however low its priority.
    """

    rules: Rules = field(default_factory=Rules)
    cron_s: int = CRON_HORIZON_S
    horizon_s: int | None = None
    protect: Protection | None = None
    whole_queue: bool = False


@runtime_checkable
class HasConditions(Protocol):
    """A plan stage that says under which conditions it plans."""

    @property
    def conditions(self) -> Conditions:
        """The same for as long as the stage lives."""


def check_protection(protect: Mapping[str, object] | None) -> None:
    """Looks at the parameter `protect` of a plan stage.

    Raises:
        ConfigError: it is not resources to resources to amounts.
    """
    for resource, kept in (protect or {}).items():
        if not isinstance(kept, Mapping) or not all(
            isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in kept.values()
        ):
            raise ConfigError(
                f"protect.{resource}", "must map resources to whole numbers, as in {cpus: 2}"
            )
