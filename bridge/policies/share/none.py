# SPDX-License-Identifier: Apache-2.0
"""No job becomes a guest; an extension decides for those that a former policy has left."""

from collections.abc import Callable
from dataclasses import dataclass

from bridge.extension_packages import shared_by_extension
from bridge.model.coscheduling import has_guests
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.ports import NOTHING_SHARED, Context, Shared


@dataclass(frozen=True)
class NoSharing:
    """Starts no guest."""

    def share(self, world: Callable[[], Snapshot], plan: Plan, context: Context) -> Shared:
        """Returns nothing, or orders for running guests; see `bridge.ports.SharePolicy`."""
        if not has_guests(world().running):
            return NOTHING_SHARED
        return shared_by_extension(world, plan, context)
