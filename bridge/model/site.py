# SPDX-License-Identifier: Apache-2.0
"""What a site demands of every plan, whichever policy makes it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bridge.model.limits import Rules
from bridge.units import DAY_S

CRON_HORIZON_S = 60 * DAY_S
"""How far repeated validities are written out where the site does not say."""

Protection = Mapping[str, Mapping[str, int]]
"""Protected resource to what each node that has it keeps for jobs that want it, by resource."""


@dataclass(frozen=True)
class Site:
    """What holds for every start and every announced start.

    Attributes:
        rules: limits and FreePools.
        protect: what nodes keep for jobs that want a resource they have.
        cron_s: how far from now repeated validities are looked at.
    """

    rules: Rules = field(default_factory=Rules)
    protect: Protection = field(default_factory=dict)
    cron_s: int = CRON_HORIZON_S


NO_RULES = Site()
"""A site without limits, FreePools and protections."""
