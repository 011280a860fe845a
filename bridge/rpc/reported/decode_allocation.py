# SPDX-License-Identifier: Apache-2.0
"""Decodes allocations of running jobs to the columns of `bridge.model.job.RunningTable`."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.errors import RequestError, SnapshotError
from bridge.model.job_columns import LATEST_S, MAX_COUNT, MAX_POWER_W
from bridge.model.node import CPUS, MEMORY_MIB
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.decode_request import Lowered
from bridge.rpc.reported.nodes import MAX_GRES_KINDS
from bridge.rpc.reported.safe_text import MAX_TEXT
from bridge.rpc.reported.table_columns import MAX_AMOUNT, TableColumns
from bridge.units import UNLIMITED_S

MAX_ID = MAX_TEXT
"""As longer texts are shortened: two ids must not become one."""

_RIGID = Lowered(min_nodes=0, max_nodes=0)


@dataclass(frozen=True, slots=True)
class Allocated:
    """The columns of `RunningTable` that follow from an allocation, named as there.

    Attributes:
        nodes: (n,) int32, ascending.
        use: (n, R) int64: what is held on each.
        use_elsewhere: (R,) int64: what is held in total on nodes that the cluster does not have.
        nodes_elsewhere: the number of these nodes.
        head: the node that it cannot release; -1: its first one.
        kept: (k,) int32: the nodes that the job is not releasing; None: all.
        until_s: when the others are expected to be free.
    """

    start_s: int
    end_s: int
    partition: int
    exclusive: bool
    licences: tuple[int, ...]
    min_nodes: int
    max_nodes: int
    width_rule: int
    features: str
    reservation: int
    head: int
    adapting: bool
    keeps_nodes: bool
    requested_nodes: int
    number: int
    min_power_w: int
    max_power_w: int
    nodes: NDArray[np.int32]
    use: NDArray[np.int64]
    use_elsewhere: NDArray[np.int64]
    nodes_elsewhere: int
    kept: NDArray[np.int32] | None
    until_s: int


def is_id(text: str) -> bool:
    """Whether a text may be the id of a job."""
    return 0 < len(text) <= MAX_ID and text.isprintable() and " " not in text


def read_allocation(
    job: pb.Job, layout: TableColumns, malleable: Lowered | None = None
) -> Allocated:
    """Decodes the allocation of a job.

    Args:
        job: running or completing.
        layout: names of the cluster.
        malleable: the request of the job if its width may change; otherwise None.

    Raises:
        SnapshotError: it contradicts itself.
    """
    allocation, job_id = job.allocation, job.id
    if job.state not in (pb.JOB_STATE_RUNNING, pb.JOB_STATE_COMPLETING):
        raise SnapshotError(f"jobs[{job_id}].state", "is unknown")
    start_s, end_s = allocation.start_s, min(allocation.end_s, LATEST_S - 1)
    if not (0 <= start_s < LATEST_S and end_s >= 0):
        raise SnapshotError(f"jobs[{job_id}].allocation", "has an impossible time")
    if job.state == pb.JOB_STATE_RUNNING:
        end_s = min(end_s or start_s + UNLIMITED_S, start_s + 10 * UNLIMITED_S)
    licences = [0] * len(layout.licences)
    for use in allocation.licences:
        if (at := layout.licences.get(use.name)) is not None:
            licences[at] += min(use.count, MAX_COUNT)
    nodes, used = _held(job_id, allocation, layout)
    if malleable is None or malleable.problem or not len(nodes):
        malleable = _RIGID
    kept, until_s = _kept(allocation, layout)
    return Allocated(
        start_s=start_s,
        end_s=end_s,
        partition=layout.partitions.get(allocation.partition, -1),
        exclusive=allocation.exclusive,
        licences=tuple(licences),
        min_nodes=malleable.min_width,
        max_nodes=malleable.max_width,
        width_rule=malleable.width_rule,
        features=malleable.features,
        reservation=malleable.reservation,
        head=_head(allocation, layout, nodes),
        adapting=allocation.adapting or kept is not None,
        keeps_nodes=malleable.max_width > 0 and job.request.malleable.no_resize,
        requested_nodes=malleable.min_nodes,
        number=allocation.number,
        min_power_w=min(allocation.min_power_w, MAX_POWER_W),
        max_power_w=min(allocation.max_power_w, MAX_POWER_W),
        nodes=nodes,
        use=used,
        use_elsewhere=np.zeros(len(layout.resources), dtype=np.int64),
        nodes_elsewhere=0,
        kept=kept,
        until_s=until_s,
    )


def held_on_each(use: pb.NodeUse, layout: TableColumns) -> list[int]:
    """What a job holds on each node of a group, of each resource, as stated."""
    vector = [0] * len(layout.resources)
    vector[CPUS] = use.cpus
    vector[MEMORY_MIB] = use.memory_mib if layout.memory_consumable else 0
    layout.gres(use.gres, vector)
    return vector


def _head(allocation: pb.Allocation, layout: TableColumns, nodes: NDArray[np.int32]) -> int:
    """The node that the job keeps; -1: none is named, or none that it holds."""
    at = layout.nodes.index.get(allocation.head, -1) if allocation.head else -1
    return at if at in nodes else -1


def _kept(allocation: pb.Allocation, layout: TableColumns) -> tuple[NDArray[np.int32] | None, int]:
    """The nodes that are held to the job's end, and until when the others are."""
    until_s = max((use.until_s for use in allocation.uses), default=0)
    kept = [layout.nodes.parse(use.nodes) for use in allocation.uses if use.until_s <= 0]
    if until_s <= 0 or not kept:
        return None, 0
    return np.sort(np.concatenate(kept)), min(until_s, LATEST_S - 1)


def _held(
    job_id: str, allocation: pb.Allocation, layout: TableColumns
) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Nodes of an allocation, ascending, and what is held on each."""
    parts: list[NDArray[np.int32]] = []
    vectors: list[list[int]] = []
    maximum = max(len(use.gres) for use in allocation.uses) if allocation.uses else 0
    if len(allocation.uses) > max(len(layout.nodes), 1) or maximum > MAX_GRES_KINDS:
        raise SnapshotError(f"jobs[{job_id}].allocation", "holds more kinds than there are")
    for use in allocation.uses:
        try:
            nodes = layout.nodes.parse(use.nodes)
        except RequestError as error:
            raise SnapshotError(f"jobs[{job_id}].allocation", str(error)) from error
        if use.cpus > MAX_COUNT or use.memory_mib > MAX_AMOUNT:
            raise SnapshotError(f"jobs[{job_id}].allocation", "impossible size")
        parts.append(nodes)
        vectors.append(held_on_each(use, layout))
    if len(parts) == 1:
        return parts[0], np.repeat(np.array(vectors, np.int64), len(parts[0]), axis=0)
    if not parts:
        return np.empty(0, np.int32), np.empty((0, len(layout.resources)), np.int64)
    nodes = np.concatenate(parts)
    order = np.argsort(nodes, kind="stable")
    nodes = nodes[order]
    if (nodes[1:] == nodes[:-1]).any():
        raise SnapshotError(f"jobs[{job_id}].allocation", "holds a node twice")
    use_rows = np.repeat(np.array(vectors, dtype=np.int64), [len(part) for part in parts], axis=0)
    return nodes, use_rows[order]
