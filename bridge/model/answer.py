# SPDX-License-Identifier: Apache-2.0
"""What a solver answers, and what came of a dispatch: for those who count.

Reasons for which the greedy plan serves, as they are counted in the metrics

    settled     every job of the window starts as early as it may: nothing to gain
    small       no job of the window can be said in the model
    late        the budget was spent before the solver could be asked
    starting    the solver's process was not ready yet
    timeout     no solution came in time
    crash       the solver's process ended
    infeasible  the solver says that there is no solution
    no gain     what came of it is no better than the greedy plan
"""

from dataclasses import dataclass
from math import isfinite
from typing import Final

import numpy as np
from numpy.typing import NDArray

SETTLED: Final = "settled"
SMALL: Final = "small"
LATE: Final = "late"
STARTING: Final = "starting"
TIMEOUT: Final = "timeout"
CRASH: Final = "crash"
INFEASIBLE: Final = "infeasible"
NO_GAIN: Final = "no gain"


@dataclass(frozen=True)
class Answer:
    """The best solution that came in time.

    Attributes:
        values: (n,) int64 of the model's variables; None: there is none.
        objective: its value; inf without one.
        bound: no solution is lower.
        proved: nothing better exists.
        killed: the solver overran its budget and was ended.
        problem: why there is no solution; one of the reasons above.
        constant: what the model leaves out of its objective.
    """

    values: NDArray[np.int64] | None
    objective: float = float("inf")
    bound: float = float("-inf")
    proved: bool = False
    killed: bool = False
    problem: str = ""
    constant: float = 0.0

    @property
    def gap(self) -> float | None:
        """How much of the cost might be saved at the most; None: unknown."""
        cost = self.objective + self.constant
        if self.values is None or not isfinite(self.bound):
            return None
        return max(0.0, (self.objective - self.bound) / cost) if cost > 0 else 0.0


@dataclass(frozen=True)
class Dispatched:
    """What one cycle's dispatcher did.

    Attributes:
        jobs: in the window.
        greedy: objective of the greedy plan, over the whole queue.
        found: of the plan that serves; never more.
        gap: (solution - bound) / solution over the window; None: no solution, or no bound.
        fallback: why the greedy plan serves; empty: it does not.
        killed: the solver overran its budget and was ended.
    """

    jobs: int
    greedy: float
    found: float
    gap: float | None = None
    fallback: str = ""
    killed: bool = False
