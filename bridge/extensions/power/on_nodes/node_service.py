# SPDX-License-Identifier: Apache-2.0
"""The part of an agent that measures the power of its nodes.

Rules
    1. Values that cannot be read are left out: a node without a value has no `watts`. A meter that
       has lost its value is named, with the last one.
    2. The watts are the node's. The service, which knows the idle power, divides them among jobs.
    3. A reading is sent at once if a node's power differs from the last sent value by more than
       `CHANGE` of it, or if a value of a node has appeared or disappeared since.
"""

import math
from collections.abc import Sequence
from typing import Final

from bridge.agent.node_services import NodeService, Send
from bridge.agent.processes import Processes
from bridge.agent.settings import AgentSettings
from bridge.extensions.power.on_nodes.choice import NAME, NodeSensors, PowerSettings
from bridge.extensions.power.on_nodes.model import NodeLoad
from bridge.rpc.pb import agent_pb2 as pb

CHANGE: Final = 0.1


class PowerService(NodeService):
    """Adds power to readings of use."""

    def __init__(self, nodes: Sequence[str], settings: PowerSettings) -> None:
        """Finds sensors; `nodes`: at least one."""
        self._sensors = {
            name: NodeSensors(name, settings, NodeLoad(), of=len(nodes)) for name in nodes
        }
        self._stated = settings.model is not None

    @classmethod
    def made(cls, settings: AgentSettings, processes: Processes, send: Send) -> NodeService:  # noqa: ARG003
        """One with the agent's settings of sensors."""
        return cls(settings.nodes, settings.extensions.get(NAME) or PowerSettings())

    def take(self, order: pb.AgentOrder) -> None:
        """Sets the bounds of the model by the service; the agent's own options prevail."""
        if not order.HasField("model"):
            return
        stated = order.model
        sensors = self._sensors.get(stated.node)
        if sensors is not None and not self._stated and 0 <= stated.idle_w <= stated.max_w:
            sensors.model.bounds = stated.idle_w, stated.max_w

    def measure(self, use: pb.Use) -> None:
        """Adds the power of each node."""
        for node in use.nodes:
            sensors = self._sensors[node.node]
            sensors.load.cpus = node.cpus
            sensors.load.busy_cpus = node.busy_cpus if node.HasField("busy_cpus") else None
            value = sensors.read()
            if value is not None and math.isfinite(value.watts):
                node.watts, node.source = value.watts, value.source
                node.age_ms = min(round(value.age_s * 1000), (1 << 32) - 1)
            if sensors.lost is not None:
                node.lost_source, node.lost_watts = sensors.lost.source, sensors.lost.watts

    def differs(self, before: pb.Use, now: pb.Use) -> bool:
        """See rule 3."""
        return differs(before, now)


def differs(before: pb.Use, now: pb.Use) -> bool:
    """Whether the power of a node differs much between two readings (rule 3)."""
    former, present = _powers(before), _powers(now)
    return former.keys() != present.keys() or any(
        _jumps(former[node], watts) for node, watts in present.items()
    )


def _powers(use: pb.Use) -> dict[str, float | None]:
    return {node.node: node.watts if node.HasField("watts") else None for node in use.nodes}


def _jumps(then: float | None, now: float | None) -> bool:
    if now is None or then is None:
        return now is not then
    return abs(now - then) > CHANGE * abs(then)
