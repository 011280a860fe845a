# SPDX-License-Identifier: Apache-2.0
"""The assumed draw of nodes and jobs, W.

    powers = node_powers(rules, snapshot)       idle and maximum of each node, and which are on
    running = running_estimates(snapshot.running)
    draws = running_draws(snapshot, powers)     of each job on each of its nodes, beyond idle
    lower, upper = system_power(rules, snapshot)

Terms
    beyond idle  the power that a node draws in addition because of its job. A node that is off
                 draws nothing before, unless it is powered up first
                 (`bridge.extensions.power.closing`).
    estimate     of a job, W on each of its nodes, the node's idle power included; an upper one
                 for the upper bound, a lower one for the lower bound.

Rules
    1. The first node type that matches a node counts. A node without one draws 0 to 0 W.
    2. A node is on unless its state says that it is powered off. Nodes that are down, drained or
       reserved, that fail or do not answer, and those on their way down or up count as on: a
       controller that cannot reach a node does not know whether it has power.
    3. For each estimate the first known value counts: measured (running jobs), learnt, stated. So
       a job that draws more than it stated counts with its actual draw.
    4. If nothing is known, the upper estimate is the node's maximum, and the lower one its idle
       power. A job on a part of a node counts with the same part of the difference, by its CPUs,
       rounded up.
    5. Nodes that a job gives back count as its own until they are free.
    6. Of nodes that the snapshot does not have, only what running jobs draw there counts: the upper
       estimate on each, idle power included; if it is unknown, the largest maximum of all node
       types. The lower one is 0.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.power.columns import saving_of
from bridge.extensions.power.rules import PowerRules
from bridge.model.job import JobTable, RunningTable
from bridge.model.node import CPUS, state_flags
from bridge.model.snapshot import Snapshot
from bridge.planning.requests.cpu_shares import part_of
from bridge.planning.requests.node_sets import members

Watts = NDArray[np.int64]

_OFF = frozenset({"POWERED_DOWN", "POWERED_OFF", "FUTURE"})
"""States of a node that draws nothing."""


@dataclass(frozen=True)
class NodePowers:
    """The power of nodes; all columns (n_nodes,).

    Attributes:
        idle_w: power of a node that is on and has no job.
        max_w: maximum of a node.
        on: nodes that draw their idle power now.
        before: nodes that draw it before a job runs there: on, or powered up first.
    """

    idle_w: Watts
    max_w: Watts
    on: NDArray[np.bool_]
    before: NDArray[np.bool_]

    @cached_property
    def floor_w(self) -> Watts:
        """(n_nodes,) the power that each draws when a job begins there."""
        return np.where(self.before, self.idle_w, 0)

    @cached_property
    def span_w(self) -> Watts:
        """(n_nodes,) the maximum that each draws beyond idle."""
        return self.max_w - self.floor_w

    @property
    def idle_total_w(self) -> int:
        """The power of all nodes together without jobs."""
        return int(self.idle_w[self.on].sum())


@dataclass(frozen=True)
class JobEstimates:
    """The assumed draw of n jobs on each of their nodes; 0: unknown (rule 4).

    Attributes:
        upper_w, lower_w: (n,) int64.
    """

    upper_w: Watts
    lower_w: Watts


@dataclass(frozen=True)
class Draws:
    """The draw of n jobs on a node each, beyond idle.

    Attributes:
        upper_w, lower_w: (n,) int64, not negative.
    """

    upper_w: Watts
    lower_w: Watts


def node_powers(rules: PowerRules, snapshot: Snapshot) -> NodePowers:
    """The power of each node (rules 1 and 2). O(n_nodes) a type.

    Raises:
        RequestError: a type's feature expression is invalid.
    """
    n_nodes = len(snapshot.nodes)
    idle_w, max_w = np.zeros(n_nodes, dtype=np.int64), np.zeros(n_nodes, dtype=np.int64)
    for kind in reversed(rules.node_types):
        inside = members(kind.nodes, snapshot)
        idle_w[inside], max_w[inside] = kind.idle_w, kind.max_w
    states = snapshot.nodes.state
    is_on = {words: not _OFF & state_flags(words) for words in set(states)}
    on = np.array([is_on[words] for words in states], dtype=bool)
    saving = saving_of(snapshot.nodes)
    return NodePowers(idle_w, max_w, on, on if saving is None else on | saving.off)


def may_be_powered_down(rules: PowerRules, snapshot: Snapshot) -> NDArray[np.bool_]:
    """(n_nodes,) nodes that are on, and that site and controller permit to be powered down."""
    saving, settings = saving_of(snapshot.nodes), rules.power_down
    if saving is None or settings is None:
        return np.zeros(len(snapshot.nodes), dtype=bool)
    found: NDArray[np.bool_] = saving.can & ~saving.off & snapshot.nodes.usable
    if settings.partitions:
        for part in snapshot.partitions:
            if part.name not in settings.partitions:
                found[part.nodes] = False
    return found


def pending_estimates(jobs: JobTable) -> JobEstimates:
    """The estimates of waiting jobs (rule 3)."""
    return JobEstimates(
        upper_w=_first(jobs.learnt_max_power_w, jobs.max_power_w),
        lower_w=_first(jobs.learnt_min_power_w, jobs.min_power_w),
    )


def running_estimates(running: RunningTable) -> JobEstimates:
    """The estimates of running jobs (rule 3)."""
    return JobEstimates(
        upper_w=_first(
            running.measured_max_power_w, running.learnt_max_power_w, running.max_power_w
        ),
        lower_w=_first(
            running.measured_min_power_w, running.learnt_min_power_w, running.min_power_w
        ),
    )


def draws_on(
    estimates: JobEstimates,
    powers: NodePowers,
    job: NDArray[np.int64],
    node: NDArray[np.int64] | NDArray[np.int32],
    *,
    share: tuple[Watts, Watts] | None = None,
) -> Draws:
    """What jobs draw on nodes, beyond idle (rule 4).

    Args:
        job: (n,) which of the jobs.
        node: (n,) on which node.
        share: (n,) CPUs that each takes of its node, and their total; None: all of them.
    """
    floor_w, span_w = powers.floor_w[node], powers.span_w[node]
    if share is not None:
        span_w = part_of(span_w, *share)
    upper_w, lower_w = estimates.upper_w[job], estimates.lower_w[job]
    return Draws(
        upper_w=np.where(upper_w > 0, np.maximum(upper_w - floor_w, 0), span_w),
        lower_w=np.where(lower_w > 0, np.maximum(lower_w - floor_w, 0), 0),
    )


def running_shares(snapshot: Snapshot) -> tuple[Watts, Watts]:
    """CPUs that each running job takes of each of its nodes, and their total."""
    running = snapshot.running
    owner = np.repeat(np.arange(len(running)), np.diff(running.indptr))
    there = snapshot.nodes.capacity[running.nodes, CPUS]
    return np.where(running.exclusive[owner], there, running.use[:, CPUS]), there


def running_draws(snapshot: Snapshot, powers: NodePowers) -> Draws:
    """The draw of running jobs beyond idle, for each entry of `RunningTable.nodes`."""
    running = snapshot.running
    owner = np.repeat(np.arange(len(running)), np.diff(running.indptr))
    estimates = running_estimates(running)
    return draws_on(estimates, powers, owner, running.nodes, share=running_shares(snapshot))


def elsewhere_upper_w(rules: PowerRules, running: RunningTable) -> Watts:
    """(n_running,) what jobs may draw on nodes that the snapshot does not have (rule 6)."""
    largest_w = max((kind.max_w for kind in rules.node_types), default=0)
    upper_w = running_estimates(running).upper_w
    found: Watts = running.nodes_elsewhere * np.where(upper_w > 0, upper_w, largest_w)
    return found


def running_upper_w(rules: PowerRules, snapshot: Snapshot, powers: NodePowers) -> Watts:
    """(n_running,) what jobs may draw beyond idle on all of their nodes (rules 3 to 6)."""
    running = snapshot.running
    owner = np.repeat(np.arange(len(running)), np.diff(running.indptr))
    found = elsewhere_upper_w(rules, running)
    np.add.at(found, owner, running_draws(snapshot, powers).upper_w)
    return found


def system_power(rules: PowerRules, snapshot: Snapshot) -> tuple[int, int]:
    """The lower and the upper estimate of system power now, W."""
    powers = node_powers(rules, snapshot)
    lower_w = int(running_draws(snapshot, powers).lower_w.sum())
    rest_w = rules.base_w + powers.idle_total_w
    return rest_w + lower_w, rest_w + int(running_upper_w(rules, snapshot, powers).sum())


def _first(*columns: Watts) -> Watts:
    """The first known value of each row."""
    found = columns[-1]
    for column in reversed(columns[:-1]):
        found = np.where(column > 0, column, found)
    return found
