# SPDX-License-Identifier: Apache-2.0
"""Starts, widths and the power corridor planned together: jobs shrink ahead of a bound.

Terms
    lead        how long before an upper bound comes into force jobs shrink that would exceed it:
                twice the duration of a change.

Rules
    1. While power lies within its bounds, jobs are planned and nodes are lent as by `malleable`
       (`bridge.policies.reshape.malleable`). The upper bound is a rule of the site over all the
       time that a job or a loan lasts: nothing starts or grows that a future bound would forbid.
    2. Power that would exceed an upper bound within the lead counts as a violation now. So power is
       within a bound from its first second.
    3. A violation ends as under `power-corridor` (`restoring`): widths
       first of running jobs with chosen waiting ones. The lower bound is served by growth and
       earlier starts likewise.
    4. A job whose width has changed keeps it for `between_s`, unless a bound requires a change.
    5. It plans again when an upper bound comes within the lead, at every change of a bound, when a
       job has kept its width for `between_s`, and every `tick_s` while a violation lasts.
    6. At a site without bounds of power it plans as `malleable`.

Source: ours.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.power.planning.drawn_power import DrawnPower
from bridge.extensions.power.planning.restoring import Effort, Restoring
from bridge.extensions.power.rules import PowerRules, power_of
from bridge.model.decisions.resizes import NO_RESIZES
from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.expand_shrink import Malleables
from bridge.planning.malleable.pending import Pending
from bridge.planning.malleable.width_explanations import Demands, Watched, with_reasons
from bridge.policies.reshape.malleable import LentNodes
from bridge.ports import Context, Planned, Replan
from bridge.units import NEVER

_NAME = "power-plan"
_LEAD = 2


@dataclass(frozen=True)
class PowerPlan(Effort, LentNodes):
    """Plans malleable jobs within a power corridor that changes over time.

    `tick_s` counts while a violation lasts.
    """

    def reshape(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        planned: Planned,
        replan: Replan,
        context: Context,
    ) -> Planned:
        """Resizes running jobs; see `bridge.ports.ReshapePolicy`."""
        rules, running = power_of(context.site), snapshot.running
        if rules is None:
            return super().reshape(snapshot, order, planned, replan, context)
        lead_s = _LEAD * self.adaptation_s
        malleables = Malleables.of(snapshot, self.adaptation_s)
        power = DrawnPower(rules, snapshot, malleables, ahead_s=lead_s)
        watched = Watched(replan)
        given = planned
        cycle = Restoring(self, snapshot, order, watched, power)
        before = context.state.learnt_by(_NAME)
        pending = left = Pending.of(before)
        calm = not running.adapting.any()
        left_at_now = pending.at(snapshot.now_s)
        asks = calm and bool(power.now_outside or left_at_now)
        if asks and not len(planned.plan) and len(snapshot.jobs):  # it plans the queue itself
            planned = replan(NO_RESIZES)
        if asks and power.outside(planned.plan):
            restored, left = cycle.restored(planned)
            planned = self._kept(snapshot, restored, watched, context)
        elif asks and left_at_now:
            continued, left = cycle.continued(planned, left_at_now)
            planned = self._kept(snapshot, continued, watched, context)
        else:
            left = pending if not calm else Pending()
            planned = super().reshape(snapshot, order, given, replan, context)
        again_s = self._again_s(snapshot, rules, waits=bool(power.now_outside or left or not calm))
        plan = replace(planned.plan, again_s=min(planned.plan.again_s, again_s))
        learnt = planned.learnt if left == pending else {**planned.learnt, _NAME: left.learnt()}
        return replace(planned, plan=plan, learnt=learnt)

    def _again_s(self, snapshot: Snapshot, rules: PowerRules, *, waits: bool) -> int:
        """When to plan again, event or not (rule 5).

        Args:
            waits: a violation lasts, or a decision has not been carried out.
        """
        now_s, running = snapshot.now_s, snapshot.running
        change_s = rules.corridor.next_change_s(now_s)
        soon_s = change_s if change_s == NEVER else change_s - _LEAD * self.adaptation_s
        again_s = soon_s if soon_s > now_s else change_s
        malleable = running.max_nodes > 0
        if not self.tick_s or not malleable.any():
            return again_s
        rested_s = running.resized_s[malleable & (running.resized_s > 0)] + self.between_s
        again_s = int(rested_s[rested_s > now_s].min(initial=again_s))
        return min(again_s, now_s + self.tick_s) if waits else again_s

    def _kept(
        self, snapshot: Snapshot, planned: Planned, watched: Watched, context: Context
    ) -> Planned:
        """The plan with reasons, and with the previous promises, so that announcements are kept."""
        demands = Demands(self.adaptation_s, one_at_a_time=True)
        promises = context.state.promised_by("malleable")
        found = with_reasons(snapshot, planned, watched.left_out, demands)
        return replace(found, promises=promises)
