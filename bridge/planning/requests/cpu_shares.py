# SPDX-License-Identifier: Apache-2.0
"""The parts of their nodes that the jobs of a plan take, by CPUs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.model.node import CPUS
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot

Ints = NDArray[np.int64]


def part_of(amounts: Ints, cpus: Ints, of: Ints) -> Ints:
    """The part of amounts that belongs to some of a number of CPUs, rounded up."""
    of = np.maximum(of, 1)
    return -(-amounts * np.clip(cpus, 1, of) // of)


@dataclass(frozen=True)
class PlannedShares:
    """What rows of a plan take of their nodes; one entry for each node of each row.

    Attributes:
        row: (e,) positions among the rows.
        job: (e,) rows of the jobs.
        node: (e,) indexes of the nodes.
        cpus: (e,) the CPUs that the job takes there.
        there: (e,) all CPUs of the node.
    """

    row: NDArray[np.intp]
    job: Ints
    node: NDArray[np.int32]
    cpus: Ints
    there: Ints


def planned_shares(snapshot: Snapshot, plan: Plan, rows: NDArray[np.intp]) -> PlannedShares:
    """What some rows of a plan take of their nodes.

    Args:
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
    cpus = np.where(whole, there, _requested_cpus(snapshot, plan, entries, job))
    return PlannedShares(owner, job, node, cpus, there)


def _requested_cpus(
    snapshot: Snapshot, plan: Plan, entries: NDArray[np.intp], job: NDArray[np.int64]
) -> Ints:
    """(n,) the CPUs that jobs request on some of the plan's nodes."""
    jobs = snapshot.jobs
    cpus: Ints = jobs.per_node[job, CPUS] + jobs.per_task[job, CPUS] * plan.tasks[entries]
    if plan.groups is not None:
        chunks = plan.groups[entries]
        for at in np.flatnonzero(chunks.any(axis=1)).tolist():
            requested = jobs.chunks[job[at]]
            wants = np.array(requested.wants, dtype=np.int64).reshape(len(requested.wants), -1)
            cpus[at] = chunks[at, : len(wants)] @ (wants[:, CPUS] + requested.per_node[CPUS])
    return cpus
