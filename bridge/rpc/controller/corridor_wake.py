# SPDX-License-Identifier: Apache-2.0
"""When the controller must call because of the corridor of power.

Rules
    1. It calls when the bounds change next.
    2. The controller cannot be woken. If power is bounded it calls often enough that an unannounced
       change is planned for within about a second. A service whose cycles take long is called less
       often: cycles take at most a `SHARE` of its time.
"""

from bridge.model.parts import NO_PARTS
from bridge.model.rules.power import power_of
from bridge.model.rules.site import Site
from bridge.power.resolve import next_change_s

LISTEN_MS, MAX_LISTEN_MS = 1000, 5000
SHARE = 20


def corridor_change_s(site: Site, now_s: int) -> int | None:
    """When the bounds change next; None: never, or power is not bounded."""
    if site.parts is NO_PARTS:
        return None
    power = power_of(site)
    return None if power is None else next_change_s(power.corridor, now_s)


def listen_ms(site: Site, wall_s: float) -> int:
    """The time until the next call; 0: any, as power is not bounded.

    Args:
        site: the rules in force.
        wall_s: duration of the last cycle.
    """
    if site.parts is NO_PARTS or power_of(site) is None:
        return 0
    return min(max(int(1000 * SHARE * wall_s), LISTEN_MS), MAX_LISTEN_MS)
