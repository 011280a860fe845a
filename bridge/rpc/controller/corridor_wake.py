# SPDX-License-Identifier: Apache-2.0
"""When the controller is to call for the sake of the corridor of power.

Rules
    1. It calls when the bounds change next.
    2. Nobody can wake the controller. Where power is bounded it calls often enough that a change
       which nobody announced is planned for within about a second. A service whose cycles take long
       is called less often: cycles take at most a `SHARE` of its time.
"""

from bridge.model.site import Site
from bridge.power.resolve import next_change_s

LISTEN_MS, MOST_LISTEN_MS = 1000, 5000
SHARE = 20


def corridor_change_s(site: Site, now_s: int) -> int | None:
    """When the bounds change next; None: never, or power is not bounded."""
    power = site.rules.power
    return None if power is None else next_change_s(power.corridor, now_s)


def listen_ms(site: Site, wall_s: float) -> int:
    """After what time to call again; 0: at any time, as power is not bounded.

    Args:
        site: the rules in force.
        wall_s: what the last cycle took.
    """
    if site.rules.power is None:
        return 0
    return min(max(int(1000 * SHARE * wall_s), LISTEN_MS), MOST_LISTEN_MS)
