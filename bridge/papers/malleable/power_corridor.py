# SPDX-License-Identifier: Apache-2.0
"""Power-aware: running jobs grow and shrink to bring the system's power back into its corridor.

Terms
    corridor    lower and upper bound of system power (`planning.power`); they may change any time.
    violation   system power outside of it, by the estimates, with what the plan starts now.
    chosen      the waiting jobs, one or two, with which a configuration keeps the corridor.

Rules
    1. Without a violation no job is resized. Jobs start in the stage order as far as the upper
       bound permits, which is a rule of the site for every plan.
    2. While any job adapts, nothing is decided. Jobs that end soon keep their nodes.
    3. On a violation the first feasible configuration (`power.planning.configuration`) is
       taken: of the running malleable jobs with one waiting job, in the plan's order; then with
       two; then with none. With `waiting: 0`, of running jobs only.
    4. Jobs that shrink do so first, as their nodes and their power are needed by the others. Jobs
       grow in the same cycle only as far as nodes are idle and power permits; the rest of the
       growth, and the chosen jobs, follow when the shrinks are complete, before others.
    5. If no configuration is feasible, the one with the least violation is used; the reasons state
       this, and what would end the violation.
    6. It plans again at every change of a bound, and each `tick_s` while malleable jobs run.
    7. At a site without bounds of power no job is resized.

Source: Algorithm 2 of Chadha, John and Gerndt, "Extending SLURM for Dynamic Resource-Aware Adaptive
Batch Scheduling", HiPC 2020. With order `fcfs` and plan `in-order` it is the whole algorithm; its
scenario 2 is `waiting: 0`, scenario 3 is `waiting: 2`.
Deviates: the paper carries out a configuration at once, and its jobs exceed the upper bound until
shrinks are complete; see rule 4. Jobs that the plan stage can start in the same cycle do start,
and count as running.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bridge.extensions.power.planning.drawn_power import DrawnPower
from bridge.extensions.power.planning.restoring import Effort, Restoring
from bridge.extensions.power.rules import power_of
from bridge.model.snapshot import Snapshot
from bridge.planning.malleable.expand_shrink import Malleables
from bridge.planning.malleable.pending import Pending
from bridge.planning.malleable.width_explanations import Demands, Watched, with_reasons
from bridge.ports import Context, Planned, Replan

_NAME = "power-corridor"


@dataclass(frozen=True)
class PowerCorridor(Effort):
    """Keeps system power within its corridor by widths and starts.

    `tick_s` counts while malleable jobs run.
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
            return planned
        before = context.state.learnt_by(_NAME)
        pending = Pending.of(before)
        watched = Watched(replan)
        malleables = Malleables.of(snapshot, self.adaptation_s)
        power = DrawnPower(rules, snapshot, malleables)
        cycle = Restoring(self, snapshot, order, watched, power)
        if running.adapting.any():
            planned, left = cycle.first(planned, pending.jobs), pending
        elif power.outside(planned.plan):
            planned, left = cycle.restored(planned)
        else:
            planned, left = cycle.continued(planned, pending.at(snapshot.now_s))
        demands = Demands(self.adaptation_s, one_at_a_time=True)
        planned = with_reasons(snapshot, planned, watched.left_out, demands)
        again_s = rules.corridor.next_change_s(snapshot.now_s)
        if self.tick_s and (running.max_nodes > 0).any():
            again_s = min(again_s, snapshot.now_s + self.tick_s)
        planned = replace(
            planned, plan=replace(planned.plan, again_s=min(planned.plan.again_s, again_s))
        )
        if left == pending:
            return planned
        return replace(planned, learnt={**planned.learnt, _NAME: left.learnt()})
