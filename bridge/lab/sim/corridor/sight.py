# SPDX-License-Identifier: Apache-2.0
"""A simulated policy's view of the corridor: the bounds known at a cycle, as a site's rule."""

from enum import StrEnum

from bridge.extensions.power.rules import PowerDown, PowerRules, power_of, with_power
from bridge.lab.sim.corridor.power import PowerSetting
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.ports import Decide
from bridge.safe_cycle.decider import Decider

HOLD_S = 60
"""How long nodes stay on after use, if they can be powered down."""


class Sight(StrEnum):
    """How much of the corridor a policy knows."""

    ANNOUNCED = "announced"
    """The bounds in force, and announced ones."""
    PRESENT = "present"
    """The bounds in force."""
    NOTHING = "nothing"
    """None: it plans as if power did not matter."""


def under_corridor(
    decider: Decider, setting: PowerSetting, origin_s: int, sight: Sight = Sight.ANNOUNCED
) -> Decide:
    """Decides under the rules of a decider's site and the corridor known at each cycle.

    Args:
        decider: its site changes whenever the known bounds change.
        origin_s: the first submission.
    """
    steps = setting.corridor
    if steps is None or sight is Sight.NOTHING:
        return decider.decide
    shown = steps.unannounced() if sight is Sight.PRESENT else steps
    site = decider.site

    def decide(snapshot: Snapshot) -> Plan:
        known = shown.known(origin_s, snapshot.now_s)
        before = power_of(decider.site)
        if before is None or before.corridor != known:
            down = PowerDown(hold_s=HOLD_S) if setting.resume_s else None
            power = PowerRules(known, (setting.node,), setting.base_w, shown.grace_s, down)
            decider.site = with_power(site, power)
        return decider.decide(snapshot)

    return decide
