# SPDX-License-Identifier: Apache-2.0
"""What extensions learn over reports, in the memory file and as columns of each snapshot.

One that fails stops neither the others nor the cycle: what it would have added is missing.
"""

import logging
from collections.abc import Callable
from typing import TypeVar

from bridge.extension_packages import installed
from bridge.extensions.service_port import Memory
from bridge.model.rules.site import Site
from bridge.model.snapshot import Snapshot
from bridge.ports import State
from bridge.rpc.agents.hub import Hub

_log = logging.getLogger(__name__)

T = TypeVar("T", State, Snapshot)


class ExtensionMemories:
    """The memories of all extensions, in the order in which these act."""

    def __init__(self, hub: Hub | None, site: Callable[[], Site]) -> None:
        """Starts without knowledge.

        Args:
            hub: the hub of the agents; None: there are none.
            site: the rules in force.
        """
        self._memories: dict[str, Memory] = {}
        for name, extension in installed().by_name.items():
            if extension.memory is None:
                continue
            try:
                self._memories[name] = extension.memory.made().memory(hub, site)
            except Exception:  # a stranger's code
                _log.exception("the extension %s learns nothing", name)

    def take(self, state: State) -> State:
        """Merges their parts of a stored state; returns the state without these."""
        return self._each(state, lambda memory, found: memory.take(found))

    def put(self, state: State) -> State:
        """A state for the store, with their parts."""
        return self._each(state, lambda memory, found: memory.put(found))

    def overlay(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with what they know; they learn from it."""
        return self._each(snapshot, lambda memory, found: memory.overlay(found))

    def _each(self, given: T, step: Callable[[Memory, T], T]) -> T:
        for name, memory in self._memories.items():
            try:
                given = step(memory, given)
            except Exception:  # a stranger's code
                _log.exception("what the extension %s has learnt is not used", name)
        return given
