# SPDX-License-Identifier: Apache-2.0
"""First come, first served without backfilling: nobody passes the first job that cannot start.

Rules
    1. Jobs start in the order given, until one has to wait for nodes or licences. It gets a planned
       start.
    2. All behind it wait, and are told so. They have no planned start.
    3. Jobs that wait for something else (held, limited, a begin time, a dependency), or that can
       never run, stop nobody.
    4. The rest is as in `bridge.policies.plan.backfill` with depth 1.

Source: the paper on malleable and power-aware scheduling in Slurm: "no lower-priority application
is chosen for execution" (Algorithm 1, line 7).
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bridge.model.plan import Plan
from bridge.model.reasons import Reason, ReasonCode
from bridge.model.snapshot import Snapshot
from bridge.planning.scheduler.queue_planner import QueuePlanner
from bridge.ports import Context, Planned, Preference
from bridge.units import UNPLANNED

_STOPS_OTHERS = frozenset(
    {ReasonCode.RESOURCES, ReasonCode.PRIORITY, ReasonCode.LICENCES, ReasonCode.NODES_DOWN}
)


@dataclass(frozen=True)
class InOrder(QueuePlanner):
    """Starts jobs strictly in the order given."""

    name: ClassVar[str] = "in-order"

    @property
    def whole_queue(self) -> bool:
        """Only the first waiting job has a place."""
        return False

    def planned(
        self,
        snapshot: Snapshot,
        order: NDArray[np.int64],
        preference: Preference,
        context: Context,
    ) -> Planned:
        """As EASY; then what passed the first waiting job is taken back."""
        scheduler = self.list_scheduler(snapshot, order, preference, context)
        scheduler.decode(depth=1)
        return Planned(_without_passing(snapshot, scheduler.plan(self.name)))


def _without_passing(snapshot: Snapshot, plan: Plan) -> Plan:
    """The plan without starts of rows behind the first one that waits for resources."""
    waits = [
        row
        for row in np.flatnonzero(plan.start_s != plan.now_s).tolist()
        if (reason := plan.reasons[row]) is not None and reason.code in _STOPS_OTHERS
    ]
    if not waits:
        return plan
    first = waits[0]
    passing = np.zeros(len(plan), dtype=bool)
    passing[first + 1 :] = plan.start_s[first + 1 :] == plan.now_s
    if not passing.any():
        return plan
    text = f"job {snapshot.jobs.id[plan.job[first]]} is first"
    reason = Reason(ReasonCode.PRIORITY, text)
    width = np.where(passing, 0, np.diff(plan.indptr))
    entries = ~np.repeat(passing, np.diff(plan.indptr))
    return replace(
        plan,
        start_s=np.where(passing, UNPLANNED, plan.start_s),
        end_s=np.where(passing, 0, plan.end_s),
        partition=np.where(passing, -1, plan.partition).astype(np.int32),
        indptr=np.concatenate(([0], np.cumsum(width))).astype(np.int64),
        nodes=plan.nodes[entries],
        tasks=plan.tasks[entries],
        reasons=tuple(
            reason if passed else before
            for passed, before in zip(passing.tolist(), plan.reasons, strict=True)
        ),
        groups=None if plan.groups is None else plan.groups[entries],
    )
