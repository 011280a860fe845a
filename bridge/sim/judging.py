# SPDX-License-Identifier: Apache-2.0
"""How good one cycle's plan is, if all came as it is believed.

Every row with a start counts: the tasks of an array each for itself. Its length is what it is
believed to take, its wait counts from submission; the measures are those of `bridge.measures`, mean
over rows. Jobs that are held or can never run have no start under any policy, and do not count.
"""

from dataclasses import dataclass

import numpy as np

from bridge.measures import Schedule, bounded_slowdown, slowdown, wait_s
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.units import NEVER, UNPLANNED


@dataclass(frozen=True)
class Verdict:
    """A plan's figures.

    Attributes:
        rows: with a start.
        starts_now: of them, those that start at once.
        slowdown, bounded_slowdown: mean.
        delay: mean of (start - now) / length: the part of the slowdown that a plan can change.
        wait_s: mean; longest_wait_s: of the worst row.
    """

    rows: int
    starts_now: int
    slowdown: float
    bounded_slowdown: float
    delay: float
    wait_s: float
    longest_wait_s: int


def judge(snapshot: Snapshot, plan: Plan) -> Verdict:
    """Judges a plan.

    Args:
        snapshot: that was planned.
        plan: for it, complete (`bridge.sim.rerun.completed`).
    """
    rows = np.flatnonzero((plan.start_s != NEVER) & (plan.start_s != UNPLANNED))
    schedule = Schedule(
        capacity=1,
        submit_s=np.minimum(snapshot.jobs.submit_s[plan.job[rows]], snapshot.now_s),
        start_s=plan.start_s[rows],
        end_s=plan.end_s[rows],
        processors=np.ones(len(rows), dtype=np.int64),
    )
    waits, ahead_s = wait_s(schedule), schedule.start_s - snapshot.now_s
    if not len(rows):
        return Verdict(0, 0, 0.0, 0.0, 0.0, 0.0, 0)
    return Verdict(
        rows=len(rows),
        starts_now=len(plan.starts_now),
        slowdown=float(slowdown(schedule).mean()),
        bounded_slowdown=float(bounded_slowdown(schedule).mean()),
        delay=float((ahead_s / np.maximum(schedule.end_s - schedule.start_s, 1)).mean()),
        wait_s=float(waits.mean()),
        longest_wait_s=int(waits.max()),
    )
