# SPDX-License-Identifier: Apache-2.0
"""The assumed draw of planned jobs on the nodes of a plan, W."""

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.power.planning.estimates import (
    Draws,
    NodePowers,
    draws_on,
    pending_estimates,
)
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.planning.requests.cpu_shares import planned_shares


def planned_draws(
    snapshot: Snapshot, powers: NodePowers, plan: Plan, rows: NDArray[np.intp]
) -> Draws:
    """(n,) the draw of some rows of a plan on all their nodes, beyond idle.

    Args:
        plan: `Plan.job` are rows of its jobs.
        rows: (n,) ascending.
    """
    taken = planned_shares(snapshot, plan, rows)
    estimates, share = pending_estimates(snapshot.jobs), (taken.cpus, taken.there)
    draws = draws_on(estimates, powers, taken.job, taken.node, share=share)
    upper_w, lower_w = (np.zeros(len(rows), dtype=np.int64) for _ in range(2))
    np.add.at(upper_w, taken.row, draws.upper_w)
    np.add.at(lower_w, taken.row, draws.lower_w)
    return Draws(upper_w, lower_w)
