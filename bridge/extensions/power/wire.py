# SPDX-License-Identifier: Apache-2.0
"""Powering nodes down and up in messages; see `bridge.rpc.reported.extension_wire.Wire`."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.power.changes import changes_of, with_changes
from bridge.extensions.power.columns import PowerSaving
from bridge.extensions.power.requests import PowerRequests
from bridge.model.plan import Plan
from bridge.rpc.pb import scheduler_pb2 as pb
from bridge.rpc.reported.features import Feature
from bridge.rpc.reported.hostlist import NodeIndex

MAX_RESUME_S: Final = 7 * 86_400


class PowerWire:
    """The fields of nodes about powering them down, and the action `power`."""

    node_fields = ("power_saving", "off", "resume_s", "ready_s", "idle_since_s")
    feature = Feature.POWER
    action = "power"

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

    def obeyed(self, plan: Plan, decision: pb.Decision, nodes: NodeIndex) -> Plan:
        """The plan with the nodes that a service wants powered down or up."""
        named = nodes.parse(decision.power.nodes)
        before = changes_of(plan)
        changes = replace(before, up=named) if decision.power.up else replace(before, down=named)
        return with_changes(plan, changes)
