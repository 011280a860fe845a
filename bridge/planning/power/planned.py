# SPDX-License-Identifier: Apache-2.0
"""The assumed draw of planned jobs on the nodes of a plan, W."""

import numpy as np
from numpy.typing import NDArray

from bridge.model.node import CPUS
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.planning.power.estimates import (
    Draws,
    NodePowers,
    Watts,
    draws_on,
    pending_estimates,
)


def planned_draws(
    snapshot: Snapshot, powers: NodePowers, plan: Plan, rows: NDArray[np.intp]
) -> Draws:
    """(n,) the draw of some rows of a plan on all their nodes, beyond idle.

    Args:
        snapshot: that the plan was made for.
        powers: of its nodes.
        plan: `Plan.job` are rows of its jobs.
        rows: (n,) ascending.
    """
    jobs, width = snapshot.jobs, np.diff(plan.indptr)
    wanted = np.zeros(len(plan), dtype=bool)
    wanted[rows] = True
    entries = np.flatnonzero(np.repeat(wanted, width))
    owner = np.repeat(np.arange(len(rows)), width[rows])
    job, node = plan.job[rows].astype(np.int64)[owner], plan.nodes[entries]
    alone = np.array([part.exclusive for part in snapshot.partitions] + [False])
    whole = jobs.exclusive[job] | alone[plan.partition[rows]][owner]
    there = snapshot.nodes.capacity[node, CPUS]
    cpus = np.where(whole, there, _cpus(snapshot, plan, entries, job))
    draws = draws_on(pending_estimates(jobs), powers, job, node, share=(cpus, there))
    upper_w, lower_w = (np.zeros(len(rows), dtype=np.int64) for _ in range(2))
    np.add.at(upper_w, owner, draws.upper_w)
    np.add.at(lower_w, owner, draws.lower_w)
    return Draws(upper_w, lower_w)


def _cpus(
    snapshot: Snapshot, plan: Plan, entries: NDArray[np.intp], job: NDArray[np.int64]
) -> Watts:
    """(n,) the CPUs that jobs request on some of the plan's nodes."""
    jobs = snapshot.jobs
    cpus: Watts = jobs.per_node[job, CPUS] + jobs.per_task[job, CPUS] * plan.tasks[entries]
    if plan.groups is not None:
        chunks = plan.groups[entries]
        for at in np.flatnonzero(chunks.any(axis=1)).tolist():
            asked = jobs.chunks[job[at]]
            wants = np.array(asked.wants, dtype=np.int64).reshape(len(asked.wants), -1)
            cpus[at] = chunks[at, : len(wants)] @ (wants[:, CPUS] + asked.per_node[CPUS])
    return cpus
