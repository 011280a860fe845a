# SPDX-License-Identifier: Apache-2.0
"""When the controller must call because the rules of extensions change, as the bounds of power.

Rules
    1. It calls when they change next.
    2. The controller cannot be woken. Where they may change unannounced, it calls often enough that
       such a change is planned for within about a second. A service whose cycles take long is
       called less often: cycles take at most a `SHARE` of its time.
"""

from bridge.model.parts import NO_PARTS
from bridge.model.rules.site import Site
from bridge.units import NEVER

LISTEN_MS, MAX_LISTEN_MS = 1000, 5000
SHARE = 20


def rules_change_s(site: Site, now_s: int) -> int | None:
    """When the rules of extensions change next; None: never."""
    if site.parts is NO_PARTS:
        return None
    changes_s = (part.changes_s(now_s) for part in site.parts.values())
    return min((at_s for at_s in changes_s if at_s != NEVER), default=None)


def listen_ms(site: Site, wall_s: float) -> int:
    """The time until the next call; 0: any, as no rules may change unannounced.

    Args:
        site: the rules in force.
        wall_s: duration of the last cycle.
    """
    if site.parts is NO_PARTS or not any(part.unannounced for part in site.parts.values()):
        return 0
    return min(max(int(1000 * SHARE * wall_s), LISTEN_MS), MAX_LISTEN_MS)
