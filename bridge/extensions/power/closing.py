# SPDX-License-Identifier: Apache-2.0
"""Closes nodes that are off until jobs can run there.

Rules
    1. A node that is off is planned as closed until it is available: the snapshot has a separate
       reservation for all such nodes with the same time. So no job starts there before, and
       planners, explanations and the check need no further rules.
    2. Nodes on which a job runs or is being set up are not closed: they are that job's.
"""

from dataclasses import replace
from typing import Final

import numpy as np

from bridge.extensions.power.columns import saving_of
from bridge.model.snapshot import Reservation, Snapshot

CLOSED: Final = "powered off"
"""Name of the reservations of rule 1: what users read about their nodes."""


def with_powered_off(snapshot: Snapshot) -> Snapshot:
    """The snapshot with nodes that are off closed until they are available. O(n_nodes)."""
    saving = saving_of(snapshot.nodes)
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
            own=True,
        )
        for end_s in np.unique(available_s[off]).tolist()
    )
    return replace(snapshot, reservations=(*snapshot.reservations, *closed))
