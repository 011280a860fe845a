# SPDX-License-Identifier: Apache-2.0
"""Powering nodes down and up in messages; see `bridge.rpc.reported.extension_wire.Wire`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.power.changes import NO_POWER_CHANGES, PowerChanges
from bridge.extensions.power.columns import PowerSaving
from bridge.extensions.power.requests import PowerRequests
from bridge.model.snapshot import Snapshot
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.extension_wire import ObeyedActions, Wire
from bridge.rpc.reported.features import Action, Subject
from bridge.rpc.reported.hostlist import NodeIndex

MAX_RESUME_S: Final = 7 * 86_400
POWER: Final = "power"
"""The feature: the controller powers nodes down and up."""


class PowerObeyed(ObeyedActions):
    """The nodes that a service wants powered down or up."""

    def __init__(self) -> None:
        """Starts without any."""
        self._changes = NO_POWER_CHANGES

    def obey(self, decision: pb.Decision, nodes: NodeIndex) -> None:
        """Takes the nodes of a decision."""
        named, before = nodes.parse(decision.power.nodes), self._changes
        is_up = decision.power.up
        self._changes = replace(before, up=named) if is_up else replace(before, down=named)

    def part(self, snapshot: Snapshot, starts: Sequence[pb.Start]) -> PowerChanges | None:  # noqa: ARG002
        """They are powered once."""
        changes, self._changes = self._changes, NO_POWER_CHANGES
        return changes if len(changes) else None


class PowerWire(Wire):
    """The fields of nodes about powering them down, and the action `power`."""

    node_fields = ("power_saving", "off", "resume_s", "ready_s", "idle_since_s")
    actions: Mapping[str, Action] = {
        "power": Action(POWER, Subject.NO_JOB, "bridge.extensions.power.requests")
    }

    def part_of_nodes(self, values: NDArray[np.int64]) -> PowerSaving | None:
        """The columns; None: no node can be powered down, and none is off."""
        can, off, resume_s, ready_s, idle_since_s = values.T.copy()
        if not (can.any() or off.any()):
            return None
        resume_s = np.minimum(resume_s, MAX_RESUME_S)
        return PowerSaving(
            can.astype(bool), off.astype(bool), resume_s, ready_s * off, idle_since_s
        )

    def node_values(self, part: PowerSaving, row: int) -> Iterable[object]:
        columns = (part.can, part.off, part.resume_s, part.ready_s, part.idle_since_s)
        return [column[row].item() for column in columns]

    def requests(self, take_id: Callable[[], int]) -> PowerRequests:
        return PowerRequests(take_id)

    def obeyed(self) -> PowerObeyed:
        return PowerObeyed()
