# SPDX-License-Identifier: Apache-2.0
"""No two jobs share a CPU."""

from collections.abc import Callable
from dataclasses import dataclass

from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.ports import Context


@dataclass(frozen=True)
class NoSharing:
    """Sets no quota."""

    def share(self, world: Callable[[], Snapshot], plan: Plan, context: Context) -> Plan:
        """Returns the plan unchanged; see `bridge.ports.SharePolicy`."""
        del world, context
        return plan
