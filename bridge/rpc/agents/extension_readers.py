# SPDX-License-Identifier: Apache-2.0
"""Extensions that read the agents' reports; one that fails stops neither the others nor the hub."""

import logging
from collections.abc import Callable, Collection
from typing import Any

from bridge.extension_packages import installed
from bridge.extensions.service_port import AgentReader
from bridge.rpc.agents.launcher_table import AgentStream
from bridge.rpc.pb import agent_pb2 as pb

_log = logging.getLogger(__name__)


class ExtensionReaders:
    """The readers of all extensions of one hub."""

    def __init__(self, clock: Callable[[], float]) -> None:
        """Starts without reports; `clock`: monotonic, s."""
        self._readers: dict[str, AgentReader] = {}
        for name, extension in installed().by_name.items():
            if extension.agents is None:
                continue
            try:
                self._readers[name] = extension.agents.made().reader(clock)
            except Exception:  # a stranger's code
                _log.exception("the extension %s reads no reports of agents", name)

    def get(self, name: str) -> Any:
        """The reader of an extension; None: there is none."""
        return self._readers.get(name)

    def arrived(self, agent: AgentStream) -> None:
        """An agent has opened its stream."""
        self._each(lambda reader: reader.arrived(agent))

    def took(self, agent: str, mine: Collection[str], uses: pb.Uses) -> None:
        """A report of use; see `bridge.extensions.service_port.AgentReader`."""
        self._each(lambda reader: reader.took(agent, mine, uses))

    def _each(self, step: Callable[[AgentReader], None]) -> None:
        for name, reader in self._readers.items():
            try:
                step(reader)
            except Exception:  # a stranger's code
                _log.exception("a report of an agent is lost for the extension %s", name)
