# SPDX-License-Identifier: Apache-2.0
"""What an extension does on the wire: columns of reported nodes, and its action.

`Wire` is the face of that name in `bridge.extensions.port`. The contract's messages are one file:
an extension names fields and an action of it.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Final, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from bridge.extension_packages import installed
from bridge.model.parts import NO_PARTS, Parts, made
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.hostlist import NodeIndex

MAX: Final = (1 << 63) - 1


class Requests(Protocol):
    """The requests of one extension to one controller."""

    def reset(self) -> None:
        """Handles a restart of the controller."""

    def decide(self, snapshot: Snapshot, plan: Plan, nodes: NodeIndex) -> list[pb.Decision]:
        """The requests to the controller now; called only while a plan or a node has a part."""

    def close(self, result: pb.Fate, now_s: int) -> bool:
        """Reads a result; False if it does not belong to a request of these."""


class Wire(Protocol):
    """The face of an extension.

    Attributes:
        node_fields: fields of `Node` in the contract: whole numbers or truth values.
        feature: the feature of a controller that can carry its action out.
        action: a field of `Decision.action` in the contract.
    """

    node_fields: tuple[str, ...]
    feature: str
    action: str

    def part_of_nodes(self, values: NDArray[np.int64]) -> object | None:
        """The columns of all nodes, at least one of which has such a field; None: no part.

        Args:
            values: (n_nodes, fields): 0 where a node has none.
        """

    def node_values(self, part: Any, row: int) -> Iterable[object]:
        """The values of `node_fields` of a node; for simulated controllers."""

    def requests(self, take_id: Callable[[], int]) -> Requests:
        """Starts without requests; `take_id` gives the number of the next decision."""

    def obeyed(self, plan: Plan, decision: pb.Decision, nodes: NodeIndex) -> Plan:
        """The plan with a decision of a service; for simulated controllers."""


@cache
def wires() -> dict[str, Wire]:
    """Returns the faces of all installed extensions, by their names."""
    return {
        name: cast(Wire, extension.wire.made())
        for name, extension in installed().by_name.items()
        if extension.wire is not None
    }


class NodeParts:
    """The reported values of extensions, with a row for each node."""

    def __init__(self) -> None:
        self._wires = wires()
        self._fields = [name for wire in self._wires.values() for name in wire.node_fields]
        self._values: NDArray[np.int64] = np.zeros((0, len(self._fields)), dtype=np.int64)

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Drops all other rows."""
        self._values = self._values[rows]

    def append(self, more: int) -> None:
        """Appends rows without values."""
        zeros = np.zeros((more, len(self._fields)), dtype=np.int64)
        self._values = np.concatenate((self._values, zeros))

    def write(self, rows: NDArray[np.int64], nodes: Sequence[pb.Node]) -> None:
        """Takes the values of reported nodes."""
        values = [[min(getattr(node, name), MAX) for name in self._fields] for node in nodes]
        self._values[rows] = np.array(values, dtype=np.int64).reshape(-1, len(self._fields))

    def parts(self) -> Parts:
        """Returns the columns of each extension of which any node has a value."""
        if not self._values.any():
            return NO_PARTS
        found, first = {}, 0
        for name, wire in self._wires.items():
            own = self._values[:, first : first + len(wire.node_fields)]
            first += len(wire.node_fields)
            if own.any() and (part := wire.part_of_nodes(own)) is not None:
                found[name] = part
        return made(found)


class ExtensionRequests:
    """The requests of all extensions to one controller."""

    def __init__(self, take_id: Callable[[], int]) -> None:
        """Starts without requests.

        Args:
            take_id: gives the number of the next decision.
        """
        self._take_id, self._wires = take_id, wires()
        self._requests: dict[str, Requests] = {}

    def reset(self) -> None:
        """Handles a restart of the controller."""
        self._requests.clear()

    def close(self, result: pb.Fate, now_s: int) -> bool:
        """Reads a result; False if it does not belong to a request of an extension."""
        return any(each.close(result, now_s) for each in self._requests.values())

    def decide(
        self, snapshot: Snapshot, plan: Plan, nodes: NodeIndex, features: frozenset[str]
    ) -> list[pb.Decision]:
        """The requests to the controller now, of extensions with a part of nodes or plan."""
        found: list[pb.Decision] = []
        if snapshot.nodes.parts is NO_PARTS and plan.parts is NO_PARTS:
            return found
        for name, wire in self._wires.items():
            is_active = name in snapshot.nodes.parts or name in plan.parts
            if is_active and wire.feature in features:
                if name not in self._requests:
                    self._requests[name] = wire.requests(self._take_id)
                found += self._requests[name].decide(snapshot, plan, nodes)
        return found
