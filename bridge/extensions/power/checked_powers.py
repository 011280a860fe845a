# SPDX-License-Identifier: Apache-2.0
"""The power that the check assumes for nodes and jobs, W.

Rules
    1. A node has the first type that matches it; without one it draws nothing.
    2. A node draws its idle power unless it is powered off.
    3. The power of a waiting job on each node is the learnt one, else the stated; 0: it is unknown.
       For running ones see `bridge.check.known_power`.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bridge.check.amounts import CheckedAmounts, Ints
from bridge.check.kept_nodes import nodes_meant
from bridge.check.known_power import known
from bridge.extensions.power.columns import saving_of
from bridge.extensions.power.rules import PowerRules
from bridge.model.job import JobTable
from bridge.model.node import state_flags

_NO_POWER = {"POWERED_DOWN", "POWERED_OFF", "FUTURE"}


@dataclass(frozen=True)
class CheckedPowers:
    """The power of nodes; all columns (n_nodes,).

    Attributes:
        idle_w, max_w: without a job, and at most.
        on: which draw their idle power now.
        before: which draw it when a job begins: if need be, they are powered up first.
    """

    idle_w: Ints
    max_w: Ints
    on: NDArray[np.bool_]
    before: NDArray[np.bool_]


def node_powers(world: CheckedAmounts, rules: PowerRules) -> CheckedPowers:
    """Idle and maximum power of each node, by its type (rules 1 and 2)."""
    nodes = world.snapshot.nodes
    idle_w, max_w = np.zeros((2, len(nodes)), dtype=np.int64)
    typed = np.zeros(len(nodes), dtype=bool)
    for kind in rules.node_types:
        mine = nodes_meant(world, kind.nodes) & ~typed
        idle_w[mine], max_w[mine] = kind.idle_w, kind.max_w
        typed |= mine
    on = np.array([_NO_POWER.isdisjoint(state_flags(state)) for state in nodes.state], dtype=bool)
    saving = saving_of(nodes)
    return CheckedPowers(idle_w, max_w, on, on if saving is None else on | saving.off)


def waiting_upper_w(jobs: JobTable) -> Ints:
    """(n_jobs,) rule 3."""
    return known(jobs.learnt_max_power_w, jobs.max_power_w)
