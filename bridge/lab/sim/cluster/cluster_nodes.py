# SPDX-License-Identifier: Apache-2.0
"""The nodes of the simulated controller: their table, what jobs hold of them, and extensions."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.port import SimulatedNodes
from bridge.lab.sim.cluster.allocation import Allocation
from bridge.lab.sim.cluster.occupancy import Occupancy
from bridge.model.node import NodeTable
from bridge.model.plan import Plan
from bridge.units import NEVER


class ClusterNodes:
    """All nodes.

    Attributes:
        table: as it is reported; replaced by another one with each change.
        occupancy: what jobs hold of each node.
        extensions: the states of nodes that extensions keep.
    """

    def __init__(self, table: NodeTable) -> None:
        """Starts with unused nodes."""
        self.table, self.occupancy = table, Occupancy(table.capacity)
        self.extensions: list[SimulatedNodes] = []

    @property
    def used_processors(self) -> int:
        """Processors that jobs hold."""
        return int((self.occupancy.capacity[:, 0] - self.occupancy.free[:, 0]).sum())

    def set_usable(self, node: int, usable: bool) -> None:
        """Takes a node out of service or returns it."""
        column, states = self.table.usable.copy(), list(self.table.state)
        column[node], states[node] = usable, "UP" if usable else "DOWN"
        self.table = replace(self.table, usable=column, state=tuple(states))

    def next_s(self) -> int:
        """When a node changes its state by itself; NEVER: none does."""
        return min((each.next_s() for each in self.extensions), default=NEVER)

    def objection(self, nodes: NDArray[np.int32]) -> str | None:
        """Why no job can start on some nodes; None: one can."""
        return next(filter(None, (each.objection(nodes) for each in self.extensions)), None)

    def go_on(self, now_s: int, allocations: Iterable[Allocation], plan: Plan | None = None) -> int:
        """Continues changes of nodes under way; returns how much changed.

        Args:
            plan: with changes that begin now; None: none do.
        """
        if not self.extensions:
            return 0
        changed, busy = 0, np.zeros(len(self.table), dtype=bool)
        for held in allocations:
            busy[held.nodes] = True
            if held.adaptation is not None:
                busy[held.adaptation.nodes] = True
        for each in self.extensions:
            changed += each.happen(now_s, busy)
            if plan is not None:
                each.obey(plan, now_s)
            self.table = each.shown(self.table, now_s)
        return changed
