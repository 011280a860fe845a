# SPDX-License-Identifier: Apache-2.0
"""The allocation of a starting job with chunks on each of its nodes, for the wire."""

import numpy as np
from numpy.typing import NDArray

from bridge.model.plan import Plan
from bridge.model.resources import LoweredChunks
from bridge.model.snapshot import Snapshot
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.hostlist import NodeIndex


def chunk_uses(snapshot: Snapshot, plan: Plan, row: int, nodes: NodeIndex) -> list[pb.NodeUse]:
    """Returns the CPUs on each node of a row, grouped by number; empty without chunks.

    CPUs are those of the chunks, not rounded up to whole cores: the controller does that itself.
    """
    job = int(plan.job[row])
    lowered: LoweredChunks | None = snapshot.jobs.chunks[job]
    if lowered is None:
        return []
    held = slice(int(plan.indptr[row]), int(plan.indptr[row + 1]))
    cpus = _cpus(lowered, plan, held, counts_tasks=bool(snapshot.jobs.tasks[job]))
    return [
        pb.NodeUse(nodes=nodes.fold(plan.nodes[held][cpus == amount]), cpus=int(amount))
        for amount in np.unique(cpus).tolist()
    ]


def _cpus(
    lowered: LoweredChunks, plan: Plan, held: slice, *, counts_tasks: bool
) -> NDArray[np.int64]:
    """(n,) CPUs on each node of a row."""
    kinds = lowered.request.kinds
    if plan.groups is not None and len(kinds) > 1:
        each = np.array([kind.ncpus for kind in kinds], dtype=np.int64)
        counts: NDArray[np.int64] = plan.groups[held, : len(kinds)].astype(np.int64)
        return counts @ each
    if counts_tasks:
        return plan.tasks[held].astype(np.int64) * kinds[0].ncpus
    width = held.stop - held.start
    return np.full(width, lowered.request.n_cpus if width == 1 else kinds[0].ncpus, dtype=np.int64)
