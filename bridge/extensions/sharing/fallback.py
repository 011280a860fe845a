# SPDX-License-Identifier: Apache-2.0
"""Guests in a cycle without a plan of any policy: each is held to the floor."""

from bridge.extensions.sharing.orders import floors
from bridge.extensions.sharing.part import having_shared
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot


class GuestsAtFloor:
    """See `bridge.extensions.port.Fallback`."""

    def completed(self, snapshot: Snapshot, plan: Plan) -> Plan:
        """The plan with a quota for each running guest."""
        return having_shared(plan, quotas=floors(snapshot))
