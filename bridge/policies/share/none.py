# SPDX-License-Identifier: Apache-2.0
"""No job becomes a guest; guests left by a former policy run at the floor until they end."""

from collections.abc import Callable
from dataclasses import dataclass

from bridge.model.coscheduling import has_guests
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.planning.sharing.orders import floors
from bridge.ports import NOTHING_SHARED, Context, Shared


@dataclass(frozen=True)
class NoSharing:
    """Starts no guest."""

    def share(self, world: Callable[[], Snapshot], plan: Plan, context: Context) -> Shared:
        """Returns nothing, or the floor for running guests; see `bridge.ports.SharePolicy`."""
        del plan, context
        snapshot = world()
        if not has_guests(snapshot.running):
            return NOTHING_SHARED
        return Shared(quotas=floors(snapshot))
