# SPDX-License-Identifier: Apache-2.0
"""What a job holds whose allocation cannot be read: what cannot be read is not 0.

Rules
    1. Everything else in the allocation that is sound counts: licences, stated power.
    2. Of a node that is known the job holds all that it has, or what is stated if that is more.
    3. Of a node that is not known it holds what is stated; of a list of nodes that cannot be read,
       that of one node. The number of these nodes counts, too.
    4. An amount that is impossible is not stated; on a node that is not known it is that of the
       largest node.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bridge.errors import RequestError
from bridge.model.job_columns import LATEST_S, MAX_COUNT
from bridge.model.node import CPUS, MEMORY_MIB
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.decode_allocation import Allocated, held_on_each, read_allocation
from bridge.rpc.reported.hostlist import MAX_UNKNOWN, NodeIndex
from bridge.rpc.reported.table_columns import MAX_AMOUNT, TableColumns

_MAX_ELSEWHERE = 1 << 20
"""Largest number of nodes that are not known: more than any cluster has."""

_NONE: NDArray[np.int32] = np.empty(0, dtype=np.int32)


def unread_allocation(job: pb.Job, layout: TableColumns, capacity: NDArray[np.int64]) -> Allocated:
    """The columns of a job whose allocation cannot be read.

    Args:
        job: running or completing.
        layout: names of the cluster.
        capacity: (n_nodes, R) of its nodes.
    """
    sound = pb.Job(state=pb.JOB_STATE_RUNNING, allocation=job.allocation)
    for name in ("uses", "end_s", "adapting"):
        sound.allocation.ClearField(name)
    sound.allocation.start_s = min(max(job.allocation.start_s, 0), LATEST_S - 1)
    nodes, use, elsewhere, n_elsewhere = _held(job.allocation, layout, capacity)
    return replace(
        read_allocation(sound, layout),
        exclusive=True,
        nodes=nodes,
        use=use,
        use_elsewhere=elsewhere,
        nodes_elsewhere=n_elsewhere,
    )


def _held(
    allocation: pb.Allocation, layout: TableColumns, capacity: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int64], NDArray[np.int64], int]:
    """Known nodes, ascending, what is held on each, on all others together, and their number."""
    largest = capacity.max(axis=0, initial=0).tolist()
    elsewhere, n_elsewhere = [0] * len(layout.resources), 0
    parts, vectors = [_NONE], [elsewhere]
    for each in allocation.uses[: len(layout.nodes) + MAX_UNKNOWN]:
        nodes, unknown = _named(each.nodes, layout.nodes)
        stated, assumed = _stated(held_on_each(each, layout), largest)
        n_elsewhere = min(n_elsewhere + unknown, _MAX_ELSEWHERE)
        parts.append(nodes)
        vectors.append(stated)
        elsewhere = [
            min(total + unknown * amount, MAX_AMOUNT)
            for total, amount in zip(elsewhere, assumed, strict=True)
        ]
    known, at = np.unique(np.concatenate(parts), return_inverse=True)
    use = capacity[known]
    stated_on = np.repeat(np.array(vectors, np.int64), [len(part) for part in parts], axis=0)
    np.maximum.at(use, at, stated_on)
    return known, use, np.array(elsewhere, dtype=np.int64), n_elsewhere


def _named(text: str, index: NodeIndex) -> tuple[NDArray[np.int32], int]:
    """The known nodes of a list, and the number of the others (3)."""
    try:
        return index.split(text)
    except RequestError:
        return _NONE, 1


def _stated(amounts: list[int], largest: list[int]) -> tuple[list[int], list[int]]:
    """What is stated for a node that is known, and what is assumed of another one (4)."""
    stated = [min(amount, MAX_AMOUNT) for amount in amounts]
    assumed = stated.copy()
    for column, maximum in ((CPUS, MAX_COUNT), (MEMORY_MIB, MAX_AMOUNT)):
        if amounts[column] > maximum:
            stated[column], assumed[column] = 0, largest[column]
    return stated, assumed
