# SPDX-License-Identifier: Apache-2.0
"""No job becomes a guest; guests left by a former policy run at the floor until they end.

When sharing is switched off, they are requeued.
"""

from collections.abc import Callable
from dataclasses import dataclass

from bridge.model.coscheduling import has_guests
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.planning.sharing.orders import Orders, floors
from bridge.planning.sharing.slots import Slots
from bridge.planning.sharing.switch import off_since_s, send_away
from bridge.ports import NOTHING_SHARED, Context, Shared


@dataclass(frozen=True)
class NoSharing:
    """Starts no guest."""

    def share(self, world: Callable[[], Snapshot], plan: Plan, context: Context) -> Shared:
        """Returns nothing, or orders for running guests; see `bridge.ports.SharePolicy`."""
        snapshot = world()
        if not has_guests(snapshot.running):
            return NOTHING_SHARED
        if off_since_s(context.state) is None:
            return Shared(quotas=floors(snapshot))
        orders = Orders(snapshot)
        send_away(Slots(snapshot, context.site, plan), orders, off=True)
        return Shared(quotas=orders.quotas(), requeues=orders.requeues())
