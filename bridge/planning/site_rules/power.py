# SPDX-License-Identifier: Apache-2.0
"""Lowers the upper bound of power to a constraint, and jobs to their terms on it.

Rules
    1. The bound is one constraint: at each second what the upper bound leaves beyond the base and
       the idle power of all nodes that are on; not below 0. It has a step wherever the upper bound
       changes, so a job must fit throughout its run.
    2. A job counts with its draw beyond the idle power of its nodes, by the upper estimates of
       `bridge.planning.power.estimates`. While its nodes are unknown, it counts with the maximum of
       the nodes of its layout (`Extent.watts`), or, without a layout, of its partition.
    3. Running jobs count, and are never refused.
    4. A job that draws nothing beyond idle has no term.
    5. A job that needs more than the bound ever leaves can run if powering down idle nodes would
       make that available.
"""

import numpy as np
from numpy.typing import NDArray

from bridge.model.rules.power import NO_UPPER_W, PowerRules
from bridge.model.snapshot import Snapshot
from bridge.planning.power.estimates import (
    Watts,
    may_be_powered_down,
    node_powers,
    pending_estimates,
    running_draws,
)
from bridge.planning.site_rules.capacity_constraints import (
    UNBOUNDED,
    CapacityConstraintList,
    Mode,
    TermList,
)
from bridge.planning.site_rules.limits import simplified

KEY = "power"
LABEL = "upper bound of power"


def binds(rules: PowerRules | None, now_s: int) -> bool:
    """Whether an upper bound is, or will be, in force."""
    if rules is None:
        return False
    starts_s, upper_w = rules.corridor.starts_s, rules.corridor.upper_w
    ends_s = (*starts_s[1:], None)
    return any(
        upper != NO_UPPER_W and (end_s is None or end_s > now_s)
        for upper, end_s in zip(upper_w, ends_s, strict=True)
    )


class LoweredPower:
    """The upper bound of one snapshot.

    Attributes:
        nodes: what they draw.
        waiting: (n_jobs,) upper estimates of the waiting jobs, W on each node; 0: the node's most.
        constraint: its number.
        rest_w: the base, and the idle power of all nodes that are on.
        corridor: the bounds.
    """

    def __init__(
        self, rules: PowerRules, snapshot: Snapshot, constraints: CapacityConstraintList
    ) -> None:
        self._snapshot, self.corridor = snapshot, rules.corridor
        self.nodes = node_powers(rules, snapshot)
        self.waiting = pending_estimates(snapshot.jobs).upper_w
        self.rest_w = rules.base_w + self.nodes.idle_total_w
        starts = np.array(rules.corridor.starts_s, dtype=np.int64)
        upper_w = np.array(rules.corridor.upper_w, dtype=np.int64)
        left_w = np.where(upper_w == NO_UPPER_W, UNBOUNDED, np.maximum(upper_w - self.rest_w, 0))
        first = int(np.searchsorted(starts, snapshot.now_s, side="right")) - 1
        starts = np.maximum(starts[first:], snapshot.now_s)
        self.constraint = constraints.add(
            *simplified(starts, left_w[first:]), key=KEY, label=LABEL, unit="W"
        )
        idle_w = self.nodes.idle_w[may_be_powered_down(rules, snapshot)]
        constraints.may_rise(self.constraint, int(idle_w.sum()))

    def add_terms(self, terms: TermList, watts: Watts) -> None:
        """Adds the terms of waiting jobs; (n,) what each draws at most."""
        self._add(terms, watts, Mode.BOTH)

    def count_running(self, terms: TermList) -> None:
        """Adds what running jobs draw."""
        running = self._snapshot.running
        owner = np.repeat(np.arange(len(running)), np.diff(running.indptr))
        watts = np.zeros(len(running), dtype=np.int64)
        np.add.at(watts, owner, running_draws(self._snapshot, self.nodes).upper_w)
        self._add(terms, watts, Mode.COUNT)

    def _add(self, terms: TermList, watts: Watts, mode: Mode) -> None:
        jobs = np.flatnonzero(watts > 0)
        constraint = np.full(len(jobs), self.constraint, dtype=np.int64)
        terms.add(jobs, constraint, watts[jobs], np.full(len(jobs), mode, dtype=np.int8))

    def most(
        self, rows: NDArray[np.int64], partition: NDArray[np.int64], nodes: NDArray[np.int64]
    ) -> Watts:
        """(n,) an upper bound of what jobs draw on any nodes of their partitions.

        Args:
            rows: (n,) of `Snapshot.jobs`.
            partition: (n,) where each would run.
            nodes: (n,) on how many nodes.
        """
        parts = [part.nodes for part in self._snapshot.partitions]
        span_w = [self.nodes.span_w[inside].max(initial=0) for inside in parts]
        floor_w = [self.nodes.floor_w[inside].min(initial=NO_UPPER_W) for inside in parts]
        least_w = np.array([*floor_w, 0], dtype=np.int64)[partition]
        most_w = np.array([*span_w, 0], dtype=np.int64)[partition]
        stated_w = self.waiting[rows]
        each_w = np.where(stated_w > 0, np.maximum(stated_w - least_w, 0), most_w)
        found: Watts = nodes * each_w
        return found
