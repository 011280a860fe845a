# SPDX-License-Identifier: Apache-2.0
"""Collects quotas, weights and requeues of guests for a plan.

Terms
    floor the limit for a guest that is about to leave: low, but enough to end when it is cancelled.
"""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from bridge.extensions.sharing.counting import pairs
from bridge.extensions.sharing.part import Requeues, requeues
from bridge.extensions.sharing.quotas import MIN_WEIGHT, USUAL_WEIGHT, Quotas
from bridge.model.job_columns import objects
from bridge.model.node import CPUS
from bridge.model.snapshot import Snapshot

FLOOR: Final = 0.05
"""Share of the CPUs; at 1 % of a CPU, a cancelled guest took seconds to end."""


@dataclass
class Orders:
    """Collects the orders for guests."""

    snapshot: Snapshot
    _quotas: dict[str, tuple[int, int]] = field(default_factory=dict)
    _requeues: list[tuple[str, str]] = field(default_factory=list)

    def limit(self, job_id: str, cpus: int, share: float, weight: int = USUAL_WEIGHT) -> None:
        """A guest may use this share of the CPUs of each node.

        Args:
            job_id: it runs or starts now.
            share: 0 to 1.
            weight: as in cgroup v2.
        """
        self._quotas[job_id] = max(round(1000 * cpus * share), 1), weight

    def floor(self, job_id: str, cpus: int) -> None:
        """A guest is held to the floor."""
        self.limit(job_id, cpus, FLOOR, MIN_WEIGHT)

    def requeue(self, job_id: str, cpus: int, reason: str) -> None:
        """A running guest is requeued, and held to the floor until it has left."""
        self.floor(job_id, cpus)
        self._requeues.append((job_id, reason))

    def quotas(self) -> Quotas:
        table = np.array(list(self._quotas.values()), dtype=np.int64).reshape(-1, 2)
        return Quotas(objects(self._quotas), table[:, 0].copy(), table[:, 1].copy())

    def requeues(self) -> Requeues:
        return requeues(self._requeues)


def cpus_of(snapshot: Snapshot, row: int) -> int:
    """CPUs of each node of a running job, the least; 0: it has no node."""
    running = snapshot.running
    nodes = running.nodes[running.indptr[row] : running.indptr[row + 1]]
    return int(snapshot.nodes.capacity[nodes, CPUS].min(initial=1 << 30)) if len(nodes) else 0


def floors(snapshot: Snapshot) -> Quotas:
    """Every running guest at the floor."""
    orders = Orders(snapshot)
    for guest in pairs(snapshot.running):
        orders.floor(str(snapshot.running.id[guest]), cpus_of(snapshot, guest))
    return orders.quotas()
