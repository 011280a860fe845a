# SPDX-License-Identifier: Apache-2.0
"""Prefers nodes that have power to nodes that must be powered up.

Rules
    1. Nodes that are powered down come after all others, and after those that are powering up.
       Among equals the place policy's order holds, weights included.
    2. No node is excluded. Those without power are closed until they are available
       (`closing.py`), so this matters for jobs that start later.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.power.columns import saving_of
from bridge.model.snapshot import Snapshot
from bridge.ports import Preference


def awake_first(snapshot: Snapshot, preference: Preference) -> Preference:
    """Returns the preference with nodes without power last. O(n_nodes); mostly the same object."""
    saving = saving_of(snapshot.nodes)
    if saving is None or not np.count_nonzero(saving.off):
        return preference
    lacks = np.where(saving.off, np.where(saving.resuming, 1, 2), 0)
    # Ranks may be negative or sparse: only their order counts.
    _, order = np.unique(preference.rank, return_inverse=True)
    rank: NDArray[np.int64] = lacks * (int(order.max(initial=0)) + 1) + order
    return replace(preference, rank=rank.astype(np.int32))
