# SPDX-License-Identifier: Apache-2.0
"""Partitions, reservations and licences as the controller sends them, resolved to node indexes.

One without a valid name, or whose name is there before, is left out. One whose nodes or times
cannot be read has none, and nothing starts there. Both are irregular
(`bridge.rpc.reported.irregularities`).
"""

from collections.abc import Iterable, Iterator
from typing import Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bridge.errors import RequestError, SnapshotError
from bridge.model.job_columns import LATEST_S, MAX_COUNT
from bridge.model.snapshot import Partition, Reservation
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.hostlist import NodeIndex
from bridge.rpc.reported.safe_text import printable
from bridge.units import UNLIMITED_S

MAX_ITEMS = 10_000
MAX_WORD = 1024
"""Longest name, as in Slurm."""

_NONE: Final = np.empty(0, dtype=np.int32)


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Item = TypeVar("_Item", bound=_Named)


def _nodes_of(
    text: str, nodes: NodeIndex, where: str, unread: dict[str, str], odd: dict[str, str]
) -> NDArray[np.int32] | None:
    """The nodes that a text names; unknown ones are left out. None: it cannot be read."""
    try:
        return nodes.parse(text)
    except RequestError as error:
        why = str(error)
    try:
        members = nodes.parse(text, unknown_ok=True)
    except RequestError:
        unread[f"{where}.nodes"] = why
        return None
    odd[f"{where}.nodes"] = why
    return members


def _named(
    items: Iterable[_Item], field: str, unread: dict[str, str]
) -> Iterator[tuple[_Item, str]]:
    """Each item with a valid name once, and its place in messages."""
    items = list(items)
    if len(items) > MAX_ITEMS:
        raise SnapshotError(field, f"more than {MAX_ITEMS}")
    names: set[str] = set()
    for item in items:
        where = f"{field}[{printable(item.name[:64])}]"
        if not 0 < len(item.name) <= MAX_WORD or not item.name.isprintable():
            unread[f"{where}.name"] = "is missing, too long or not printable"
        elif item.name in names:
            unread[f"{where}.name"] = "is listed twice"
        else:
            names.add(item.name)
            yield item, where


def read_partitions(
    messages: pb.Partitions, nodes: NodeIndex, unread: dict[str, str], odd: dict[str, str]
) -> tuple[Partition, ...]:
    """Reads the partitions.

    Args:
        unread: gets the fields that cannot be read, and why.
        odd: gets those that are used although they are irregular, and why.

    Raises:
        SnapshotError: there are too many.
    """
    found = []
    for item, where in _named(messages.items, "partitions", unread):
        members = _nodes_of(item.nodes, nodes, where, unread, odd)
        negative = min(item.max_time_s, item.default_time_s) < 0
        if negative:
            unread[f"{where}.time"] = "is negative"
        found.append(
            Partition(
                name=item.name,
                nodes=_NONE if members is None else members,
                up=item.up and members is not None and not negative,
                min_nodes=min(item.min_nodes, MAX_COUNT),
                max_nodes=min(item.max_nodes, MAX_COUNT),
                max_time_s=min(max(item.max_time_s, 0), UNLIMITED_S),
                default_time_s=min(max(item.default_time_s, 0), UNLIMITED_S),
                exclusive=item.exclusive,
                priority_tier=item.priority_tier,
                shared=item.shared,
            )
        )
    return tuple(found)


def read_reservations(
    messages: pb.Reservations,
    nodes: NodeIndex,
    licences: Iterable[str],
    unread: dict[str, str],
    odd: dict[str, str],
) -> tuple[Reservation, ...]:
    """Reads the reservations.

    Args:
        unread: gets the fields that cannot be read, and why.
        odd: gets those that are used although they are irregular, and why.

    Raises:
        SnapshotError: there are too many.
    """
    column = {name: at for at, name in enumerate(licences)}
    found = []
    for item, where in _named(messages.items, "reservations", unread):
        if not 0 <= item.start_s < item.end_s:
            odd[f"{where}.end_s"] = "is not after its start"
        start_s = min(max(item.start_s, 0), LATEST_S - 1)
        members = _nodes_of(item.nodes, nodes, where, unread, odd)
        kept = np.zeros(len(column), dtype=np.int64)
        for use in item.licences:
            if (at := column.get(use.name)) is not None:
                kept[at] += min(use.count, MAX_COUNT)
        found.append(
            Reservation(
                name=item.name,
                start_s=start_s,
                end_s=min(max(item.end_s, start_s + 1), LATEST_S),
                nodes=_NONE if members is None else members,
                licences=kept,
                maintenance=item.maintenance,
                anywhere=not item.nodes,
            )
        )
    return tuple(found)


def read_licences(messages: pb.Licences, unread: dict[str, str]) -> dict[str, int]:
    """Reads the licences: name to what this cluster's jobs may use in all.

    Args:
        unread: gets the fields that cannot be read, and why.

    Raises:
        SnapshotError: there are too many.
    """
    return {
        item.name: min(max(item.total - item.used_elsewhere, 0), MAX_COUNT)
        for item, _ in _named(messages.items, "licences", unread)
    }
