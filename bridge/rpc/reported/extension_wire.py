# SPDX-License-Identifier: Apache-2.0
"""What an extension does on the wire: columns of reported nodes, and its actions.

`Wire` is the face of that name in `bridge.extensions.port`. The contract's messages are one file:
an extension names fields and actions of it. Its classes are derived from those here, which do
nothing.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from bridge.extension_packages import has_mark, installed
from bridge.model.job import RunningTable
from bridge.model.parts import NO_PARTS, Parts, made
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.features import Action
from bridge.rpc.reported.hostlist import NodeIndex

MAX: Final = (1 << 63) - 1


class Requests:
    """The requests of one extension to one controller; a controller that restarts gets others."""

    def decide(
        self,
        snapshot: Snapshot,  # noqa: ARG002
        plan: Plan,  # noqa: ARG002
        nodes: NodeIndex,  # noqa: ARG002
        features: frozenset[str],  # noqa: ARG002
    ) -> list[pb.Decision]:
        """The requests to the controller now; called from the first cycle with a part on.

        Args:
            features: what the controller can do, at least one that `Wire.actions` need.
        """
        return []

    def close(self, result: pb.Fate, now_s: int) -> bool:  # noqa: ARG002
        """Reads a result; False if it does not belong to a request of these."""
        return False


class ObeyedActions:
    """What a simulated controller carries out of the decisions of a service."""

    def obey(self, decision: pb.Decision, nodes: NodeIndex) -> None:
        """Takes a decision with one of the actions."""

    def part(self, snapshot: Snapshot, starts: Sequence[pb.Start]) -> object | None:  # noqa: ARG002
        """The part of the next plan, with what is now in force; None: nothing is.

        Args:
            snapshot: for which the plan is.
            starts: those of the first rows of the plan.
        """
        return None


class Wire:
    """The face of an extension.

    Attributes:
        node_fields: fields of `Node` in the contract: whole numbers or truth values.
        actions: by the fields of `Decision.action` in the contract.
        needs: columns of running jobs that are read only from a controller with this feature.
    """

    node_fields: tuple[str, ...] = ()
    actions: Mapping[str, Action] = {}
    needs: Mapping[str, str] = {}

    def part_of_nodes(self, values: NDArray[np.int64]) -> object | None:  # noqa: ARG002
        """The columns of all nodes, at least one of which has such a field; None: no part.

        Args:
            values: (n_nodes, fields): 0 where a node has none.
        """
        return None

    def node_values(self, part: Any, row: int) -> Iterable[object]:  # noqa: ARG002
        """The values of `node_fields` of a node; for simulated controllers."""
        return ()

    def start_fields(self, part: Any, row: int) -> Mapping[str, Any]:  # noqa: ARG002
        """Fields of `Start` in the contract, of a row that starts now, by the plan's part."""
        return {}

    def sentences(self, running: RunningTable) -> Iterable[tuple[str, str]]:  # noqa: ARG002
        """What users see of running jobs while nothing else happens to these: id and text."""
        return ()

    def requests(self, take_id: Callable[[], int]) -> Requests:  # noqa: ARG002
        """Starts without requests; `take_id` gives the number of the next decision."""
        return Requests()

    def obeyed(self) -> ObeyedActions:
        """Starts without decisions; for simulated controllers."""
        return ObeyedActions()


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


@lru_cache(maxsize=16)
def unread_columns(features: frozenset[str]) -> tuple[str, ...]:
    """Returns the columns of running jobs that need a feature that a controller lacks."""
    needs = (each for wire in wires().values() for each in wire.needs.items())
    return tuple(column for column, feature in needs if feature not in features)


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
        """The requests to the controller now, of extensions with a part of nodes or plan.

        Those that have had one are asked again, as they may have to take something back.
        """
        found: list[pb.Decision] = []
        parts = snapshot.nodes.parts, plan.parts
        if not self._requests and all(each is NO_PARTS for each in parts):
            return found
        for name, wire in self._wires.items():
            is_active = name in self._requests or any(name in each for each in parts)
            needed = {action.feature for action in wire.actions.values()}
            if is_active and not features.isdisjoint(needed):
                if name not in self._requests:
                    self._requests[name] = wire.requests(self._take_id)
                found += self._requests[name].decide(snapshot, plan, nodes, features)
        return found


def start_fields(plan: Plan, row: int) -> dict[str, Any]:
    """Returns the fields of a start by the parts of a plan."""
    found: dict[str, Any] = {}
    if plan.parts is not NO_PARTS:
        for name, part in plan.parts.items():
            found |= wires()[name].start_fields(part, row) if name in wires() else {}
    return found


def sentences(snapshot: Snapshot) -> dict[str, str]:
    """Returns what extensions show users of running jobs that have a value in their columns."""
    found: dict[str, str] = {}
    for name, wire in wires().items():
        if has_mark(name, snapshot):
            found |= dict(wire.sentences(snapshot.running))
    return found
