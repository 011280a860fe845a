# SPDX-License-Identifier: Apache-2.0
"""Partitions, reservations and licences as the controller sends them, resolved to node indexes."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bridge.errors import RequestError, SnapshotError
from bridge.model.snapshot import Partition, Reservation
from bridge.rpc.hostlist import NodeIndex
from bridge.rpc.lowering import MAX_COUNT
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.units import UNLIMITED_S

MAX_ITEMS = 10_000
MAX_WORD = 256
LATEST_S = 1 << 40
"""No instant lies beyond: some 35,000 years."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


def _nodes_of(text: str, nodes: NodeIndex, where: str) -> NDArray[np.int32]:
    try:
        return nodes.parse(text)
    except RequestError as error:
        raise SnapshotError(where, str(error)) from error


def _distinct(items: Sequence[_Named], field: str) -> None:
    names = [item.name for item in items]
    if len(set(names)) < len(names) or not all(0 < len(name) <= MAX_WORD for name in names):
        raise SnapshotError(field, "a name is missing, too long or there twice")
    if len(names) > MAX_ITEMS:
        raise SnapshotError(field, f"more than {MAX_ITEMS}")


def read_partitions(messages: pb.Partitions, nodes: NodeIndex) -> tuple[Partition, ...]:
    """Reads the partitions.

    Raises:
        SnapshotError: one contradicts itself or names an unknown node.
    """
    _distinct(messages.items, "partitions")
    found = []
    for item in messages.items:
        if item.max_time_s < 0 or item.default_time_s < 0:
            raise SnapshotError(f"partitions[{item.name}]", "has a negative time")
        found.append(
            Partition(
                name=item.name,
                nodes=_nodes_of(item.nodes, nodes, f"partitions[{item.name}]"),
                up=item.up,
                min_nodes=min(item.min_nodes, MAX_COUNT),
                max_nodes=min(item.max_nodes, MAX_COUNT),
                max_time_s=min(item.max_time_s, UNLIMITED_S),
                default_time_s=min(item.default_time_s, UNLIMITED_S),
                exclusive=item.exclusive,
                priority_tier=item.priority_tier,
            )
        )
    return tuple(found)


def read_reservations(
    messages: pb.Reservations, nodes: NodeIndex, licences: Sequence[str]
) -> tuple[Reservation, ...]:
    """Reads the reservations.

    Raises:
        SnapshotError: one contradicts itself or names an unknown node.
    """
    column = {name: at for at, name in enumerate(licences)}
    _distinct(messages.items, "reservations")
    found = []
    for item in messages.items:
        where = f"reservations[{item.name}]"
        if not 0 <= item.start_s < item.end_s:
            raise SnapshotError(where, "does not end after it starts")
        kept = np.zeros(len(licences), dtype=np.int64)
        for use in item.licences:
            if (at := column.get(use.name)) is not None:
                kept[at] += min(use.count, MAX_COUNT)
        found.append(
            Reservation(
                name=item.name,
                start_s=min(item.start_s, LATEST_S - 1),
                end_s=min(item.end_s, LATEST_S),
                nodes=_nodes_of(item.nodes, nodes, where),
                licences=kept,
                maintenance=item.maintenance,
            )
        )
    return tuple(found)


def read_licences(messages: pb.Licences) -> dict[str, int]:
    """Reads the licences: name to what this cluster's jobs may use in all.

    Raises:
        SnapshotError: a name is missing, too long or there twice.
    """
    _distinct(messages.items, "licences")
    return {
        item.name: min(max(item.total - item.used_elsewhere, 0), MAX_COUNT)
        for item in messages.items
    }
