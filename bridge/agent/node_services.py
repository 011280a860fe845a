# SPDX-License-Identifier: Apache-2.0
"""What extensions do on a node: classes at the entry points of the group `schedbridge.agents`.

    [project.entry-points."schedbridge.agents"]
    sharing = "bridge.extensions.sharing.on_nodes.node_service:ShareService"

An agent is small: such a module imports neither numpy nor the port of the scheduler. One that
cannot be loaded or made, or fails, is logged and stops no other.
"""

import logging
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import Any, Final, TypeVar, cast

from bridge.agent.processes import Processes
from bridge.agent.settings import AgentSettings
from bridge.entry_points import loaded
from bridge.rpc.pb import agent_pb2 as pb

GROUP: Final = "schedbridge.agents"

_log = logging.getLogger(__name__)

T = TypeVar("T")

Send = Callable[[pb.AgentReport], None]
"""Sends a report; may be called by any thread, and never waits."""


class NodeService:
    """A part of an agent; those of extensions are derived from it.

    Attributes:
        hello: fields of `AgentHello` that it sets.
    """

    hello: Mapping[str, Any] = {}

    @classmethod
    def made(
        cls,
        settings: AgentSettings,  # noqa: ARG003
        processes: Processes,  # noqa: ARG003
        send: Send,  # noqa: ARG003
    ) -> "NodeService":
        """One for an agent.

        Args:
            processes: those of jobs on the node.
        """
        return cls()

    def start(self) -> None:
        """The agent serves from now on."""

    def connected(self) -> None:
        """A service has welcomed the agent; it numbers its orders from the start."""

    def take(self, order: pb.AgentOrder) -> None:
        """Takes an order that the agent itself does not know."""

    def measure(self, use: pb.Use) -> None:
        """Adds what it measures to a reading of nodes and jobs; by another thread, may wait."""

    def differs(self, before: pb.Use, now: pb.Use) -> bool:  # noqa: ARG002
        """Whether a reading is to be sent at once, as it differs from the one sent last."""
        return False

    def stop(self) -> None:
        """Ends; may wait."""


class NodeServices:
    """Those of all extensions."""

    def __init__(self, settings: AgentSettings, processes: Processes, send: Send) -> None:
        self._services: dict[str, NodeService] = {}
        problems: list[str] = []
        for name, kind in loaded(entry_points(group=GROUP), type, _check, problems):
            try:
                self._services[name] = cast(type[NodeService], kind).made(settings, processes, send)
            except Exception:  # a stranger's code
                _log.exception("the extension %s does nothing on this node", name)
        for problem in problems:
            _log.error("%s", problem)

    @property
    def hello(self) -> dict[str, Any]:
        """Fields of the agent's hello."""
        return {key: value for each in self._services.values() for key, value in each.hello.items()}

    def start(self) -> None:
        """See `NodeService.start`; so for the others."""
        self._each(lambda service: service.start())

    def connected(self) -> None:
        self._each(lambda service: service.connected())

    def take(self, order: pb.AgentOrder) -> None:
        self._each(lambda service: service.take(order))

    def measure(self, use: pb.Use) -> None:
        self._each(lambda service: service.measure(use))

    def differs(self, before: pb.Use, now: pb.Use) -> bool:
        """Whether it does for one of them."""
        return any(self._each(lambda service: service.differs(before, now)))

    def stop(self) -> None:
        self._each(lambda service: service.stop())

    def _each(self, step: Callable[[NodeService], T]) -> list[T]:
        """What it returns for each that does not fail."""
        found = []
        for name, service in self._services.items():
            try:
                found.append(step(service))
            except Exception:  # a stranger's code
                _log.exception("the extension %s has failed on this node", name)
        return found


def _check(_: str, kind: type) -> None:
    """Raises ValueError if an entry point names another class."""
    if not issubclass(kind, NodeService):
        raise ValueError(f"it must be derived from {NodeService.__module__}.{NodeService.__name__}")
