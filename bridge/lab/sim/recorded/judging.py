# SPDX-License-Identifier: Apache-2.0
"""Figures for the quality of one cycle's plan, assuming that predictions are exact.

Every row with a start counts, each array task by itself. The cost of waiting is defined in
`bridge.planning.dispatch.objective`, without ageing; the figures are means over rows. Jobs that are
held or can never run have no start under any policy, and do not count.

`delay`, (start - now) / length, is the part of the slowdown that a plan can still change.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.planning.dispatch.objective import NAMES, Objective
from bridge.units import NEVER, UNPLANNED

DELAY: Final = "delay"
MEASURES: Final = (*NAMES, DELAY)


@dataclass(frozen=True)
class PlanFigures:
    """A plan's figures.

    Attributes:
        costs: for each of `MEASURES` the mean over rows.
        longest_wait_s: the longest wait of the worst row, from its submission.
    """

    rows: int
    starts_now: int
    costs: Mapping[str, float]
    longest_wait_s: int

    def plain(self) -> dict[str, object]:
        return {
            "rows": self.rows,
            "starts_now": self.starts_now,
            **self.costs,
            "longest_wait_s": self.longest_wait_s,
        }


def judge(snapshot: Snapshot, plan: Plan) -> PlanFigures:
    """Judges a plan.

    Args:
        plan: for it, complete (`bridge.lab.sim.recorded.rerun.completed`).
    """
    rows = np.flatnonzero((plan.start_s != NEVER) & (plan.start_s != UNPLANNED))
    if not len(rows):
        return PlanFigures(0, 0, dict.fromkeys(MEASURES, 0.0), 0)
    start_s, job = plan.start_s[rows], plan.job[rows]
    delay = (start_s - snapshot.now_s) / np.maximum(plan.end_s[rows] - start_s, 1)
    costs = {name: Objective(name).of_plan(snapshot, plan) / len(rows) for name in NAMES}
    return PlanFigures(
        rows=len(rows),
        starts_now=len(plan.starts_now),
        costs={**costs, DELAY: float(delay.mean())},
        longest_wait_s=int((start_s - snapshot.jobs.submit_s[job]).max()),
    )
