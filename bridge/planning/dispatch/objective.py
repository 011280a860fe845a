# SPDX-License-Identifier: Apache-2.0
"""The objectives to be minimised: the cost of a job's wait.

| objective | a job costs |
|---|---|
| slowdown | (wait + d) / d |
| bounded-slowdown | max(1, (wait + d) / max(d, 10 s)) |
| wait | wait, s |
| priority | wait, s, times its priority by the highest of the queue |

d is the predicted run time. All are linear in the start, except for the bound in the second one.

With `power` p above 1 a wait of x costs an hour times (x / 1 h) ** p in place of x: minimised is
then the weighted power mean of the waits, in which long ones count more.

Ageing: for each `ageing_s` that a job has waited, the cost of a second grows by that of a job of
that length (and of the highest priority). So long jobs eventually weigh as much as short ones.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bridge.errors import ConfigError
from bridge.model.plan import Plan
from bridge.model.snapshot import Snapshot
from bridge.units import BOUND_S, NEVER, UNPLANNED

NAMES = ("slowdown", "bounded-slowdown", "wait", "priority")


@dataclass(frozen=True)
class Objective:
    """One of `NAMES`.

    Attributes:
        ageing_s: how quickly the weight of waiting jobs grows, see above; None: not at all.
        power: exponent of the wait, 1 to 3 in steps of 1/2.
        factor: (n_jobs,) of each job's weight, by row of the snapshot; None: 1.
    """

    name: str = "slowdown"
    ageing_s: int | None = None
    power: float = 1
    factor: NDArray[np.float64] | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.name not in NAMES:
            raise ConfigError("objective", f"no '{self.name}'; there are {', '.join(NAMES)}")
        if self.ageing_s is not None and self.ageing_s < 1:
            raise ConfigError("ageing_s", f"must be 1 or more, or null, not {self.ageing_s}")
        if self.power not in (1, 1.5, 2, 2.5, 3):
            raise ConfigError("power", f"must be 1, 1.5, 2, 2.5 or 3, not {self.power}")

    def weights(
        self, snapshot: Snapshot, job: NDArray[np.int64], length_s: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """(n,) the cost of a second of waiting.

        Args:
            job: (n,) rows of `snapshot.jobs`.
            length_s: (n,) predicted run times.
        """
        plain = self._plain(snapshot, job, length_s) + self._ageing(snapshot, job)
        return plain if self.factor is None else plain * self.factor[job]

    def due_s(
        self, snapshot: Snapshot, job: NDArray[np.int64], length_s: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """(n,) the instants until which waiting costs nothing; arguments as above."""
        due_s = snapshot.jobs.submit_s[job]
        if self.name == "bounded-slowdown":
            return due_s + np.maximum(BOUND_S - length_s, 0)
        return due_s

    def _plain(
        self, snapshot: Snapshot, job: NDArray[np.int64], length_s: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        if self.name == "slowdown":
            return 1.0 / np.maximum(length_s, 1)
        if self.name == "bounded-slowdown":
            return 1.0 / np.maximum(length_s, BOUND_S)
        if self.name == "wait":
            return np.ones(len(job))
        highest = max(int(snapshot.jobs.priority.max(initial=0)), 1)
        return np.maximum(snapshot.jobs.priority[job], 0) / highest

    def _ageing(self, snapshot: Snapshot, job: NDArray[np.int64]) -> NDArray[np.float64]:
        if self.ageing_s is None:
            return np.zeros(len(job))
        waited_s = np.maximum(snapshot.now_s - snapshot.jobs.submit_s[job], 0)
        relative = self.name in ("slowdown", "bounded-slowdown")
        second = 1.0 / max(self.ageing_s, BOUND_S) if relative else 1.0
        aged: NDArray[np.float64] = waited_s / self.ageing_s * second
        return aged

    def costs(
        self,
        snapshot: Snapshot,
        job: NDArray[np.int64],
        start_s: NDArray[np.int64],
        length_s: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """(n,) of jobs that start then; arguments as above."""
        late_s = np.maximum(start_s - self.due_s(snapshot, job, length_s), 0)
        minimum = 1.0 if self.name in ("slowdown", "bounded-slowdown") else 0.0
        weight = self.weights(snapshot, job, length_s)
        cost: NDArray[np.float64] = minimum + weight * self.raised(late_s)
        return cost

    def raised(self, wait_s: NDArray[np.int64]) -> NDArray[np.float64]:
        """(n,) waits raised to the power, in the unit of seconds."""
        if self.power == 1:
            return wait_s.astype(np.float64)
        hours = wait_s / 3600
        found = np.ones(len(hours)) if self.power % 1 == 0 else np.sqrt(hours)
        for _ in range(int(self.power)):
            found = found * hours
        return 3600.0 * found

    def of_plan(self, snapshot: Snapshot, plan: Plan) -> float:
        """The sum over all rows of a plan that have a start."""
        rows = np.flatnonzero((plan.start_s != NEVER) & (plan.start_s != UNPLANNED))
        length_s = plan.end_s[rows] - plan.start_s[rows]
        job = plan.job[rows].astype(np.int64)
        return float(self.costs(snapshot, job, plan.start_s[rows], length_s).sum())
