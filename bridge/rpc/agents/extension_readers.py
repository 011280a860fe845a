# SPDX-License-Identifier: Apache-2.0
"""Extensions that read the agents' reports and order them; one that fails stops no other."""

import logging
from collections.abc import Callable, Collection
from typing import Any

from bridge.extension_packages import installed
from bridge.extensions.service_port import AgentReader
from bridge.rpc.agents.launcher_table import AgentStream
from bridge.rpc.controller.cycles import CycleReport
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

    def left(self, agent: AgentStream, lost: Collection[str]) -> None:
        """The stream of an agent has ended."""
        self._each(lambda reader: reader.left(agent, lost))

    def took(self, agent: str, mine: Collection[str], uses: pb.Uses) -> None:
        """A report of use; see `bridge.extensions.service_port.AgentReader`."""
        self._each(lambda reader: reader.took(agent, mine, uses))

    def kept(self, mine: Collection[str], shares: pb.SharesInForce) -> None:
        """A report of CPU shares; see `bridge.extensions.service_port.AgentReader`."""
        self._each(lambda reader: reader.kept(mine, shares))

    def cycle(self, report: CycleReport) -> None:
        """A report of the controller has been answered."""
        if (published := report.published) is not None:
            self._each(lambda reader: reader.planned(published.snapshot, published.plan))

    def renew(self) -> None:
        """Orders may be repeated."""
        self._each(lambda reader: reader.renew())

    def _each(self, step: Callable[[AgentReader], None]) -> None:
        for name, reader in self._readers.items():
            try:
                step(reader)
            except Exception:  # a stranger's code
                _log.exception("the extension %s does not follow the agents", name)
