# SPDX-License-Identifier: Apache-2.0
"""The decision which nodes are powered down and up: the extension's part of a plan."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.power.columns import NAME
from bridge.model.plan import Plan
from bridge.units import NEVER


def _none() -> NDArray[np.int32]:
    return np.empty(0, dtype=np.int32)


@dataclass(frozen=True)
class PowerChanges:
    """Nodes to be powered down or up now, as ascending node indexes.

    Attributes:
        down, up: int32.
        again_s: when more could be powered down, event or not; NEVER: only after events.
    """

    down: NDArray[np.int32] = field(default_factory=_none)
    up: NDArray[np.int32] = field(default_factory=_none)
    reason: str = ""
    again_s: int = NEVER

    def __len__(self) -> int:
        return len(self.down) + len(self.up)


NO_POWER_CHANGES: Final = PowerChanges()


def changes_of(plan: Plan) -> PowerChanges:
    """Returns what a plan powers down and up."""
    changes: PowerChanges = plan.parts.get(NAME, NO_POWER_CHANGES)
    return changes


def with_changes(plan: Plan, changes: PowerChanges) -> Plan:
    """Returns the plan with other nodes to be powered down and up."""
    return plan.having(NAME, changes if len(changes) else None)
