# SPDX-License-Identifier: Apache-2.0
"""Decides which nodes are powered up for planned jobs, and which idle ones are powered down.

Terms
    excess    by how much system power, by its upper estimate, exceeds the upper bound now, W.
    missing   by how much a job that waits for power would exceed the upper bound at the worst
              instant of a run from now on, W.

Rules
    1. Nodes that are powered off are powered up when a job is planned to start there as soon as
       they are available: all those of the job, if their idle power fits within the upper bound
       until then. Jobs are considered in the order of the plan.
    2. Idle nodes are powered down to remove the excess, or, if there is none, to provide the
       missing power to one job that waits for power. It is the first in the order of the plan for
       which they suffice without taking system power, by its lower estimate, below its lower
       bound; of equal jobs one is tried, `_MAX_TRIED` in all. Nodes on the way down count as done.
    3. Only nodes on which no job runs, none starts, and none is planned before the node could be
       back; of permitted partitions (`PowerDown.partitions`); and idle for `hold_s`, unless
       there is an excess. The nodes of least weight stay on, as many as that job needs.
    4. Nodes that draw most when idle go first, then those of greatest weight.

Source: ours.
"""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.power.changes import NO_POWER_CHANGES, PowerChanges
from bridge.extensions.power.columns import PowerSaving, saving_of
from bridge.extensions.power.planning.estimates import (
    NodePowers,
    Watts,
    may_be_powered_down,
    node_powers,
    pending_estimates,
    running_upper_w,
    system_power,
)
from bridge.extensions.power.planning.planned import planned_draws
from bridge.extensions.power.rules import NO_UPPER_W, PowerDown, PowerRules
from bridge.model.plan import Plan
from bridge.model.reasons import ReasonCode
from bridge.model.snapshot import Snapshot
from bridge.units import NEVER, UNPLANNED

_SOON_S = 60
"""A job starts as soon as the node is available if it is planned within this time of that."""
_MAX_TRIED = 50


def power_changes(snapshot: Snapshot, rules: PowerRules | None, plan: Plan) -> PowerChanges:
    """The nodes to power down or up now. O(n_nodes + entries of the plan).

    Args:
        snapshot: the cluster, as the plan was made for it.
        rules: bounds of power; None: power is not bounded.
        plan: checked or not.
    """
    saving = saving_of(snapshot.nodes)
    if saving is None:
        return NO_POWER_CHANGES
    use = _Use(snapshot, saving, rules or PowerRules(), plan)
    up = use.to_power_up()
    if rules is None or rules.power_down is None or len(up):
        return PowerChanges(up=up)
    return use.to_power_down(rules.power_down)


class _Use:
    """The nodes and power that running jobs and the rows of a plan use."""

    def __init__(
        self, snapshot: Snapshot, saving: PowerSaving, rules: PowerRules, plan: Plan
    ) -> None:
        self._snapshot, self._saving, self._rules, self._plan = snapshot, saving, rules, plan
        self._now_s = snapshot.now_s
        self._powers: NodePowers = node_powers(rules, snapshot)
        planned = (plan.start_s >= self._now_s) & (plan.end_s > plan.start_s)
        rows = np.flatnonzero(planned & (plan.start_s != UNPLANNED))
        self._row = np.repeat(np.arange(len(plan)), np.diff(plan.indptr))
        inside = np.isin(self._row, rows)
        self._row, self._node = self._row[inside], plan.nodes[inside].astype(np.int64)
        self._rows_w = np.zeros(len(plan), dtype=np.int64)
        self._rows_w[rows] = planned_draws(snapshot, self._powers, plan, rows).upper_w
        self._held_w = running_upper_w(rules, snapshot, self._powers)
        self._rest_w = rules.base_w + self._powers.idle_total_w

    def to_power_up(self) -> NDArray[np.int32]:
        """Nodes that are off on which jobs are planned to start soon (rule 1)."""
        saving, soon_s = self._saving, self._now_s + self._saving.resume_s + _SOON_S
        sleeping = saving.off & ~saving.resuming & ~self._powers.on & self._snapshot.nodes.usable
        wanted = sleeping[self._node] & (self._plan.start_s[self._row] <= soon_s[self._node])
        if not wanted.any():
            return NO_POWER_CHANGES.up
        until_s = self._now_s + int(saving.resume_s[self._node[wanted]].max())
        free_w = self._free_w(self._now_s, until_s, others=True)
        found: set[int] = set()
        for row in dict.fromkeys(self._row[wanted].tolist()):
            nodes = self._plan.nodes_of(row)
            new = {*nodes[sleeping[nodes]].tolist()} - found
            needs_w = int(self._powers.idle_w[[*new]].sum()) if new else 0
            if needs_w <= free_w:
                found |= new
                free_w -= needs_w
        return np.array(sorted(found), dtype=np.int32)

    def to_power_down(self, settings: PowerDown) -> PowerChanges:
        """Idle nodes whose power is in excess, or wanted by a waiting job (rules 2 to 4)."""
        excess_w = -self._free_w(self._now_s, self._now_s + 1, others=False)
        if excess_w > 0:
            reason = f"system power is {excess_w:,} W above its upper bound"
            return self._chosen(settings, excess_w, reason, kept=0, forced=True)
        again_s = NEVER
        for row in self._waiting_for_power():
            job = int(self._plan.job[row])
            n_nodes = int(self._snapshot.jobs.min_nodes[job])
            missing_w = self._missing_w(row, job, n_nodes)
            if not 0 < missing_w <= self._spare_w:
                continue
            if missing_w <= self._leaving_w:
                return NO_POWER_CHANGES
            reason = f"job {self._snapshot.jobs.id[job]} waits for {missing_w:,} W"
            found = self._chosen(settings, missing_w, reason, kept=n_nodes, forced=False)
            if len(found):
                return found
            again_s = min(again_s, found.again_s)
        return PowerChanges(again_s=again_s)

    def _waiting_for_power(self) -> Iterator[int]:
        """The first row of each kind of job whose reason is power, at most `_MAX_TRIED`."""
        jobs, plan = self._snapshot.jobs, self._plan
        kinds: set[tuple[int, ...]] = set()
        for row, why in enumerate(plan.reasons):
            if why is None or why.code is not ReasonCode.POWER:
                continue
            job = int(plan.job[row])
            alike = (jobs.min_nodes, jobs.time_limit_s, self._stated_w)
            kind = (int(plan.partition[row]), *(int(column[job]) for column in alike))
            if kind in kinds:
                continue
            if len(kinds) == _MAX_TRIED:
                return
            kinds.add(kind)
            yield row

    @cached_property
    def _stated_w(self) -> Watts:
        """(n_jobs,) the upper estimates of waiting jobs, W on each node; 0: not known."""
        return pending_estimates(self._snapshot.jobs).upper_w

    @cached_property
    def _spare_w(self) -> int:
        """The power that may be saved without falling below the lower bound."""
        lower_w, _ = system_power(self._rules, self._snapshot)
        return lower_w - self._rules.corridor.at(self._now_s)[0]

    @cached_property
    def _leaving_w(self) -> int:
        """The power that nodes on the way down still draw."""
        saving = self._saving
        leaving = saving.off & ~saving.resuming & self._powers.on
        return int(self._powers.idle_w[leaving].sum())

    def _missing_w(self, row: int, job: int, n_nodes: int) -> int:
        snapshot, plan = self._snapshot, self._plan
        stated_w = int(self._stated_w[job])
        if stated_w == 0 or not (self._row == row).any():
            named = int(plan.partition[row])
            nodes = (
                snapshot.partitions[named].nodes if named >= 0 else np.arange(len(snapshot.nodes))
            )
            span_w = int(self._powers.span_w[nodes].max(initial=0))
            min_w = int(self._powers.floor_w[nodes].min(initial=NO_UPPER_W))
            needs_w = n_nodes * (max(stated_w - min_w, 0) if stated_w else span_w)
        else:
            needs_w = int(self._rows_w[row])
        length_s = int(plan.end_s[row] - plan.start_s[row])
        if length_s <= 0:
            length_s = max(int(snapshot.jobs.time_limit_s[job]), 1)
        free_w = self._free_w(self._now_s, self._now_s + length_s, others=False, but=row)
        return max(needs_w - free_w, 0)

    def _free_w(self, from_s: int, until_s: int, *, others: bool, but: int = -1) -> int:
        """The minimum that the upper bound leaves at its steps in [from_s, until_s), W.

        Args:
            others: all rows that start before count all the time; else only those that have begun.
            but: a row that does not count.
        """
        corridor, plan = self._rules.corridor, self._plan
        begins = plan.start_s >= self._now_s
        minimum = NO_UPPER_W
        for start_s, upper_w, end_s in zip(
            corridor.starts_s, corridor.upper_w, (*corridor.starts_s[1:], NO_UPPER_W), strict=True
        ):
            at_s = max(start_s, from_s)
            if upper_w == NO_UPPER_W or at_s >= min(until_s, end_s):
                continue
            counts = begins & (plan.start_s <= (until_s if others else at_s)) & (plan.end_s > at_s)
            if but >= 0:
                counts[but] = False
            runs = np.maximum(self._snapshot.running.end_s, self._now_s + 1) > at_s
            used_w = int(self._rows_w[counts].sum()) + int(self._held_w[runs].sum())
            minimum = min(minimum, upper_w - self._rest_w - used_w)
        return minimum

    def _chosen(
        self, settings: PowerDown, wanted_w: int, reason: str, *, kept: int, forced: bool
    ) -> PowerChanges:
        """Nodes that together draw at least a given power when idle (rules 3 and 4).

        Args:
            forced: include recently used nodes; and power down even if all do not suffice.
        """
        saving, nodes = self._saving, self._snapshot.nodes
        idle_w: Watts = self._powers.idle_w
        wanted_w -= self._leaving_w
        if wanted_w <= 0:
            return NO_POWER_CHANGES
        free = may_be_powered_down(self._rules, self._snapshot) & (idle_w > 0)
        free[self._snapshot.running.nodes] = False
        back_s = self._now_s + saving.resume_s + settings.hold_s
        soon = self._plan.start_s[self._row] <= back_s[self._node]
        free[self._node[soon]] = False
        again_s = NEVER
        if not forced:
            rested_s = saving.idle_since_s + settings.hold_s
            again_s = int(rested_s[free & (rested_s > self._now_s)].min(initial=NEVER))
            free &= rested_s <= self._now_s
        at = np.flatnonzero(free)
        at = at[np.lexsort((at, nodes.weight[at]))][kept:]
        at = at[np.lexsort((-at, -nodes.weight[at], -idle_w[at]))]
        saved_w = np.cumsum(idle_w[at])
        many = int(np.searchsorted(saved_w, wanted_w)) + 1
        if many > len(at) and not forced:
            return PowerChanges(again_s=again_s)
        return PowerChanges(np.sort(at[:many]).astype(np.int32), reason=reason)
