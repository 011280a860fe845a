# SPDX-License-Identifier: Apache-2.0
"""Starts, widths and the power corridor planned together: jobs shrink before a bound comes.

Words
    lead        how long before an upper bound comes the jobs shrink that would exceed it: twice the
                duration of a change.

Rules
    1. While power lies within its bounds, jobs are planned and nodes are lent as by `malleable`
       (`bridge.policies.reshape.malleable`). The upper bound is a rule of the site over all the
       time that a job or a loan lasts: nothing starts or grows that a coming bound would forbid.
    2. Power that would exceed an upper bound within the lead counts as a violation now. So a bound
       holds at its first second.
    3. A violation ends as under `power-corridor` (`bridge.planning.malleable.restoring`): widths
       first of running jobs with chosen waiting ones. The lower bound is served by growth and
       earlier starts likewise.
    4. A job whose width has changed keeps it for `between_s`, unless a bound requires a change.
    5. A site without bounds of power: as `malleable`.

Source: ours.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.model.resizes import NO_RESIZES
from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.drawn_power import DrawnPower
from bridge.planning.malleable.expand_shrink import Malleables
from bridge.planning.malleable.pending import Pending
from bridge.planning.malleable.restoring import Effort, Restoring
from bridge.planning.malleable.why import Demands, Watched, with_reasons
from bridge.policies.reshape.malleable import LentNodes
from bridge.ports import Context, Planned, Replan

_NAME = "power-plan"
_LEAD = 2


@dataclass(frozen=True)
class PowerPlan(LentNodes):
    """Plans malleable jobs within a corridor of power that changes.

    Attributes:
        waiting: most waiting jobs that are started to end a violation; 0: running jobs only.
        tried: most configurations with waiting jobs that are computed in a cycle.
        tick_s: it plans again after so long while malleable jobs run; 0: at events only.
    """

    waiting: int = 2
    tried: int = 64
    tick_s: int = 30

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.waiting <= 2:
            raise ConfigError("waiting", f"must be 0, 1 or 2, not {self.waiting}")
        if self.tried < 1:
            raise ConfigError("tried", f"must be 1 or more, not {self.tried}")
        if self.tick_s < 0:
            raise ConfigError("tick_s", f"must be 0 or more, not {self.tick_s}")

    def reshape(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        planned: Planned,
        replan: Replan,
        context: Context,
    ) -> Planned:
        """Resizes running jobs; see `bridge.ports.ReshapePolicy`."""
        rules, running = context.site.rules.power, snapshot.running
        if rules is None:
            return super().reshape(snapshot, order, planned, replan, context)
        lead_s = _LEAD * self.adaptation_s
        malleables = Malleables.of(snapshot, self.adaptation_s)
        power = DrawnPower(rules, snapshot, malleables, ahead_s=lead_s)
        watched = Watched(replan)
        given = planned
        if not len(planned.plan) and len(snapshot.jobs):  # `malleable` plans the queue itself
            planned = replan(NO_RESIZES)
        cycle = Restoring(
            Effort(self.adaptation_s, self.waiting, self.tried), snapshot, order, watched, power
        )
        before = context.state.learnt_by(_NAME)
        pending = left = Pending.of(before)
        calm = not running.adapting.any()
        if calm and power.outside(planned.plan):
            restored, left = cycle.restored(planned)
            planned = self._kept(snapshot, restored, watched, context)
        elif calm and pending.at(snapshot.now_s):
            continued, left = cycle.continued(planned, pending.at(snapshot.now_s))
            planned = self._kept(snapshot, continued, watched, context)
        else:
            left = pending if not calm else Pending()
            planned = super().reshape(snapshot, order, given, replan, context)
        change_s = rules.corridor.next_change_s(snapshot.now_s)
        soon_s = change_s - lead_s
        again_s = soon_s if soon_s > snapshot.now_s else change_s
        if self.tick_s and (running.max_nodes > 0).any():
            again_s = min(again_s, snapshot.now_s + self.tick_s)
        plan = replace(planned.plan, again_s=min(planned.plan.again_s, again_s))
        learnt = planned.learnt if left == pending else {**planned.learnt, _NAME: left.learnt()}
        return replace(planned, plan=plan, learnt=learnt)

    def _kept(
        self, snapshot: Snapshot, planned: Planned, watched: Watched, context: Context
    ) -> Planned:
        """With reasons, and the promises of the cycle before: what was announced stays so."""
        demands = Demands(self.adaptation_s, one_at_a_time=True)
        promises = context.state.promised_by("malleable")
        found = with_reasons(snapshot, planned, watched.left_out, demands)
        return replace(found, promises=promises)
