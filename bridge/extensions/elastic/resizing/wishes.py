# SPDX-License-Identifier: Apache-2.0
"""Widths that operators and users request, as resizes that break no rule and delay no job.

Rules
    1. A shrink keeps the head of the job, and then its first other nodes.
    2. A growth takes nodes that are free now and on which no waiting job is planned, in the order
       of their indexes; all missing nodes, or none.
    3. The same rules as for a policy's resizes decide whether it is allowed (`bridge.check`).
"""

import numpy as np
from numpy.typing import NDArray

from bridge.check.legality import permitted
from bridge.model.decisions.resizes import NO_RESIZES, Resizes
from bridge.model.plan import Plan
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot


def wished(
    snapshot: Snapshot, site: Site, plan: Plan, row: int, width: int, *, order: bool = False
) -> Resizes:
    """A resize of one job to a width; none if it is not possible now.

    Args:
        snapshot: the cluster, with what is under way.
        row: the row of the job in `snapshot.running`.
        width: requested number of nodes.
        order: an administrator requests it.
    """
    running = snapshot.running
    held = running.nodes[running.indptr[row] : running.indptr[row + 1]]
    if not 0 < width != len(held):
        return NO_RESIZES
    if width < len(held):
        head = running.head_of(row)
        others = held[held != head]
        nodes = np.sort(np.concatenate(([head], others[: width - 1])))
    else:
        free = np.setdiff1d(_free(snapshot, plan, row), held)
        if len(held) + len(free) < width:
            return NO_RESIZES
        nodes = np.union1d(held, free[: width - len(held)])
    requested = Resizes.of([(row, snapshot.now_s + 1, nodes.astype(np.int32), "as asked for")])
    return permitted(snapshot, site, requested, order=order)


def _free(snapshot: Snapshot, plan: Plan, row: int) -> NDArray[np.int64]:
    """Open nodes of the job's partition that no job holds or is planned on."""
    usable = snapshot.nodes.usable & ~snapshot.closed
    usable[snapshot.running.nodes] = False
    usable[plan.nodes] = False
    usable[plan.resizes.nodes] = False
    partition = int(snapshot.running.partition[row])
    if partition >= 0:
        allowed = np.zeros(len(usable), dtype=bool)
        allowed[snapshot.partitions[partition].nodes] = True
        usable &= allowed
    return np.flatnonzero(usable)
