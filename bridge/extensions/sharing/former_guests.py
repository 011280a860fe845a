# SPDX-License-Identifier: Apache-2.0
"""Guests left by a former policy, under one that starts none: they run at the floor until they end.

When sharing is switched off, they are requeued.
"""

from collections.abc import Callable

from bridge.extensions.sharing.orders import Orders, floors
from bridge.extensions.sharing.slots import Slots
from bridge.extensions.sharing.stage_share import Shared
from bridge.extensions.sharing.switch import off_since_s, send_away
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.ports import Context


class FormerGuests:
    """Starts no guest."""

    def share(self, world: Callable[[], Snapshot], plan: Plan, context: Context) -> Shared:
        """Returns orders for running guests; see `SharePolicy`."""
        snapshot = world()
        if off_since_s(context.state) is None:
            return Shared(quotas=floors(snapshot))
        orders = Orders(snapshot)
        send_away(Slots(snapshot, context.site, plan), orders, off=True)
        return Shared(quotas=orders.quotas(), requeues=orders.requeues())
