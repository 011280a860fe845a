# SPDX-License-Identifier: Apache-2.0
"""System power now, and the power of jobs on other numbers of nodes.

Rules
    1. System power is out of the corridor if its upper estimate lies above the upper bound, or its
       lower estimate below the lower bound (`bridge.extensions.power.planning.estimates`).
    2. If its nodes differ, a job counts for each of them as on the node where it draws most, for
       the upper bound, and as on the node where it draws least, for the lower one.
    3. A running job could grow onto nodes that are idle, and onto those that others could release.
    4. A waiting job counts with the fewest nodes that it can start on, whole ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.power.planning.configuration import Room, Scalable
from bridge.extensions.power.planning.estimates import (
    draws_on,
    node_powers,
    pending_estimates,
    running_draws,
    running_upper_w,
    system_power,
)
from bridge.extensions.power.planning.planned import planned_draws
from bridge.extensions.power.rules import PowerRules
from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.snapshot import Snapshot
from bridge.planning.eligibility.alternatives import Eligibility
from bridge.planning.malleable.elastic import RULES
from bridge.planning.malleable.expand_shrink import Malleables, idle_nodes
from bridge.planning.malleable.usable import Usable
from bridge.planning.malleable.widths import allowed_widths

_WAITS = frozenset({ReasonCode.RESOURCES, ReasonCode.PRIORITY, ReasonCode.LIMIT})


@dataclass(frozen=True)
class Outside:
    """By how much power is out of the corridor, W.

    Attributes:
        over_w: the upper estimate above the upper bound.
        under_w: the lower estimate below the lower bound.
    """

    over_w: int
    under_w: int

    def __bool__(self) -> bool:
        return bool(self.over_w or self.under_w)


class DrawnPower:
    """The system's power at the time of a snapshot.

    Attributes:
        bounds_w: lower and upper bound.
        system_w: lower and upper estimate of the present power.
        rest_w: the part of it that would be drawn without jobs.
        jobs_w: (n_running,) the maximum that each job draws on all its nodes, beyond idle.
    """

    def __init__(
        self, rules: PowerRules, snapshot: Snapshot, malleables: Malleables, *, ahead_s: int = 0
    ) -> None:
        """Computes it.

        Args:
            malleables: which running jobs may be resized now.
            ahead_s: an upper bound that comes into force within this time counts already.
        """
        self._snapshot, self._malleables = snapshot, malleables
        self._powers = node_powers(rules, snapshot)
        self._draws = running_draws(snapshot, self._powers)
        lower_w, upper_w = rules.corridor.at(snapshot.now_s)
        at_s = rules.corridor.next_change_s(snapshot.now_s)
        while at_s <= snapshot.now_s + ahead_s:
            upper_w = min(upper_w, rules.corridor.at(at_s)[1])
            at_s = rules.corridor.next_change_s(at_s)
        self.bounds_w = min(lower_w, upper_w), upper_w
        self.rest_w = rules.base_w + self._powers.idle_total_w
        self.system_w = system_power(rules, snapshot)
        self.jobs_w = running_upper_w(rules, snapshot, self._powers)

    def starting_w(self, plan: Plan) -> tuple[int, int]:
        """Minimum and maximum draw, beyond idle, of the jobs that a plan starts now."""
        draws = planned_draws(self._snapshot, self._powers, plan, plan.starts_now)
        return int(draws.lower_w.sum()), int(draws.upper_w.sum())

    @property
    def now_outside(self) -> Outside:
        """Whether power is out of the corridor, without further starts.

        Starts of a plan that keeps the rules of the site do not exceed an upper bound.
        """
        (lower_w, upper_w), (min_w, max_w) = self.bounds_w, self.system_w
        return Outside(max(max_w - upper_w, 0), max(lower_w - min_w, 0))

    def outside(self, plan: Plan) -> Outside:
        """Whether power is out of the corridor, including the starts of a plan (rule 1)."""
        min_w, max_w = self.starting_w(plan)
        return Outside(
            over_w=max(self.system_w[1] + max_w - self.bounds_w[1], 0),
            under_w=max(self.bounds_w[0] - self.system_w[0] - min_w, 0),
        )

    def room(self, plan: Plan) -> Room:
        """The power that the corridor and a plan's starts leave for resizable jobs."""
        running = self._snapshot.running
        own = np.zeros(len(running), dtype=bool)
        own[self._malleables.rows] = True
        own = np.repeat(own, np.diff(running.indptr))
        min_w, max_w = self.starting_w(plan)
        rest_w = (
            self.system_w[0] + min_w - int(self._draws.lower_w[own].sum()),
            self.system_w[1] + max_w - int(self._draws.upper_w[own].sum()),
        )
        idle = idle_nodes(self._snapshot, plan)
        return Room.within(self.bounds_w, rest_w, int(idle.sum()) + int(own.sum()))

    def running(self, plan: Plan) -> dict[int, Scalable]:
        """The jobs that may be resized, by their rows of `Snapshot.running` (rules 2 and 3)."""
        snapshot, running = self._snapshot, self._snapshot.running
        reachable = idle_nodes(snapshot, plan)
        for row in self._malleables.rows.tolist():
            nodes = self._malleables.nodes(row)
            reachable[nodes[nodes != running.head_of(row)]] = True
        free, found = np.flatnonzero(reachable).astype(np.int32), {}
        usable = Usable(snapshot, free)
        groups = usable.groups(self._malleables.rows)
        place = np.full(len(snapshot.nodes), -1, dtype=np.int64)
        place[free] = np.arange(len(free))
        for row, group in zip(self._malleables.rows.tolist(), groups, strict=True):
            own = slice(int(running.indptr[row]), int(running.indptr[row + 1]))
            width = own.stop - own.start
            mine = place[running.nodes[own]]
            mine = mine[mine >= 0]
            maximum = (
                width + usable.counts[group] - int(np.count_nonzero(usable.masks[group][mine]))
            )
            widths = [each for each in allowed_widths(snapshot, row) if each <= maximum]
            found[row] = Scalable(
                str(running.id[row]),
                width,
                widths if width in widths else sorted([*widths, width]),
                int(self._draws.lower_w[own].min()),
                int(self._draws.upper_w[own].max()),
            )
        return found

    def waiting(self, plan: Plan, maximum: int) -> dict[int, Scalable]:
        """The first jobs that wait for nodes or power, by their rows of `Snapshot.jobs` (rule 4).

        Args:
            plan: gives the order.
            maximum: maximum number of jobs.
        """
        jobs = self._snapshot.jobs
        found: dict[int, Scalable] = {}
        for row in np.flatnonzero(plan.start_s != plan.now_s).tolist():
            reason, job = plan.reasons[row], int(plan.job[row])
            if len(found) >= maximum:
                break
            if job in found or reason is None or reason.code not in _WAITS:
                continue
            nodes = np.flatnonzero(self.usable_by([job])).astype(np.int32)
            width = RULES[int(jobs.width_rule[job])].next_width(int(jobs.min_nodes[job]))
            if len(nodes) < width:
                continue
            rows = np.full(len(nodes), job, dtype=np.int64)
            draws = draws_on(pending_estimates(jobs), self._powers, rows, nodes)
            min_w, max_w = int(draws.lower_w.min()), int(draws.upper_w.max())
            found[job] = Scalable(str(jobs.id[job]), 0, (width,), min_w, max_w)
        return found

    @cached_property
    def _eligibility(self) -> Eligibility:
        return Eligibility(self._snapshot)

    def usable_by(self, jobs: Sequence[int]) -> NDArray[np.bool_]:
        """(n_nodes,) the nodes that any of some waiting jobs could run on."""
        usable = np.zeros(len(self._snapshot.nodes), dtype=bool)
        for found in self._eligibility.alternatives(np.array(jobs, dtype=np.int64)):
            if not isinstance(found, Reason):
                for alternative in found:
                    usable |= self._eligibility.classes.mask(alternative.class_)
        return usable
