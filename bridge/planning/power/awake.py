# SPDX-License-Identifier: Apache-2.0
"""Prefers nodes that have power to nodes that a job would have to wait for.

Rules
    1. Nodes that are powered down come after all others, and after those that are powering up.
       Among equals the place policy's order holds, weights included.
    2. No node is excluded: a job that needs powered-down nodes gets them, and the controller powers
       them up for it.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bridge.model.node import state_flags
from bridge.model.snapshot import Snapshot
from bridge.ports import Preference

_OFF = frozenset({"POWERED_DOWN", "POWERED_OFF", "POWERING_DOWN"})
_COMING = frozenset({"POWERING_UP"})


def awake_first(snapshot: Snapshot, preference: Preference) -> Preference:
    """Returns the preference with nodes without power last. O(n_nodes); mostly the same object.

    Args:
        snapshot: the cluster.
        preference: of the place policy.
    """
    delays = {words: _delay(words) for words in set(snapshot.nodes.state)}
    if not any(delays.values()):
        return preference
    delay = np.array([delays[words] for words in snapshot.nodes.state], dtype=np.int64)
    # Ranks may be negative or sparse: only their order counts.
    _, order = np.unique(preference.rank, return_inverse=True)
    rank: NDArray[np.int64] = delay * (int(order.max(initial=0)) + 1) + order
    return replace(preference, rank=rank.astype(np.int32))


def _delay(words: str) -> int:
    """0: it has power; 1: it is powering up; 2: it must be powered up first."""
    flags = state_flags(words)
    return 2 if flags & _OFF else 1 if flags & _COMING else 0
