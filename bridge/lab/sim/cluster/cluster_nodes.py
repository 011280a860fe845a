# SPDX-License-Identifier: Apache-2.0
"""The nodes of the simulated controller: their table, what jobs hold of them, and their power."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from bridge.lab.sim.cluster.allocation import Allocation
from bridge.lab.sim.cluster.occupancy import Occupancy
from bridge.lab.sim.cluster.power_states import PowerStates
from bridge.model.decisions.power_saving import PowerChanges
from bridge.model.node import NodeTable


class ClusterNodes:
    """All nodes.

    Attributes:
        table: as it is reported; replaced by another one with each change.
        occupancy: what jobs hold of each node.
        power_states: None: no node can be powered down.
    """

    def __init__(self, table: NodeTable) -> None:
        """Starts with unused nodes."""
        self.table, self.occupancy = table, Occupancy(table.capacity)
        self.power_states: PowerStates | None = None

    @property
    def used_processors(self) -> int:
        """Processors that jobs hold."""
        return int((self.occupancy.capacity[:, 0] - self.occupancy.free[:, 0]).sum())

    def set_usable(self, node: int, usable: bool) -> None:
        """Takes a node out of service or returns it."""
        column, states = self.table.usable.copy(), list(self.table.state)
        column[node], states[node] = usable, "UP" if usable else "DOWN"
        self.table = replace(self.table, usable=column, state=tuple(states))

    def power_on_off(
        self, now_s: int, changes: PowerChanges, allocations: Iterable[Allocation]
    ) -> int:
        """Powers nodes down and up, and continues changes under way; returns how much changed.

        Args:
            now_s: the present.
            changes: which nodes are ordered down and up.
            allocations: of the running jobs.
        """
        states = self.power_states
        if states is None:
            return 0
        changed, busy = states.happen(now_s), np.zeros(len(self.table), dtype=bool)
        for held in allocations:
            busy[held.nodes] = True
            if held.adaptation is not None:
                busy[held.adaptation.nodes] = True
        states.use(busy, now_s)
        states.order(changes, now_s)
        self.table = states.shown(self.table, now_s)
        return changed
