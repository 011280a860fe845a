# SPDX-License-Identifier: Apache-2.0
"""Nodes that the controller can power down and up again, and decisions to do so.

Terms
    off     powered down, powering down, or powering up: no job can run there yet.
    resume  from the order to power a node up until jobs can run there.

Rules
    1. A node that is off is planned as closed until it is available: the snapshot has a separate
       reservation for all such nodes with the same time (`with_powered_off`). So no job starts
       there before, and planners, explanations and the check need no further rules.
    2. Nodes on which a job runs or is being set up are not closed: they are that job's.
"""

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.model.snapshot import Reservation, Snapshot
from bridge.units import NEVER

CLOSED: Final = "powered off"
"""Name of the reservations of rule 1; no reservation of a controller has a space in its name."""


def _none() -> NDArray[np.int32]:
    return np.empty(0, dtype=np.int32)


@dataclass(frozen=True)
class PowerChanges:
    """Nodes to be powered down or up now, as ascending node indexes.

    Attributes:
        down, up: int32.
        reason: for powering down, one sentence.
        again_s: when more could be powered down, event or not; NEVER: only after events.
    """

    down: NDArray[np.int32] = field(default_factory=_none)
    up: NDArray[np.int32] = field(default_factory=_none)
    reason: str = ""
    again_s: int = NEVER

    def __len__(self) -> int:
        return len(self.down) + len(self.up)


NO_POWER_CHANGES = PowerChanges()


def with_powered_off(snapshot: Snapshot) -> Snapshot:
    """The snapshot with nodes that are off closed until they are available (rules 1 and 2)."""
    saving = snapshot.nodes.power_saving
    if saving is None or not saving.off.any():
        return snapshot
    off = saving.off & snapshot.nodes.usable
    off[snapshot.running.nodes] = False
    later_s = snapshot.now_s + np.maximum(saving.resume_s, 1)
    ready_s = np.maximum(saving.ready_s, snapshot.now_s + 1)
    available_s = np.where(saving.resuming, ready_s, later_s)
    licences = np.zeros(len(snapshot.licence_total), dtype=np.int64)
    closed = tuple(
        Reservation(
            CLOSED,
            snapshot.now_s,
            end_s,
            np.flatnonzero(off & (available_s == end_s)).astype(np.int32),
            licences,
        )
        for end_s in np.unique(available_s[off]).tolist()
    )
    return replace(snapshot, reservations=(*snapshot.reservations, *closed))
