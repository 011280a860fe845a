# SPDX-License-Identifier: Apache-2.0
"""Checks whether a plan keeps the upper bound of power, by an independent sum over time.

Rules
    1. At every second the base, the idle power of all nodes that are on, and the power of rows and
       running jobs beyond idle stay together within the upper bound of that second.
    2. `checked_powers.py` and `bridge.check.known_power` state the assumed power of nodes and jobs.
    3. Running jobs, and nodes that they are giving back, count until their expected ends. A
       violation by them alone is not a fault of the plan, but no further power may be added to it.
    4. Added nodes of running jobs are rows here (`bridge.check.resizes.added_nodes`).
    5. On nodes that the snapshot does not have, a running job draws its whole estimate on each; if
       it is unknown, as much as a node of any type may.
    6. A node that is powered up draws its idle power until it is available.
"""

import numpy as np
from numpy.typing import NDArray

from bridge.check.amounts import CheckedAmounts, Ints
from bridge.check.known_power import running_upper_w
from bridge.check.sums import Found, Sum, overrun
from bridge.extensions.power.changes import changes_of
from bridge.extensions.power.checked_powers import CheckedPowers, node_powers, waiting_upper_w
from bridge.extensions.power.columns import saving_of
from bridge.extensions.power.rules import NO_UPPER_W, PowerRules
from bridge.model.node import CPUS
from bridge.units import NEVER


def broken_power(world: CheckedAmounts, rules: PowerRules) -> Found:
    """Finds the rows that exceed the upper bound.

    Args:
        world: the rows and the running jobs.
        rules: the bounds and the node types.
    """
    bounds = _bounds(rules, world.now_s)
    if not len(bounds):
        return
    snapshot, running = world.snapshot, world.snapshot.running
    powers = node_powers(world, rules)
    idle_w = np.where(powers.on, powers.idle_w, 0)
    bounds[:, 2] -= rules.base_w + int(idle_w.sum())
    bounds = _with_resuming(world, powers, bounds)
    bounds[:, 2] = np.maximum(bounds[:, 2], 0)

    stated_w = waiting_upper_w(snapshot.jobs)[world.job[world.entry_row]]
    cpus = _taken(world, world.node, world.want[:, CPUS], world.whole[world.entry_row])
    drawn_w = _drawn(powers, world.node, stated_w, *cpus)
    rows_w = np.bincount(world.entry_row, drawn_w, minlength=len(world.rows)).astype(np.int64)

    holder = np.arange(len(running)).repeat(np.diff(running.indptr))
    known_w = running_upper_w(running)
    stated_w = known_w[holder]
    cpus = _taken(world, running.nodes, running.use[:, CPUS], running.exclusive[holder])
    drawn_w = _drawn(powers, running.nodes, stated_w, *cpus)
    held_w = np.bincount(holder, drawn_w, minlength=len(running)).astype(np.int64)
    any_w = max((kind.max_w for kind in rules.node_types), default=0)
    held_w += np.where(known_w == 0, any_w, known_w) * running.nodes_elsewhere

    rows, others = np.flatnonzero(rows_w), np.flatnonzero(held_w)
    text = "draws more than the upper bound of power leaves"
    yield from overrun(world, [Sum(rows, rows_w[rows], others, held_w[others], bounds, text)])


def _bounds(rules: PowerRules, now_s: int) -> Ints:
    """(n, 3) begin, end and upper bound of each step from now on."""
    corridor = rules.corridor
    found = [
        (max(start_s, now_s), end_s, upper_w)
        for start_s, end_s, upper_w in zip(
            corridor.starts_s, (*corridor.starts_s[1:], NEVER), corridor.upper_w, strict=True
        )
        if upper_w != NO_UPPER_W and end_s > now_s
    ]
    return np.array(found, dtype=np.int64).reshape(-1, 3)


def _with_resuming(world: CheckedAmounts, powers: CheckedPowers, bounds: Ints) -> Ints:
    """The bounds without the power of nodes that are powered up (rule 6)."""
    up, saving = changes_of(world.plan).up, saving_of(world.snapshot.nodes)
    if not len(up) or saving is None:
        return bounds
    until_s = world.now_s + int(saving.resume_s[up].max())
    drawn_w = int(powers.idle_w[up].sum())
    early, late = bounds[bounds[:, 0] < until_s], bounds[bounds[:, 1] > until_s]
    early, late = early.copy(), late.copy()
    early[:, 1] = np.minimum(early[:, 1], until_s)
    early[:, 2] -= drawn_w
    late[:, 0] = np.maximum(late[:, 0], until_s)
    return np.concatenate((early, late))


def _taken(
    world: CheckedAmounts, node: NDArray[np.int32], cpus: Ints, whole: NDArray[np.bool_]
) -> tuple[Ints, Ints]:
    """(e,) the CPUs that jobs take on their nodes, at least one, and the CPUs of these."""
    there = np.maximum(world.snapshot.nodes.capacity[node, CPUS], 1)
    return np.where(whole | (cpus >= there), there, np.maximum(cpus, 1)), there


def _drawn(
    powers: CheckedPowers, node: NDArray[np.int32], stated_w: Ints, taken: Ints, there: Ints
) -> Ints:
    """(e,) the power of jobs on nodes beyond idle.

    Args:
        node: (e,) the node.
        stated_w: (e,) the job's estimate; 0: unknown.
        taken: (e,) the CPUs that it takes on its node.
        there: (e,) the CPUs of the node.
    """
    idle_w = powers.idle_w[node] * powers.before[node]
    max_w, rest = np.divmod((powers.max_w[node] - idle_w) * taken, there)
    return np.where(stated_w == 0, max_w + (rest > 0), np.maximum(stated_w, idle_w) - idle_w)
