# SPDX-License-Identifier: Apache-2.0
"""Partitions, reservations and licences as the controller sends them, resolved to node indexes."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from bridge.errors import RequestError, SnapshotError
from bridge.model.job_columns import LATEST_S, MAX_COUNT
from bridge.model.snapshot import Partition, Reservation
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.units import UNLIMITED_S

MAX_ITEMS = 10_000
MAX_WORD = 1024
"""Longest name, as in Slurm."""


class _Named(Protocol):
    @property
    def name(self) -> str: ...


def _nodes_of(text: str, nodes: NodeIndex, where: str, odd: dict[str, str]) -> NDArray[np.int32]:
    """The nodes that a text names; unknown ones are left out and reported as irregular."""
    try:
        return nodes.parse(text)
    except RequestError as error:
        odd[f"{where}.nodes"] = str(error)
    try:
        return nodes.parse(text, unknown_ok=True)
    except RequestError as error:
        raise SnapshotError(where, str(error)) from error


def _distinct(items: Sequence[_Named], field: str) -> None:
    if len(items) > MAX_ITEMS:
        raise SnapshotError(field, f"more than {MAX_ITEMS}")
    names = [item.name for item in items]
    if len(set(names)) < len(names) or not all(0 < len(name) <= MAX_WORD for name in names):
        raise SnapshotError(field, "a name is missing, too long or listed twice")


def read_partitions(
    messages: pb.Partitions, nodes: NodeIndex, odd: dict[str, str]
) -> tuple[Partition, ...]:
    """Reads the partitions.

    Args:
        messages: as sent.
        nodes: names.
        odd: gets the fields that are odd, and why (`bridge.rpc.reported.irregularities`).

    Raises:
        SnapshotError: one contradicts itself.
    """
    _distinct(messages.items, "partitions")
    found = []
    for item in messages.items:
        if item.max_time_s < 0 or item.default_time_s < 0:
            raise SnapshotError(f"partitions[{item.name[:64]}]", "has a negative time")
        found.append(
            Partition(
                name=item.name,
                nodes=_nodes_of(item.nodes, nodes, f"partitions[{item.name[:64]}]", odd),
                up=item.up,
                min_nodes=min(item.min_nodes, MAX_COUNT),
                max_nodes=min(item.max_nodes, MAX_COUNT),
                max_time_s=min(item.max_time_s, UNLIMITED_S),
                default_time_s=min(item.default_time_s, UNLIMITED_S),
                exclusive=item.exclusive,
                priority_tier=item.priority_tier,
                shared=item.shared,
            )
        )
    return tuple(found)


def read_reservations(
    messages: pb.Reservations, nodes: NodeIndex, licences: Sequence[str], odd: dict[str, str]
) -> tuple[Reservation, ...]:
    """Reads the reservations.

    Args:
        messages: as sent.
        nodes: names.
        licences: names.
        odd: gets the fields that are odd, and why (`bridge.rpc.reported.irregularities`).

    Raises:
        SnapshotError: one contradicts itself.
    """
    column = {name: at for at, name in enumerate(licences)}
    _distinct(messages.items, "reservations")
    found = []
    for item in messages.items:
        where = f"reservations[{item.name[:64]}]"
        if not 0 <= item.start_s < item.end_s:
            odd[f"{where}.end_s"] = "is not after its start"
        start_s = min(max(item.start_s, 0), LATEST_S - 1)
        kept = np.zeros(len(licences), dtype=np.int64)
        for use in item.licences:
            if (at := column.get(use.name)) is not None:
                kept[at] += min(use.count, MAX_COUNT)
        found.append(
            Reservation(
                name=item.name,
                start_s=start_s,
                end_s=min(max(item.end_s, start_s + 1), LATEST_S),
                nodes=_nodes_of(item.nodes, nodes, where, odd),
                licences=kept,
                maintenance=item.maintenance,
                anywhere=not item.nodes,
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
